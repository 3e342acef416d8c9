package sqllock

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/option"
	"github.com/docent-zk/docent/recipes"
)

// ErrClosed means that the client is closed.
var ErrClosed = errors.New("sqllock: client closed")

// Client makes the locks of one table. It is safe for concurrent use. A program needs one for each
// database. The zero value fails to make locks.
type Client struct {
	*config
	rows     *rows // nil in tests without a database
	leases   kind  // of Lock
	sessions *sessions
	keys     *keys // nil: there are none
	gates    gates
	ctx      context.Context // ends when the client is closed
	end      context.CancelFunc
	over     context.Context // ends when Close waits no longer for the database
	giveUp   context.CancelFunc

	mu     sync.Mutex
	closed bool
	busy   sync.WaitGroup // acquires, renewals and cleanups
}

// NewClient returns a client for the locks in a database, which must have the table: see
// Client.CreateTable. It makes no request. The database remains the caller's: close it after the
// client. Except for a SessionLock, a lock has no connection of its own. The statements of acquires and
// renewals need one for a moment, so a limit of connections (sql.DB.SetMaxOpenConns) must leave one for
// renewals. Its connections must commit each statement by itself (autocommit), as is the default.
//
// NewClient returns an error if db is nil, or if the dialect or an option is not valid.
func NewClient(db *sql.DB, dialect Dialect, opts ...Option) (*Client, error) {
	if db == nil {
		return nil, errors.New("sqllock: new client: the database is nil")
	}
	if err := dialect.check(); err != nil {
		return nil, fmt.Errorf("sqllock: new client: %w", err)
	}
	cfg := defaults(dialect)
	if err := option.Apply(cfg, opts); err != nil {
		return nil, fmt.Errorf("sqllock: new client: %w", err)
	}
	if err := checkTable(queueOf(cfg.table)); cfg.fair && err != nil {
		return nil, fmt.Errorf("sqllock: new client: WithFairQueue: %w", err)
	}
	d := &database{db: db, dialect: dialect, lease: cfg.lease, channel: cfg.channel}
	t := newRows(d, cfg)
	c := newClient(cfg, func() table { return t })
	c.rows = t
	if cfg.fair {
		c.gates.open = true
		q := newQueues(t, c)
		c.leases.open = func() table { return &waiter{queues: q} }
	}
	c.sessions = newSessions(d, cfg)
	if cfg.keyTable != nil {
		c.keys = newKeys(d, *cfg.keyTable)
	}
	return c, nil
}

func newClient(cfg *config, open func() table) *Client {
	c := &Client{config: cfg}
	c.leases = kind{open: open, limit: c.limit(), gates: &c.gates}
	c.ctx, c.end = context.WithCancel(context.Background())
	c.over, c.giveUp = context.WithCancel(context.Background())
	if c.listen != nil {
		c.busy.Go(c.listenOn)
	}
	return c
}

// CreateTable creates the table of locks, and that of WithFairQueue, unless they exist: see
// Dialect.CreateTable.
func (c *Client) CreateTable(ctx context.Context) error {
	switch {
	case c.config == nil:
		return fmt.Errorf("sqllock: create table: %w", framework.ErrZeroValue)
	case ctx == nil:
		return fmt.Errorf("sqllock: create table: %w", framework.ErrNilContext)
	}
	create := []func(table string) (string, error){c.dialect.CreateTable}
	if c.fair {
		create = append(create, c.dialect.CreateQueue)
	}
	for _, statement := range create {
		text, err := statement(c.config.table)
		if err != nil {
			return err
		}
		if err := c.createOne(ctx, text); err != nil {
			return fmt.Errorf("sqllock: create table %s: %w", c.config.table, err)
		}
	}
	return nil
}

// createOne runs a statement that creates a table unless it exists. In PostgreSQL such a statement fails
// if another client is about to create that table. It can fail again when the table is there, until all
// connections have heard of it. So the clients create it one after the other.
func (c *Client) createOne(ctx context.Context, text string) error {
	tx, err := c.rows.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if c.dialect == PostgreSQL {
		if _, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock($1)", c.sessionKey("")); err != nil {
			return err
		}
	}
	if _, err := tx.ExecContext(ctx, text); err != nil {
		return err
	}
	return tx.Commit()
}

// check returns an error if the client cannot make a lock with that name.
func (c *Client) check(name string) error {
	switch {
	case c == nil:
		return errors.New("nil client")
	case c.config == nil:
		return fmt.Errorf("client: %w", framework.ErrZeroValue)
	case name == "" || len(name) > maxName || !utf8.ValidString(name) || strings.Contains(name, "\x00"):
		return fmt.Errorf("the name %q has not 1 to %d bytes of UTF-8 without zeros", name, maxName)
	}
	return nil
}

// newOwner returns the owner of one acquire, for the column of that name.
func (c *Client) newOwner() string {
	return strings.TrimPrefix(c.owner+" "+rand.Text(), " ")
}

// Close ends all holds and waits of the client, and releases the locks. It waits for all goroutines
// of the client, and for the function of WithNotify. If the database does not answer, or refuses all
// requests, that takes up to a third of the lease, at most 10 s, and the locks stay until their leases
// end. So they do if no server is there for a new connection, after which Close does not try again. Of a name with
// several addresses the first one counts. Further calls wait, too. Close returns an error only for the zero
// value. Do not call it from a logger or from metrics of the client: it would wait for itself.
func (c *Client) Close() error {
	if c.config == nil {
		return fmt.Errorf("sqllock: close: %w", framework.ErrZeroValue)
	}
	c.mu.Lock()
	c.closed = true
	c.end() // before a hold finds that the client is closed
	c.mu.Unlock()
	defer time.AfterFunc(2*c.limit(), c.giveUp).Stop() // then a request on a dead connection was repeated
	c.busy.Wait()
	return nil
}

// begin starts what Close waits for. It returns ErrClosed if the client is closed.
func (c *Client) begin() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	c.busy.Add(1)
	return nil
}

// background calls fn in a goroutine, unless the client is closed.
func (c *Client) background(fn func()) bool {
	if c.begin() != nil {
		return false
	}
	go func() {
		defer c.busy.Done()
		fn()
	}()
	return true
}

// limit is how long a statement may take. A release of at most 10 s has time for a second one.
func (c *Client) limit() time.Duration { return min(c.lease/6, 3*time.Second) }

// margin is how much earlier a hold ends than its lease. It is for clocks with different rates.
func (c *Client) margin() time.Duration { return c.lease / 20 }

// deadline returns when a hold ends, after a request that was sent at a time and has left it the lock.
func (c *Client) deadline(sent time.Time, left time.Duration) time.Time {
	return sent.Add(min(left, c.lease) - c.margin())
}

// cleanup calls fn until it succeeds, or says that the lock was lost, for at most a lease: then nothing
// is left to clean up. After the client is closed, it does so until over ends or a new connection is
// refused. limit is how long the first call may take.
func (c *Client) cleanup(limit time.Duration, fn func(ctx context.Context) error) error {
	return c.retry(context.WithoutCancel(c.ctx), limit, fn)
}

// retry is cleanup that ends with ctx, too.
func (c *Client) retry(ctx context.Context, limit time.Duration, fn func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.lease)
	defer cancel()
	defer context.AfterFunc(c.over, cancel)()
	end, _ := ctx.Deadline()
	for next := limit; ; {
		closed, begun := c.ctx.Err() != nil, time.Now()
		err := c.call(ctx, next, fn)
		switch {
		case err == nil, errors.Is(err, recipes.ErrForeignLost), errors.Is(err, errSessionEnded):
			return err
		case closed && refusesConnections(err):
			return err
		}
		next = c.after(next, begun, end)
		select {
		case <-time.After(jitter(c.limit() / 10)):
		case <-ctx.Done():
			return err
		}
	}
}

// refusedOnWindows is WSAECONNREFUSED, which is not ECONNREFUSED of package syscall.
const refusedOnWindows = syscall.Errno(10061)

// refusesConnections reports whether a driver could not connect, because no server is there. A Unix socket
// is missing then. A driver that has tried several hosts joins their errors. If it leaves a name with several
// addresses to package net, the error is that of the first one.
func refusesConnections(err error) bool {
	switch err := err.(type) {
	case *net.OpError:
		return err.Op == "dial" && (errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, refusedOnWindows) ||
			errors.Is(err, fs.ErrNotExist))
	case interface{ Unwrap() []error }:
		all := err.Unwrap()
		return len(all) > 0 && !slices.ContainsFunc(all, func(err error) bool { return !refusesConnections(err) })
	case interface{ Unwrap() error }:
		return refusesConnections(err.Unwrap())
	}
	return false
}

// call makes one request. When the client is closed, it may take no longer than any other.
func (c *Client) call(ctx context.Context, limit time.Duration, fn func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.ctx, func() { time.AfterFunc(c.limit(), cancel) })()
	return within(ctx, limit, fn)
}

// after returns how long a request may take after one that has failed. If that has got no answer in its
// time, its connection was closed. The new one takes time, too, so the request may take twice as long. But
// it may get a dead connection again, so it leaves time for another request before the end.
func (c *Client) after(limit time.Duration, begun, end time.Time) time.Duration {
	if time.Since(begun) < limit {
		return limit
	}
	return max(c.limit(), min(2*c.limit(), time.Until(end)-c.limit()))
}

// listenOn receives notifications.
func (c *Client) listenOn() {
	for c.ctx.Err() == nil {
		err := c.listen(c.ctx, c.channel, c.gates.wake)
		if c.ctx.Err() != nil {
			return
		}
		c.logger.Named("sqllock").Warn("cannot listen for releases: waiters poll",
			zap.String("channel", c.channel), zap.Error(err))
		select {
		case <-time.After(jitter(time.Second)):
		case <-c.ctx.Done():
		}
	}
}
