package sqllock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/docent-zk/docent/recipes"
)

var errNilTx = errors.New("the transaction is nil")

// InTx acquires the lock for a transaction: until tx is committed or rolled back, no other transaction
// has it, and no client holds it. It needs no lease, and a pause or a partition of this program cannot
// have another client write at the same time: what is not committed yet is not there. The token is for
// resources that other holders write, too.
//
// InTx waits for other transactions until ctx ends. MySQL ends the wait, too, after
// innodb_lock_wait_timeout, which is 50 s by default. Then InTx fails with error 1205 of MySQL. If a client
// holds the lock, InTx fails at once with recipes.ErrNotAcquired. After an error roll tx back: it may have
// locked the row, which keeps a holder from renewing its lease.
//
// Call it first in tx, before any read, so that tx sees what the transaction before it has written. With several
// locks call it for all of them before any read. Otherwise tx may read a state from before it had the lock: at the
// isolation level repeatable read, the default of MySQL, and at serializable of PostgreSQL, a transaction reads the
// state of its first read. MySQL does not notice that this state is old. Nor does PostgreSQL, if a lease has ended
// without a release. Only MariaDB with innodb_snapshot_isolation, the default since 11.6, notices each change of the
// row: InTx fails with error 1020, and tx is rolled back. At serializable it fails so after each wait for another
// transaction, even if it is called first. So use another level there.
//
// At the isolation levels repeatable read and serializable of PostgreSQL InTx may fail because of another
// transaction, as any UPDATE. Then repeat the transaction. There InTx does not notice a holder whose lease has ended
// without a release, while its guarded transaction was under way. The row has not changed, so tx may read the state
// from before that transaction, also if InTx is called first. Use read committed, the default of PostgreSQL, or make
// all transactions that use the lock serializable: PostgreSQL refuses one of them.
//
// If the connection is cut, the database keeps the lock until it notices that: limit that time on the server,
// for PostgreSQL with tcp_user_timeout and idle_in_transaction_session_timeout, for MySQL with wait_timeout.
//
// The transaction must be of the database of the client. For a name that the client has not used before,
// InTx needs another connection for a moment, to insert the row if it is missing. If the pool has none, tx inserts
// the row, after a sixth of a lease, at most 3 s. Then acquires of clients fail without an answer until tx
// ends, instead of waiting. If such a tx is rolled back, the next transaction with InTx inserts the row.
// InTx does not use ctx after it has returned.
//
// A rollback to a savepoint from before InTx frees the lock, although tx goes on.
//
// Use the token only after tx is committed: after a rollback the next holder may have the same one.
func (l *Lock) InTx(ctx context.Context, tx *sql.Tx) (token int64, err error) {
	if err := l.checkTx(ctx, tx); err != nil {
		return 0, fmt.Errorf("acquire in a transaction: %w", err)
	}
	token, err = l.inTx(ctx, tx)
	if err != nil {
		return 0, fmt.Errorf("acquire %s in a transaction: %w", l.e.name, err)
	}
	return token, nil
}

func (l *Lock) checkTx(ctx context.Context, tx *sql.Tx) error {
	if err := l.e.check(ctx); err != nil {
		return err
	}
	if tx == nil {
		return errNilTx
	}
	return nil
}

func (l *Lock) inTx(ctx context.Context, tx *sql.Tx) (int64, error) {
	d := l.e.c.rows
	if !d.there.has(l.e.name) {
		l.insertBefore(ctx)
	}
	r, err := l.lockRow(ctx, tx)
	if err == nil {
		d.there.add(l.e.name)
	}
	switch {
	case err != nil:
		return 0, err
	case !r.free():
		return 0, recipes.ErrNotAcquired
	}
	if err := r.checkNext(); err != nil {
		return 0, err
	}
	return r.next, d.exec(ctx, tx, d.takeStatement, values{name: l.e.name, next: r.next})
}

// insertBefore inserts the row outside of the transaction, if it is missing. Otherwise clients that miss
// it would wait for the insert of the transaction. If it fails, they do.
func (l *Lock) insertBefore(ctx context.Context) {
	d, q := l.e.c.rows, request{name: l.e.name}
	_ = within(ctx, l.e.c.limit(), func(ctx context.Context) error {
		if r, err := d.read(ctx, q); err != nil || r.there {
			return err
		}
		return d.insert(ctx, q.name)
	})
}

// lockRow locks the row until tx ends, and inserts it before if it is missing.
func (l *Lock) lockRow(ctx context.Context, tx *sql.Tx) (row, error) {
	d := l.e.c.rows
	for range mostInserts {
		// In MySQL the insert locks the row, too. A SELECT that found none would lock the gap, which does
		// not exclude other transactions.
		if err := d.exec(ctx, tx, d.insertStatement, values{name: l.e.name}); err != nil {
			return row{}, err
		}
		// In PostgreSQL it may be missing again, after a wait for a transaction that has deleted it.
		r, err := readRow(ctx, tx, d.lockRowStatement, values{name: l.e.name})
		if err != nil || r.there {
			return r, err
		}
	}
	return row{}, errNotFound
}

// Guard has a transaction fail unless the lock is still held with this token. If Guard succeeds, no
// other client acquires the lock before tx ends, however long this program is paused. So what tx
// writes is written under the lock. It is stronger than a token that is compared by the resource, and
// works only for data in the database of the lock.
//
// It fails with recipes.ErrNotHeld if the lock was released, or has been acquired since, or if tx reads a
// state from before the lock was acquired. At the isolation levels repeatable read, which is the default of
// MySQL, and serializable, a transaction reads the state of its first read, and Guard is a read. So acquire all
// locks of tx before its first read, and call Guard first in tx.
//
// At these levels Guard may fail, too, if it meets a renewal, or if the lock was renewed or released since the first
// read. PostgreSQL answers 40001. MariaDB with innodb_snapshot_isolation, the default since 11.6, answers with error
// 1020, and rolls tx back. Then repeat the transaction.
//
// Guard waits for a renewal of the lease, and renewals wait for tx. So tx must be shorter than a third of the
// lease. MySQL ends the wait after innodb_lock_wait_timeout. Then Guard fails with error 1205 of MySQL.
// Several transactions may guard with one token at a time. After an error roll tx back: it may have locked the
// row. After a rollback to a savepoint from before Guard, tx is guarded no more.
func (l *Lock) Guard(ctx context.Context, tx *sql.Tx, token int64) error {
	if err := l.checkTx(ctx, tx); err != nil {
		return fmt.Errorf("guard: %w", err)
	}
	for _, s := range l.e.c.rows.guardStatements {
		if err := l.guard(ctx, tx, s, token); err != nil {
			return fmt.Errorf("guard %s: %w", l.e.name, err)
		}
	}
	return nil
}

func (l *Lock) guard(ctx context.Context, tx *sql.Tx, s statement, token int64) error {
	var found int64
	err := tx.QueryRowContext(ctx, s.text, s.args(values{name: l.e.name, fence: token})...).Scan(&found)
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("%w: token %d is not that of the holder in the state that the transaction reads",
			recipes.ErrNotHeld, token)
	}
	return err
}
