package sqllock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/docent-zk/docent/recipes"
)

// row is what the database has of a lock.
type row struct {
	there bool
	fence int64
	next  int64         // the token of the next hold, or less than fence if none is larger
	owner string        // "": there is none
	left  time.Duration // how long it is the owner's, by the clock of the database
}

func (r row) free() bool { return r.owner == "" || r.left <= 0 }

// checkNext returns an error if no token is larger than that of the row.
func (r row) checkNext() error {
	if r.next < r.fence {
		return fmt.Errorf("%w: its token is %d", errLastToken, r.fence)
	}
	return nil
}

var errLastToken = errors.New("there is no larger token")

// request is an acquire. It changes the row only as long as that has the token seen, so it can be
// repeated, and undone before it arrives.
type request struct {
	name, owner string
	seen, next  int64
	waiting     bool // the database may keep it waiting
}

func (q request) values() values {
	return values{name: q.name, owner: q.owner, seen: q.seen, next: q.next}
}

// grant is a request that was applied: its token is next.
func (q request) grant() values { return values{name: q.name, owner: q.owner, fence: q.next} }

// table is what the database has of one kind of locks.
type table interface {
	// read returns the row that it has read, also if something that it does after it fails.
	read(ctx context.Context, q request) (row, error)
	// insert inserts the row that read has not found.
	insert(ctx context.Context, name string) error
	// acquire and renew return for how long the lock is that of the request, by the clock of the database, or
	// at most as long as the lease. It is 0 if the request was not applied.
	acquire(ctx context.Context, q request) (left time.Duration, err error)
	renew(ctx context.Context, q request) (left time.Duration, err error)
	// why returns why a renewal was not applied.
	why(ctx context.Context, q request) error
	// release fails with recipes.ErrForeignLost if another client has had the lock since.
	release(ctx context.Context, q request) error
	// undo has a request change nothing any more, whether it was applied or is still under way.
	undo(ctx context.Context, q request) error
	// leave gives up what an attempt has besides its request, such as a connection.
	leave(ctx context.Context, q request, won bool) error
	// tokenOf returns the token of a request that was applied.
	tokenOf(q request) int64
}

// database runs statements. Each has a transaction of its own.
type database struct {
	db      *sql.DB
	dialect Dialect
	lease   time.Duration
	channel string // for notifications; "": there are none
}

// rows is the table of locks with a lease.
type rows struct {
	*database
	there names // rows that are in the table, unless they were deleted

	readStatement, insertStatement, acquireStatement, renewStatement statement
	releaseStatement, undoStatement                                  statement
	lockRowStatement, takeStatement                                  statement
	guardStatements                                                  []statement
}

func newRows(d *database, c *config) *rows {
	t := &rows{
		database:      d,
		readStatement: c.statement(readText), insertStatement: c.statement(insertText),
		acquireStatement: c.statement(acquireText), renewStatement: c.statement(renewText),
		releaseStatement: c.notifying(releaseText), undoStatement: c.notifying(undoText),
		lockRowStatement: c.statement(readText + " FOR UPDATE"), takeStatement: c.notifying(takeText),
		guardStatements: []statement{c.statement(guardText + " {for share}")},
	}
	if d.dialect == MySQL {
		// A locking read of MySQL finds the row as it is, although the transaction reads an older state. The other
		// read is of that state, and is first: if it finds no such row, nothing is locked, except at serializable,
		// where each read locks.
		t.guardStatements = append([]statement{c.statement(guardText)}, t.guardStatements...)
	}
	return t
}

// States of PostgreSQL.
const (
	lockTimeout   = "55P03"
	serialization = "40001"
	canceled      = "57014"
)

// hasState reports whether PostgreSQL has answered with a state. Its drivers have that method.
func hasState(err error, state string) bool {
	var answer interface{ SQLState() string }
	return errors.As(err, &answer) && answer.SQLState() == state
}

// within makes one request. It is made again if PostgreSQL has not applied it because of another one, at
// its isolation levels repeatable read and serializable. The error is that of ofRequest.
func within(ctx context.Context, limit time.Duration, fn func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := fn(ctx)
		if !hasState(err, serialization) {
			return ofRequest(err)
		}
		select {
		case <-time.After(jitter(minPause)):
		case <-ctx.Done():
			return err
		}
	}
}

// ofRequest returns the error of a request so that it matches no error of a context. What has ended may be the
// time of the request only, and its caller would take that for its own context.
func ofRequest(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return fmt.Errorf("a request has got no answer: %v", err)
	}
	return err
}

// queries is what *sql.DB and *sql.Tx have in common.
type queries interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func (t *rows) read(ctx context.Context, q request) (row, error) {
	r, err := readRow(ctx, t.db, t.readStatement, q.values())
	if r.there && err == nil {
		t.there.add(q.name)
	}
	return r, err
}

// maxLeft is how long a row may be left to its owner, as far as a waiter is concerned. An operator may
// have written a time far ahead.
const maxLeft = 100 * 365 * 24 * time.Hour

// readRow reads a row with a lease, and more columns. The clock makes the next token larger than tokens
// of a row that was deleted, or that a failover has lost.
func readRow(ctx context.Context, db queries, s statement, v values, more ...any) (row, error) {
	var fence, left, clock int64
	var owner sql.NullString
	columns := append([]any{&fence, &owner, &left, &clock}, more...)
	switch err := db.QueryRowContext(ctx, s.text, s.args(v)...).Scan(columns...); {
	case errors.Is(err, sql.ErrNoRows):
		return row{}, nil
	case err != nil:
		return row{}, err
	}
	next := clock
	if fence < math.MaxInt64 {
		next = max(fence+1, clock)
	}
	return row{there: true, fence: fence, next: next, owner: owner.String, left: duration(left)}, nil
}

func (t *rows) insert(ctx context.Context, name string) error {
	return t.exec(ctx, t.db, t.insertStatement, values{name: name})
}

func (t *rows) acquire(ctx context.Context, q request) (time.Duration, error) {
	return t.leased(t.change(ctx, t.acquireStatement, q.values()))
}

func (t *rows) renew(ctx context.Context, q request) (time.Duration, error) {
	return t.leased(t.change(ctx, t.renewStatement, q.grant()))
}

// leased returns what acquire and renew return if a request that was applied has the whole lease.
func (d *database) leased(applied bool, err error) (time.Duration, error) {
	if !applied || err != nil {
		return 0, err
	}
	return d.lease, nil
}

func (t *rows) release(ctx context.Context, q request) error {
	if changed, err := t.change(ctx, t.releaseStatement, q.grant()); changed || err != nil {
		return err
	}
	r, err := t.read(ctx, q)
	if err == nil && r.there && r.fence == q.next && r.owner == "" { // it was released before
		return nil
	}
	return fmt.Errorf("%w: %w", recipes.ErrForeignLost, r.differs(q, err))
}

func (t *rows) undo(ctx context.Context, q request) error {
	return t.exec(ctx, t.db, t.undoStatement, q.values())
}

func (t *rows) leave(context.Context, request, bool) error { return nil }

func (t *rows) tokenOf(q request) int64 { return q.next }

// why reads the row again.
func (t *rows) why(ctx context.Context, q request) error {
	r, err := t.read(ctx, q)
	return r.differs(q, err)
}

// differs returns in what the row is no longer that of a grant. err is the error of the read.
func (r row) differs(q request, err error) error {
	switch {
	case err != nil:
		return errChanged
	case !r.there:
		return errors.New("its row was deleted")
	case r.fence != q.next:
		return fmt.Errorf("there is a later token, %d", r.fence)
	case r.owner != q.owner:
		return errors.New("its owner was removed")
	}
	return errEnded
}

// Why a grant was lost.
var (
	errEnded   = errors.New("its lease has ended by the clock of the database")
	errChanged = errors.New("its row has changed")
)

func (d *database) exec(ctx context.Context, db queries, s statement, v values) error {
	v.channel = d.channel
	_, err := db.ExecContext(ctx, s.text, s.args(v)...)
	return err
}

// change reports whether a statement has changed a row.
func (d *database) change(ctx context.Context, s statement, v values) (bool, error) {
	v.lease, v.channel = d.lease, d.channel
	result, err := d.db.ExecContext(ctx, s.text, s.args(v)...)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}
