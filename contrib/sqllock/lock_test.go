package sqllock_test

import (
	"context"
	"database/sql"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/contrib/sqllock"
	"github.com/docent-zk/docent/recipes/locktest"
)

const lease = 3 * time.Second

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
	c, err := sqllock.New(db, s.dialect, append([]sqllock.Option{sqllock.WithLease(lease)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c, wire
}

// exec runs a statement of an operator.
func (s *site) exec(t testing.TB, text string) {
	t.Helper()
	_, err := s.db.Exec(text)
	require.NoError(t, err)
}

func lockOf(t testing.TB, c *sqllock.Client, name string) *sqllock.Lock {
	t.Helper()
	lock, err := c.Lock(name)
	require.NoError(t, err)
	return lock
}

// contract has an operator remove the owner. TestReasons has other ways to take a lock away.
func contract(s *server, opts ...sqllock.Option) locktest.Service {
	return locktest.Service{
		Lease: lease, Tokens: true,
		Client: func(t testing.TB, _ string) locktest.Client {
			one := s.site(t)
			c, wire := one.client(t, opts...)
			return locktest.Client{
				Lock: lockOf(t, c, "lock"), Cut: wire.cut,
				Delete: func() { one.exec(t, "UPDATE docent_locks SET owner = NULL") },
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
	each(t, func(t *testing.T, s *server) { locktest.Run(t, contract(s)) })
}

func TestLockWithNotifications(t *testing.T) {
	t.Parallel()
	s := serverOf(t, sqllock.PostgreSQL)
	with := contract(s)
	with.Client = func(t testing.TB, name string) locktest.Client {
		db := s.connect(t, s.addr, s.site(t).name)
		return contract(s, sqllock.WithNotify("locks", listenBy(db)), sqllock.WithPoll(lease)).Client(t, name)
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
