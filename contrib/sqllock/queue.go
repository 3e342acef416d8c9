package sqllock

import (
	"context"
	"fmt"
	"time"
)

// CreateQueue returns the statement that creates the table of waiters beside a table of locks, unless
// it exists: see WithFairQueue. Its name is that of the table with "_queue" at the end. CreateQueue
// returns an error if d or a name is not valid.
func (d Dialect) CreateQueue(table string) (string, error) {
	if err := d.check(); err != nil {
		return "", fmt.Errorf("sqllock: create queue: %w", err)
	}
	if err := checkTable(queueOf(table)); err != nil {
		return "", fmt.Errorf("sqllock: create queue: %w", err)
	}
	return fmt.Sprintf(queueTables[d], queueOf(table)), nil
}

// queueOf returns the name of the table of waiters.
func queueOf(table string) string { return table + "_queue" }

var queueTables = map[Dialect]string{
	PostgreSQL: `CREATE TABLE IF NOT EXISTS %s (
	ticket      bigserial PRIMARY KEY,
	name        varchar(255) COLLATE "C" NOT NULL,
	owner       varchar(255) NOT NULL,
	valid_until timestamptz NOT NULL,
	UNIQUE (name, owner)
)`,
	MySQL: `CREATE TABLE IF NOT EXISTS %s (
	ticket      BIGINT AUTO_INCREMENT PRIMARY KEY,
	name        VARBINARY(255) NOT NULL,
	owner       VARBINARY(255) NOT NULL,
	valid_until DATETIME(6) NOT NULL,
	UNIQUE (name, owner)
) ENGINE=InnoDB`,
}

// The statements.
const (
	// A waiter without a ticket is behind all others.
	readFairText = `SELECT fence, owner, {left}, {clock}, (
			SELECT COUNT(*) FROM {queue} AS q WHERE q.name = :name AND q.valid_until > {now} AND q.ticket < COALESCE(
				(SELECT mine.ticket FROM {queue} AS mine WHERE mine.name = :name AND mine.owner = :owner),
				9223372036854775807))
		FROM {table} WHERE name = :name`
	// A ticket is not valid until it is renewed. So one that is inserted after its waiter has left keeps
	// the lock from no other.
	enterText = `INSERT INTO {queue} (name, owner, valid_until) VALUES (:name, :owner, {now}) {unless there}`
	standText = `UPDATE {queue} SET valid_until = {later} WHERE name = :name AND owner = :owner`
	// Tickets that have just been inserted stay.
	leaveText = `DELETE FROM {queue} WHERE name = :name
		AND (owner = :owner OR valid_until <= {now} - INTERVAL '1' MINUTE)`
)

// queues has the statements of a fair queue.
type queues struct {
	*rows
	gates *gates
	next  time.Duration // the longest pause of the next one of the queue; others have a multiple of it

	readStatement, enterStatement, standStatement, leaveStatement statement
}

func newQueues(t *rows, c *Client) *queues {
	return &queues{
		rows: t, gates: &c.gates, next: c.poll / 8, readStatement: c.statement(readFairText),
		enterStatement: c.statement(enterText), standStatement: c.statement(standText),
		leaveStatement: c.notifying(leaveText),
	}
}

// waiter is an attempt that stands in the queue if it waits. It has a ticket there with a lease, which
// it renews by standing again.
type waiter struct {
	*queues
	refused bool      // the last acquire was not applied: a transaction may have the row, which looks free
	stands  bool      // it may have a ticket
	stood   time.Time // when the last request for it that has succeeded was sent
}

// read reads the row and how many are ahead in the queue. If the lock is not free for it, or was not for
// the last acquire, a waiter stands in the queue.
func (w *waiter) read(ctx context.Context, q request) (row, error) {
	var ahead int
	r, err := readRow(ctx, w.db, w.readStatement, q.values(), &ahead)
	if err != nil || !r.there {
		return r, err
	}
	again := w.lease / 3
	if ahead > 0 && r.free() {
		r.owner, r.left = "a waiter", again
	}
	if !q.waiting || r.free() && !w.refused {
		return r, nil
	}
	r.left = min(r.left, again, time.Duration(min(ahead, mostAhead)+1)*w.next)
	if time.Since(w.stood) < again {
		return r, nil
	}
	return r, w.stand(ctx, q)
}

// mostAhead is how many of those that are ahead count, so that the product with a pause is not too large.
const mostAhead = 10_000

func (w *waiter) acquire(ctx context.Context, q request) (time.Duration, error) {
	left, err := w.queues.acquire(ctx, q)
	w.refused = left <= 0
	return left, err
}

// stand takes a ticket if there is none, and renews it.
func (w *waiter) stand(ctx context.Context, q request) error {
	w.stands = true
	asked := time.Now()
	if err := w.exec(ctx, w.db, w.enterStatement, q.values()); err != nil {
		return err
	}
	renewed, err := w.change(ctx, w.standStatement, q.values())
	if renewed {
		w.stood = asked
	}
	return err
}

// leave deletes the ticket, and those whose leases have ended a minute before.
func (w *waiter) leave(ctx context.Context, q request, _ bool) error {
	if !w.stands {
		return nil
	}
	if err := w.exec(ctx, w.db, w.leaveStatement, q.values()); err != nil {
		return err
	}
	w.gates.wake(q.name)
	return nil
}
