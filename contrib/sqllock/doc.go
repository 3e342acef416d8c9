// Package sqllock has locks in a database, PostgreSQL or MariaDB or MySQL, for programs that have a
// database and no ZooKeeper. A lock is a [recipes.Locker], so its holds are those of docent's own locks:
//
//	client, err := sqllock.NewClient(db, sqllock.PostgreSQL)
//	...
//	defer client.Close()
//	lock, err := sqllock.New(client, "orders/7")
//	...
//	err = lock.Do(ctx, func(ctx context.Context, hold *recipes.Hold) error {
//		return ship(ctx, hold.Token()) // ctx ends with the hold
//	})
//
// The package imports database/sql and no driver. Curator has no counterpart.
//
// # Kinds
//
// The kinds differ in what the database has of a lock. They do not exclude each other.
//
//	kind           in the database              free after a crash  token         for
//	Lock           a row with a lease           a lease             yes           most programs
//	Lock.InTx      a lock of that row           at once             not needed    one transaction
//	SessionLock    a lock of a connection       at once             by an option  short waits after crashes
//	KeyLock        a row with a unique key      a lease             no            locks of other programs
//
// InTx and Lock exclude each other.
//
// # The table of Lock
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
// A token is the larger of two numbers: the token before it plus one, and the clock of the database in
// microseconds since 1970. So it grows even after a row was deleted, after a failover that has lost changes, or
// after a backup was restored, if the clock was not set back meanwhile.
//
// # Waiters
//
// In each client, one waiter of a lock asks the database: at first every few milliseconds, later every
// [DefaultPollInterval] or as [WithPollInterval] says, with jitter. Others wait in memory, in the order
// in which they came. A release wakes the waiters of its own client. With [WithNotify], PostgreSQL wakes
// the waiters of all clients. They all look then, one reads that the lock is free and acquires it. There
// is no order among clients.
//
// With [WithFairQueue] the waiters for a Lock have an order among all clients. They are rows of a second
// table, in the order in which they came, each with a lease of its own.
//
// The waiters for a SessionLock wait in the database, which wakes them.
//
// # Locks and transactions
//
// Where the data is in the same database, a transaction needs no lease: [Lock.InTx] acquires the lock
// until the transaction ends. [Lock.Guard] has a transaction of a holder fail if the hold has been
// lost. Neither needs a token in the data. Both depend on the isolation level, and on the order of calls:
// see the last table below. For data elsewhere in SQL, [Dialect.FencedUpdate] has the UPDATE that compares
// tokens, and [CheckFenced] tells whether it was applied.
//
// # Promises
//
// A hold ends by a local deadline, which is reckoned from before the request was sent and is a 20th
// earlier than the lease. The tables say what happens without a token in the data and without a
// guard. For Lock and KeyLock:
//
//	event                                     what the lock does
//	the holder is paused                      its hold has ended at the first look after it; a request
//	                                          that is under way meanwhile needs the token
//	the clock of the database is set forward  the lease ends too early: two holders for up to a lease;
//	                                          the token is needed
//	the clock of the database is set back     the lease of a holder that crashes lasts longer by that, and
//	                                          so does the place of a fair waiter that crashes
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
//	an operator takes the lock                the hold ends at its next renewal, after a third of the lease
//	several servers that take writes          unsafe: their clocks differ; write to one of them
//
// A KeyLock has no token, so where the token is needed it is unsafe. For SessionLock:
//
//	event                                     what the lock does
//	the holder is paused                      as Lock; the database ends the session after the lease
//	the clock of the database is set forward  nothing
//	the clock of the database is set back     in PostgreSQL a silent session lasts longer by that
//	the clock of this machine is set          as Lock
//	failover, of any kind                     the lock is lost: two holders until the next request of the
//	                                          hold, after a third of the lease, or until the deadline if
//	                                          the connection tells nothing
//	the primary becomes a replica and is      two holders until the old one releases: end the
//	not restarted                             sessions of that server
//	a replica                                 acquires fail there
//	restart of the server, with its disk      the same
//	or without
//	the holder is cut off                     its hold has ended before the lease, then others acquire
//	the driver closes the connection          two holders for the moment until the hold ends
//	an operator ends the session              two holders until the next request of the hold
//	several servers that take writes          unsafe: each has locks of its own
//
// For transactions that have called InTx or Guard:
//
//	event                                     what the lock does
//	a pause, clocks that are set              nothing: what is not committed is not there
//	the transaction has read before           Guard may fail; after InTx the transaction may read an old
//	                                          state: call them first
//	a lease ends without a release, while     in PostgreSQL a transaction at repeatable read or
//	a guarded transaction is under way        serializable that calls InTx may read the state from before
//	                                          the guarded one: see Lock.InTx
//	InTx or Guard has failed                  the row may stay locked, also for the holder, until tx ends:
//	                                          roll it back
//	a rollback to a savepoint before them     the lock is free, or the hold not guarded, and tx goes on
//	the holder is cut off                     the lock stays until the database notices it: see Lock.InTx
//	failover, restart with the disk           the transaction fails
//	failover, asynchronous replication        the last transactions may be lost, as all that they wrote
//	several servers that take writes          unsafe
//
// # Settings
//
// Statements of Lock and KeyLock are made one at a time, outside of transactions. So poolers such as
// PgBouncer may have any mode. InTx, Guard and Client.CreateTable, which uses a transaction, need the mode
// transaction or session, and LISTEN and SessionLock need the mode session. Drivers that cache prepared
// statements may need another setting behind a pooler, such as default_query_exec_mode=exec of pgx.
//
// The names of tables and columns must not be words that SQL reserves. MySQL with
// binlog_format=STATEMENT needs the isolation level repeatable read.
//
// The sessions of a client should not be at serializable by default. MariaDB with innodb_snapshot_isolation, the
// default since 11.6, refuses a statement there that has waited for another one, with error 1020. TryAcquire
// fails then. Acquire tries again, once it has read the row.
//
// MySQL 8 has not been run. What is known to differ from MariaDB: GET_LOCK takes whole seconds, so a
// SessionLock polls if its lease is less than 3 s, as it does with MariaDB here. A server that has ended
// a silent session says so to the client (error 4031). VALUES() in ON DUPLICATE KEY UPDATE, which
// KeyLock uses, is deprecated since 8.0.20 and works.
package sqllock
