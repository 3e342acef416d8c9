// Package sqllock has locks in a database, PostgreSQL or MariaDB or MySQL, for programs that have a
// database and no ZooKeeper. A lock is a [recipes.Locker], so its holds are those of docent's own locks:
//
//	client, err := sqllock.New(db, sqllock.PostgreSQL)
//	...
//	defer client.Close()
//	lock, err := client.Lock("orders/7")
//	...
//	err = recipes.Do(ctx, lock, func(ctx context.Context, hold *recipes.Hold) error {
//		return ship(ctx, hold.Token()) // ctx ends with the hold
//	})
//
// The package imports database/sql and no driver. Curator has no counterpart.
//
// # The table
//
// Each lock is a row, which has the name, the fencing token (fence), the owner, and until when the lock
// is the owner's (valid_until) by the clock of the database. [Dialect.CreateTable] has the statement
// that creates the table. Rows stay: do not delete them. To take a lock from its holder, run
//
//	UPDATE docent_locks SET owner = NULL WHERE name = 'orders/7'
//
// The holder learns it at its next renewal, after a third of the lease. Until then it goes on.
//
// An acquire reads the row and, if the lock is free, changes it by one UPDATE, on condition that the
// token is still the one that was read. So an acquire whose reply was lost can be repeated, and can
// be undone before it arrives. The hold renews the lease in the background.
//
// A token is one more than the one before it, and at least the clock of the database in microseconds
// since 1970. So it grows even after a row was deleted, after a failover that has lost changes, or
// after a backup was restored, if the clock was not set back meanwhile.
//
// # Waiters
//
// In each client, one waiter of a lock asks the database: at first every few milliseconds, later every
// [DefaultPoll] or as [WithPoll] says, with jitter. Others wait in memory, in the order in which they
// came. A release wakes the waiters of its own client. With [WithNotify], PostgreSQL wakes the waiters
// of all clients. They all look then, one reads that the lock is free and acquires it. There is no order
// among clients.
//
// # Locks and transactions
//
// Where the data is in the same database, a transaction needs no lease: [Lock.InTx] acquires the lock
// until the transaction ends. [Lock.Guard] has a transaction of a holder fail if the hold has been
// lost. Neither needs a token in the data, and both are safe in all cases of the table below but the
// last.
// For data elsewhere in SQL, [Dialect.FencedUpdate] has the UPDATE that compares tokens.
//
// # Promises
//
// A hold ends by a local deadline, which is reckoned from before the request was sent and is a 20th
// earlier than the lease. The table says what happens without a token in the data and without a
// guard:
//
//	event                                     what the lock does
//	the holder is paused                      its hold has ended at the first look after it; a request
//	                                          that is under way meanwhile needs the token
//	the clock of the database is set forward  the lease ends too early: two holders for up to a lease;
//	                                          the token is needed
//	the clock of the database is set back     the lease of a holder that crashes lasts longer by that
//	the clock of this machine is set forward  the hold may end early
//	the clock of this machine is set back     nothing: the monotonic clock counts, too
//	failover, synchronous replication         the lock goes on; holders renew when they reach the new primary
//	failover, asynchronous replication        the last acquires may be lost: two holders for up to a
//	                                          lease; tokens grow as far as the servers' clocks agree
//	restart of the server with its disk       the lock goes on, if commits reach the disk (not with
//	                                          synchronous_commit = off, or
//	                                          innodb_flush_log_at_trx_commit other than 1)
//	restart without its disk                  all holds are lost, and end at their next renewal: two
//	                                          holders for up to a lease
//	the holder is cut off                     its hold has ended before the lease, then others acquire
//	several servers that take writes          unsafe: their clocks differ; write to one of them
//
// Statements are made one at a time, outside of transactions, so connection poolers such as PgBouncer
// may have any mode. Only LISTEN needs a connection that stays.
package sqllock
