package sqllock

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/docent-zk/docent/recipes"
)

// KeyLock is a lock in a table with a unique key, as many programs have it: a row is the lock, INSERT
// acquires it, and DELETE releases it. It is a recipes.Locker, for sharing locks with these programs.
// New ones use Lock. It is safe for concurrent use, and does not re-enter. The zero value fails to
// acquire.
//
// A row has the name of the lock, a text of its holder that differs from those of all other holds, and
// until when it is the holder's. The hold renews that at a third of the lease, and others replace a row
// whose time is over. All times are CURRENT_TIMESTAMP of the database, as its sessions show it. A row
// whose time is NULL stays until it is deleted. A release deletes the row only if it has that holder.
//
// What a KeyLock lacks:
//
//   - Its holds have no fencing token: Hold.Token returns 0.
//   - A request that arrives late, after its client has given it up, acquires the lock, until the lease
//     ends.
//   - A program that deletes a row without comparing the holder ends a hold. The hold learns it after a
//     third of the lease. If it is released before, Release returns nil.
//   - TryAcquire waits while another program has inserted the row in a transaction that is open.
//   - WithNotify and WithFairQueue do not apply.
type KeyLock struct{ e engine }

// KeyTable describes a table of KeyLocks: see WithKeyTable. Table is required.
//
// The columns must hold their values unaltered. A MySQL that is not strict may cut a value or replace its letters. A
// row is known to be that of an acquire only by the first 10 of the random letters of its holder. If a column cuts the
// holder to a part of the label, or alters the name, the row may be that of another program, so it stays. Then no
// acquire succeeds: TryAcquire fails with recipes.ErrNotAcquired, and Acquire waits until its context ends. A row that
// they leave blocks the lock for a lease.
type KeyTable struct {
	// Table is the name of the table, perhaps with its schema.
	Table string
	// Name is the column of the lock's name, which has a unique key. "" means "name".
	Name string
	// Holder is the column of the holder, a text. A holder is the label of WithOwner, a space, and 26
	// random letters and digits, or only these if the label is "". It must fit into the column. Acquires fail if the
	// column alters it and leaves the first 10 of the 26. Spaces at the end, as CHAR has them, do not count. In MySQL
	// the holders of all programs must be text in the character set of the connection. "" means "holder".
	Holder string
	// Expires is the column of the time, in PostgreSQL timestamptz, in MySQL DATETIME(6) or
	// TIMESTAMP(6). "" means "expires_at". If it has whole seconds, a hold may last up to a second shorter, so
	// the lease should be 5 s or more. If it is without a time zone, all programs must have the same one in
	// their sessions, without daylight saving: in MySQL that is also so for TIMESTAMP.
	Expires string
}

// check returns an error if a name is not valid.
func (k KeyTable) check() error {
	if err := checkTable(k.Table); err != nil {
		return err
	}
	return checkColumns(k.Name, k.Holder, k.Expires)
}

func (k KeyTable) complete() KeyTable {
	for column, name := range map[*string]string{&k.Name: "name", &k.Holder: "holder", &k.Expires: "expires_at"} {
		if *column == "" {
			*column = name
		}
	}
	return k
}

// NewKeyLock returns the lock with a name in the table of WithKeyTable. The name has 1 to 255 bytes of
// UTF-8. The table decides which names are equal, and how long they may be. NewKeyLock makes no request.
// It returns an error if c is nil, a zero value or without WithKeyTable, or if the name is not valid.
func NewKeyLock(c *Client, name string) (*KeyLock, error) {
	err := c.check(name)
	if err == nil && c.keys == nil {
		err = errors.New("the client has no table for it: see WithKeyTable")
	}
	if err != nil {
		return nil, fmt.Errorf("sqllock: key lock: %w", err)
	}
	k := kind{open: func() table { return c.keys }, limit: c.limit(), gates: &c.keys.gates}
	return &KeyLock{engine{c, k, name}}, nil
}

// Name returns the name of the lock.
func (l *KeyLock) Name() string { return l.e.name }

// Acquire waits until the lock is acquired. It has the order, the ends and the errors of Acquire of
// Lock. It fails at once, too, if the column alters its holder: see KeyTable. A request that may still be
// applied is undone in the background, as far as a KeyLock can.
func (l *KeyLock) Acquire(ctx context.Context) (*recipes.Hold, error) {
	return l.e.acquire(ctx, (*attempt).wait)
}

// TryAcquire fails with recipes.ErrNotAcquired if the lock is held. Otherwise it fails like Acquire, at
// the first error. Only an acquire whose reply was lost is looked for and sent again. If that does not
// tell whether it was applied, TryAcquire returns the error of the reply.
func (l *KeyLock) TryAcquire(ctx context.Context) (*recipes.Hold, error) {
	return l.e.acquire(ctx, (*attempt).try)
}

// AcquireWithin is Acquire that waits at most d, or TryAcquire if d is 0 or less: see
// recipes.AcquireWithin.
func (l *KeyLock) AcquireWithin(ctx context.Context, d time.Duration) (*recipes.Hold, error) {
	return recipes.AcquireWithin(ctx, l, d)
}

// Do acquires the lock, calls fn with a context that ends with the hold, and releases the hold: see
// recipes.Do.
func (l *KeyLock) Do(ctx context.Context, fn func(ctx context.Context, hold *recipes.Hold) error) error {
	return recipes.Do(ctx, l, fn)
}

// The statements.
const (
	readKeyText  = `SELECT {holder}, {left} FROM {table} WHERE {name} = :name`
	renewKeyText = `UPDATE {table} SET {until} = {later}
		WHERE {name} = :name AND {is owner} AND {until} > {now}`
	releaseKeyText = `DELETE FROM {table} WHERE {name} = :name AND {is owner}`
)

// keys is a table of KeyLocks. Each row is a lock that is held, unless its time is over.
type keys struct {
	*database
	gates gates

	readStatement, acquireStatement, renewStatement, releaseStatement statement
}

func newKeys(d *database, k KeyTable) *keys {
	of := func(text string) statement {
		return d.dialect.statement(text, "{table}", k.Table, "{name}", k.Name, "{holder}", k.Holder,
			"{until}", k.Expires, "{mysql now}", "CURRENT_TIMESTAMP(6)")
	}
	return &keys{
		database: d, readStatement: of(readKeyText), acquireStatement: of("{acquire key}"),
		renewStatement: of(renewKeyText), releaseStatement: of(releaseKeyText),
	}
}

// read reads the row. One that is missing is free, and needs no insert before the acquire. It returns an alteredError
// if the row is that of the request, with another holder.
func (t *keys) read(ctx context.Context, q request) (row, error) {
	var holder sql.NullString
	var left sql.NullInt64
	s := t.readStatement
	err := t.db.QueryRowContext(ctx, s.text, s.args(q.values())...).Scan(&holder, &left)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return row{there: true}, nil
	case err != nil:
		return row{}, err
	}
	r := row{there: true, owner: strings.TrimRight(holder.String, " "), left: maxLeft} // CHAR has spaces at the end
	if r.owner == "" {
		r.owner = "unknown"
	}
	if altered(q.owner, r.owner) {
		return row{there: true}, &alteredError{holder: q.owner, made: r.owner}
	}
	if left.Valid {
		r.left = duration(left.Int64)
	}
	return r, nil
}

func (t *keys) insert(context.Context, string) error { return nil }

// acquire reads the row afterwards: how many rows a statement has changed depends on the settings of
// the driver, and a column of whole seconds has cut the time.
func (t *keys) acquire(ctx context.Context, q request) (time.Duration, error) {
	if _, err := t.change(ctx, t.acquireStatement, q.values()); err != nil {
		return 0, err
	}
	r, err := t.read(ctx, q)
	return r.leftTo(q), err
}

// alteredError means that the column of the holder has altered that of a request, so no acquire can succeed.
type alteredError struct{ holder, made string }

func (e *alteredError) Error() string {
	return fmt.Sprintf("the row was altered: the column has made %q of the holder %q", e.made, e.holder)
}

func (e *alteredError) Is(err error) bool { return err == errAltered }

// errAltered is any alteredError.
var errAltered = errors.New("the row was altered")

// altered reports whether a column has altered a holder: what was found has enough of the random letters, which end
// the holder. No other program has these.
func altered(holder, found string) bool {
	const enough = 10
	random := holder[len(holder)-len(rand.Text()):]
	return found != holder && strings.Contains(found, random[:enough])
}

// leftTo returns for how long a row is that of a request.
func (r row) leftTo(q request) time.Duration {
	if r.owner != q.owner {
		return 0
	}
	return max(r.left, 0)
}

// renew reads the row afterwards, as acquire does. A column of whole seconds may not have changed.
func (t *keys) renew(ctx context.Context, q request) (time.Duration, error) {
	if _, err := t.change(ctx, t.renewStatement, q.values()); err != nil {
		return 0, err
	}
	r, err := t.read(ctx, q)
	if errors.Is(err, errAltered) { // since the acquire, by another program
		return 0, nil
	}
	return r.leftTo(q), err
}

func (t *keys) why(ctx context.Context, q request) error {
	r, err := t.read(ctx, q)
	return r.differsFromKey(q, err)
}

// differsFromKey is row.differs for a KeyLock.
func (r row) differsFromKey(q request, err error) error {
	switch {
	case err != nil:
		return errChanged
	case r.owner == "":
		return errors.New("its row was deleted")
	case r.owner != q.owner:
		return fmt.Errorf("its row is that of another holder, %q", r.owner)
	}
	return errEnded
}

// release returns nil if there is no row: a release before may have deleted it.
func (t *keys) release(ctx context.Context, q request) error {
	if changed, err := t.change(ctx, t.releaseStatement, q.values()); changed || err != nil {
		return err
	}
	r, err := t.read(ctx, q)
	if err == nil && r.owner == "" {
		return nil
	}
	return fmt.Errorf("%w: %w", recipes.ErrForeignLost, r.differsFromKey(q, err))
}

// undo deletes the row of the request, also if it has another holder.
func (t *keys) undo(ctx context.Context, q request) error {
	if changed, err := t.change(ctx, t.releaseStatement, q.values()); changed || err != nil {
		return err
	}
	_, err := t.read(ctx, q)
	var a *alteredError
	if errors.As(err, &a) {
		q.owner = a.made
		_, err = t.change(ctx, t.releaseStatement, q.values())
	}
	return err
}

func (t *keys) leave(context.Context, request, bool) error { return nil }

func (t *keys) tokenOf(request) int64 { return 0 }

// duration returns a time in microseconds, which may be far ahead or long ago.
func duration(microseconds int64) time.Duration {
	most := maxLeft.Microseconds()
	return time.Duration(max(min(microseconds, most), -most)) * time.Microsecond
}
