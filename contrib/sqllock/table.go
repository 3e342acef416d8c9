package sqllock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// row is what the database has of a lock.
type row struct {
	there bool
	fence int64
	owner string        // "": there is none
	left  time.Duration // how long it is the owner's, by the clock of the database
	clock int64         // of the database, in microseconds since 1970
}

func (r row) free() bool { return r.owner == "" || r.left <= 0 }

// next returns the token of the next hold. The clock makes it larger than tokens of a row that was
// deleted, or that a failover has lost.
func (r row) next() int64 { return max(r.fence+1, r.clock) }

// request is an acquire. It changes the row only as long as that has the token seen, so it can be
// repeated, and undone before it arrives.
type request struct {
	name, owner string
	seen, next  int64
}

func (q request) values() values {
	return values{name: q.name, owner: q.owner, seen: q.seen, next: q.next}
}

// grant is a request that was applied: its token is next.
func (q request) grant() values { return values{name: q.name, owner: q.owner, fence: q.next} }

// table is the table of locks. Each method is one statement, with a transaction of its own.
type table interface {
	read(ctx context.Context, name string) (row, error)
	insert(ctx context.Context, name string) error
	acquire(ctx context.Context, q request) (applied bool, err error)
	renew(ctx context.Context, q request) (applied bool, err error)
	release(ctx context.Context, q request) error
	undo(ctx context.Context, q request) error
}

// database is the table in a database.
type database struct {
	db      *sql.DB
	lease   time.Duration
	channel string // for notifications; "": there are none

	readStatement, insertStatement, acquireStatement, renewStatement statement
	releaseStatement, undoStatement                                  statement
	lockRowStatement, takeStatement, guardStatement                  statement
}

func newDatabase(db *sql.DB, c *config) *database {
	make := func(text string) statement { return c.dialect.statement(text, c.table) }
	notify := func(text string) statement {
		if c.channel != "" {
			text = fmt.Sprintf(notifyText, text)
		}
		return make(text)
	}
	return &database{
		db: db, lease: c.lease, channel: c.channel,
		readStatement: make(readText), insertStatement: make(insertText),
		acquireStatement: make(acquireText), renewStatement: make(renewText),
		releaseStatement: notify(releaseText), undoStatement: notify(undoText),
		lockRowStatement: make(readText + " FOR UPDATE"), takeStatement: notify(takeText),
		guardStatement: make(guardText),
	}
}

// queries is what *sql.DB and *sql.Tx have in common.
type queries interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func (d *database) read(ctx context.Context, name string) (row, error) {
	return d.readRow(ctx, d.db, d.readStatement, name)
}

func (d *database) readRow(ctx context.Context, db queries, s statement, name string) (row, error) {
	r, left := row{there: true}, int64(0)
	err := db.QueryRowContext(ctx, s.text, s.args(values{name: name})...).Scan(&r.fence, &r.owner, &left, &r.clock)
	if errors.Is(err, sql.ErrNoRows) {
		return row{}, nil
	}
	r.left = time.Duration(left) * time.Microsecond
	return r, err
}

func (d *database) insert(ctx context.Context, name string) error {
	return d.exec(ctx, d.db, d.insertStatement, values{name: name})
}

func (d *database) acquire(ctx context.Context, q request) (bool, error) {
	return d.change(ctx, d.acquireStatement, q.values())
}

func (d *database) renew(ctx context.Context, q request) (bool, error) {
	return d.change(ctx, d.renewStatement, q.grant())
}

func (d *database) release(ctx context.Context, q request) error {
	return d.exec(ctx, d.db, d.releaseStatement, q.grant())
}

func (d *database) undo(ctx context.Context, q request) error {
	return d.exec(ctx, d.db, d.undoStatement, q.values())
}

func (d *database) exec(ctx context.Context, db queries, s statement, v values) error {
	v.channel = d.channel
	_, err := db.ExecContext(ctx, s.text, s.args(v)...)
	return err
}

// change reports whether a statement has changed a row.
func (d *database) change(ctx context.Context, s statement, v values) (bool, error) {
	v.lease = d.lease
	result, err := d.db.ExecContext(ctx, s.text, s.args(v)...)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}
