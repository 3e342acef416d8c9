package sqllock_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/contrib/sqllock"
	"github.com/docent-zk/docent/framework/metrics"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/locktest"
)

// lease is long for a busy machine: a release that takes longer fails.
const lease = 15 * time.Second

// site is a database of one test.
type site struct {
	*server
	name string
	db   *sql.DB // of an operator
}

var sites sync.Map // of testing.TB

func (s *server) site(t testing.TB) *site {
	t.Helper()
	if one, ok := sites.Load(t); ok {
		return one.(*site)
	}
	name, db := s.database(t)
	one := &site{s, name, db}
	sites.Store(t, one)
	return one
}

// client returns a client with a cable of its own.
func (s *site) client(t testing.TB, opts ...sqllock.Option) (*sqllock.Client, *cable) {
	t.Helper()
	wire := newCable(t, s.addr)
	db := s.connect(t, wire.addr(), s.name)
	c, err := sqllock.NewClient(db, s.dialect, append([]sqllock.Option{sqllock.WithTTL(lease)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c, wire
}

// whenWaiting is called when an acquire has found that others have the lock, and waits.
type whenWaiting func()

func (call whenWaiting) Add(i metrics.Instrument, n int64, _ metrics.Labels) {
	if i == metrics.LockWaiters && n > 0 {
		call()
	}
}

func (whenWaiting) Record(metrics.Instrument, time.Duration, metrics.Labels) {}

// exec runs a statement of an operator.
func (s *site) exec(t testing.TB, text string) {
	t.Helper()
	_, err := s.db.Exec(text)
	require.NoError(t, err)
}

func lockOf(t testing.TB, c *sqllock.Client, name string) *sqllock.Lock {
	t.Helper()
	lock, err := sqllock.New(c, name)
	require.NoError(t, err)
	return lock
}

// methods are what all kinds of locks have.
type methods interface {
	recipes.Locker
	AcquireWithin(ctx context.Context, d time.Duration) (*recipes.Hold, error)
	Do(ctx context.Context, fn func(ctx context.Context, hold *recipes.Hold) error) error
}

// patient makes an acquire again that ends because a read has got no answer in its time. A busy machine may need
// more time for a connection.
type patient struct{ methods }

// mostUnanswered is how often in a row a read may get no answer in its time. A stall of a machine is shorter.
const mostUnanswered = 10

// untilAnswered calls an acquire until a read is answered, or ctx ends.
func untilAnswered(ctx context.Context, acquire func() error) (err error) {
	for range mostUnanswered {
		err = acquire()
		if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "a request has got no answer") ||
			errors.Is(err, context.DeadlineExceeded) || errors.Is(err, recipes.ErrNotAcquired) {
			break
		}
	}
	return err
}

func (p patient) Acquire(ctx context.Context) (hold *recipes.Hold, err error) {
	err = untilAnswered(ctx, func() error {
		hold, err = p.methods.Acquire(ctx)
		return err
	})
	return hold, err
}

func (p patient) TryAcquire(ctx context.Context) (hold *recipes.Hold, err error) {
	err = untilAnswered(ctx, func() error {
		hold, err = p.methods.TryAcquire(ctx)
		return err
	})
	return hold, err
}

func (p patient) AcquireWithin(ctx context.Context, d time.Duration) (hold *recipes.Hold, err error) {
	err = untilAnswered(ctx, func() error {
		hold, err = p.methods.AcquireWithin(ctx, d)
		return err
	})
	return hold, err
}

func (p patient) Do(ctx context.Context, fn func(ctx context.Context, hold *recipes.Hold) error) (err error) {
	_ = untilAnswered(ctx, func() error {
		called := false
		err = p.methods.Do(ctx, func(ctx context.Context, hold *recipes.Hold) error {
			called = true
			return fn(ctx, hold)
		})
		if called {
			return nil
		}
		return err
	})
	return err
}

// kind is a kind of locks for the contract.
type kind struct {
	lock func(t testing.TB, one *site, c *sqllock.Client) methods
	// remove takes the lock from its holder, as an operator may do.
	remove func(t testing.TB, one *site)
}

var leases = kind{
	lock: func(t testing.TB, _ *site, c *sqllock.Client) methods { return lockOf(t, c, "lock") },
	// TestReasons has other ways.
	remove: func(t testing.TB, one *site) { one.exec(t, "UPDATE docent_locks SET owner = NULL") },
}

func contract(s *server, k kind, opts ...sqllock.Option) locktest.Service {
	return locktest.Service{
		Lease: lease,
		Client: func(t testing.TB, _ string) locktest.Client {
			one := s.site(t)
			c, wire := one.client(t, opts...)
			return locktest.Client{
				Lock: patient{k.lock(t, one, c)}, Cut: wire.cut,
				Delete: func() { k.remove(t, one) },
				Close:  func() { require.NoError(t, c.Close()) },
			}
		},
		Around: func(t *testing.T, run func(t *testing.T)) {
			t.Parallel()
			run(t)
		},
	}
}

func TestLock(t *testing.T) {
	each(t, func(t *testing.T, s *server) {
		service := contract(s, leases)
		service.Tokens = true
		locktest.Run(t, service)
	})
}

func TestLockWithNotifications(t *testing.T) {
	t.Parallel()
	s := serverOf(t, sqllock.PostgreSQL)
	with := contract(s, leases)
	with.Tokens = true
	with.Client = func(t testing.TB, name string) locktest.Client {
		db := s.connect(t, s.addr, s.site(t).name)
		notify := sqllock.WithNotify("locks", listenBy(db))
		return contract(s, leases, notify, sqllock.WithPollInterval(lease)).Client(t, name)
	}
	locktest.Run(t, with)
}

// listenBy receives notifications with pgx.
func listenBy(db *sql.DB) sqllock.Listen {
	return func(ctx context.Context, channel string, notified func(payload string)) error {
		conn, err := db.Conn(ctx)
		if err != nil {
			return err
		}
		defer conn.Close()
		return conn.Raw(func(c any) error {
			pg := c.(*stdlib.Conn).Conn()
			if _, err := pg.Exec(ctx, "LISTEN "+channel); err != nil {
				return err
			}
			for {
				n, err := pg.WaitForNotification(ctx)
				if err != nil {
					return err
				}
				notified(n.Payload)
			}
		})
	}
}
