package sqllock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/contrib/sqllock"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/locktest"
)

// sessionLock returns the session lock of a test. The name is that of the database, because names in
// MySQL are of the whole server.
func (s *site) sessionLock(t testing.TB, c *sqllock.Client) *sqllock.SessionLock {
	t.Helper()
	lock, err := sqllock.NewSessionLock(c, s.name)
	require.NoError(t, err)
	return lock
}

// advisory is what PostgreSQL has of the session locks in a database.
const advisory = `FROM pg_locks l JOIN pg_database d ON d.oid = l.database
	WHERE l.locktype = 'advisory' AND d.datname = current_database()`

// endSession ends the connection that has the session lock of a test.
func (s *site) endSession(t testing.TB) {
	t.Helper()
	if s.dialect == sqllock.PostgreSQL {
		s.exec(t, "SELECT pg_terminate_backend(l.pid) "+advisory+" AND l.granted")
		return
	}
	c, _ := s.client(t)
	var id int64
	require.NoError(t, s.db.QueryRow("SELECT IS_USED_LOCK(?)", s.sessionLock(t, c).Key()).Scan(&id))
	s.exec(t, fmt.Sprint("KILL ", id))
}

// awaitSessions waits until so many connections wait for the session lock of a test.
func (s *site) awaitSessions(t testing.TB, n int) {
	t.Helper()
	text := "SELECT COUNT(*) " + advisory + " AND NOT l.granted"
	if s.dialect == sqllock.MySQL {
		text = "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() AND state = 'User lock'"
	}
	for got := -1; got != n; time.Sleep(time.Millisecond) {
		require.NoError(t, s.db.QueryRow(text).Scan(&got))
	}
}

var sessions = kind{
	lock: func(t testing.TB, one *site, c *sqllock.Client) methods {
		return one.sessionLock(t, c)
	},
	remove: func(t testing.TB, one *site) { one.endSession(t) },
}

func TestSessionLock(t *testing.T) {
	each(t, func(t *testing.T, s *server) { locktest.Run(t, contract(s, sessions)) })
}

func TestSessionLockWithTokens(t *testing.T) {
	each(t, func(t *testing.T, s *server) {
		one := s.site(t)
		a, _ := one.client(t, sqllock.WithSessionTokens())
		b, _ := one.client(t, sqllock.WithSessionTokens())
		last := int64(0)
		for range 3 {
			for _, c := range []*sqllock.Client{a, b} {
				hold := mustAcquire(t, one.sessionLock(t, c))
				require.Greater(t, hold.Token(), last)
				last = hold.Token()
				require.NoError(t, hold.Release())
			}
		}
	})
}

// A wait that has ended leaves neither a wait nor a lock in the database, and no connection in the
// pool.
func TestSessionWaitThatEndsLeavesNothing(t *testing.T) {
	each(t, func(t *testing.T, s *server) {
		one := s.site(t)
		a, _ := one.client(t, sqllock.WithTTL(time.Hour)) // a wait would stay for 20 min
		b, _ := one.client(t, sqllock.WithTTL(time.Hour))
		hold := mustAcquire(t, one.sessionLock(t, a))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		waiter := one.sessionLock(t, b)
		go func() {
			_, err := waiter.Acquire(ctx)
			ended <- err
		}()
		one.awaitSessions(t, 1)
		cancel()
		err := <-ended
		require.ErrorIs(t, err, context.Canceled)
		require.NoError(t, hold.Err())
		one.awaitSessions(t, 0)
		require.NoError(t, hold.Release())
		next, err := one.sessionLock(t, a).TryAcquire(t.Context())
		require.NoError(t, err)
		require.NoError(t, next.Release())
	})
}

// The database wakes a waiter: it does not look again before the test ends.
func TestSessionWaiterIsWoken(t *testing.T) {
	each(t, func(t *testing.T, s *server) {
		one := s.site(t)
		a, _ := one.client(t, sqllock.WithTTL(time.Hour))
		b, _ := one.client(t, sqllock.WithTTL(time.Hour))
		hold := mustAcquire(t, one.sessionLock(t, a))
		won := make(chan error, 1)
		waiter := one.sessionLock(t, b)
		go func() {
			hold, err := waiter.Acquire(t.Context())
			if err == nil {
				err = hold.Release()
			}
			won <- err
		}()
		one.awaitSessions(t, 1)
		require.NoError(t, hold.Release())
		require.NoError(t, <-won)
	})
}

// No connection that had a lock goes back to the pool, with its settings.
func TestSessionsAreNotPooled(t *testing.T) {
	setting := map[sqllock.Dialect]string{
		sqllock.PostgreSQL: "SELECT COUNT(*) FROM pg_settings WHERE name = 'idle_session_timeout' AND setting <> '0'",
		sqllock.MySQL:      "SELECT @@session.wait_timeout <> @@global.wait_timeout",
	}
	each(t, func(t *testing.T, s *server) {
		one := s.site(t)
		db := s.connect(t, s.addr, one.name)
		c, err := sqllock.NewClient(db, s.dialect, sqllock.WithTTL(lease))
		require.NoError(t, err)
		other, _ := one.client(t)
		lock, rival := one.sessionLock(t, c), one.sessionLock(t, other)
		hold := mustAcquire(t, lock)
		require.NoError(t, hold.Release())
		hold = mustAcquire(t, rival)
		_, err = lock.TryAcquire(t.Context())
		require.ErrorIs(t, err, recipes.ErrNotAcquired)
		require.NoError(t, hold.Release())
		require.NoError(t, c.Close())
		require.Zero(t, db.Stats().OpenConnections)
		var n int
		require.NoError(t, db.QueryRow(setting[s.dialect]).Scan(&n))
		require.Zero(t, n)
	})
}

// A hold says why it was lost, and its release, too.
func TestSessionIsEnded(t *testing.T) {
	each(t, func(t *testing.T, s *server) {
		one := s.site(t)
		c, _ := one.client(t)
		hold := mustAcquire(t, one.sessionLock(t, c))
		one.endSession(t)
		<-hold.Done()
		require.ErrorIs(t, hold.Err(), recipes.ErrForeignLost)
		require.ErrorContains(t, hold.Err(), "its connection has ended")
		hold = mustAcquire(t, one.sessionLock(t, c))
		one.endSession(t)
		err := hold.Release()
		require.ErrorIs(t, err, recipes.ErrForeignLost, "before the hold has learned it")
		require.False(t, errors.Is(err, recipes.ErrReleasePending), err)
	})
}

// Keys are the same in all programs, so they do not change from one version to the next.
func TestSessionKeys(t *testing.T) {
	one := serverOf(t, sqllock.PostgreSQL).site(t)
	for dialect, want := range map[sqllock.Dialect]string{
		sqllock.PostgreSQL: "-2293699357871903350",
		sqllock.MySQL:      "docent:e02b24962880ed8a0399e745224fb028",
	} {
		key := func(name string, opts ...sqllock.Option) string {
			c, err := sqllock.NewClient(one.db, dialect, opts...)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, c.Close()) })
			lock, err := sqllock.NewSessionLock(c, name)
			require.NoError(t, err)
			require.Equal(t, name, lock.Name())
			return lock.Key()
		}
		require.Equal(t, want, key("orders/7"))
		require.NotEqual(t, want, key("orders/8"))
		require.NotEqual(t, want, key("orders/7", sqllock.WithTable("jobs.locks")))
		require.LessOrEqual(t, len(want), 64)
	}
}

// A wait for a Lock does not keep a wait for the SessionLock of that name from its turn.
func TestKindsWithOneNameAreIndependent(t *testing.T) {
	each(t, func(t *testing.T, s *server) {
		one := s.site(t)
		a, _ := one.client(t)
		b, _ := one.client(t)
		hold, session := mustAcquire(t, lockOf(t, a, one.name)), mustAcquire(t, one.sessionLock(t, a))
		won := make(chan error, 2)
		for _, lock := range []recipes.Locker{lockOf(t, b, one.name), one.sessionLock(t, b)} {
			go func() {
				hold, err := lock.Acquire(t.Context())
				if err == nil {
					err = hold.Release()
				}
				won <- err
			}()
		}
		one.awaitSessions(t, 1)
		require.NoError(t, session.Release())
		require.NoError(t, <-won)
		require.NoError(t, hold.Err())
		require.NoError(t, hold.Release())
		require.NoError(t, <-won)
	})
}

// A release waits for the renewal that is under way on the connection.
func TestSessionIsReleasedDuringARenewal(t *testing.T) {
	each(t, func(t *testing.T, s *server) {
		one := s.site(t)
		c, wire := one.client(t, sqllock.WithTTL(time.Minute))
		hold := mustAcquire(t, one.sessionLock(t, c))
		wire.cut(true)
		time.Sleep(time.Until(hold.ValidUntil().Add(-35500 * time.Millisecond))) // the renewal is under way
		released := make(chan error, 1)
		go func() { released <- hold.Release() }()
		<-hold.Done()
		wire.cut(false)
		require.NoError(t, <-released)
	})
}

// A release that gets no answer does not say that the hold was lost before.
func TestSessionIsReleasedWithoutAnAnswer(t *testing.T) {
	each(t, func(t *testing.T, s *server) {
		one := s.site(t)
		c, wire := one.client(t, sqllock.WithTTL(time.Minute))
		hold := mustAcquire(t, one.sessionLock(t, c))
		wire.cut(true)
		err := hold.Release()
		wire.cut(false)
		require.ErrorIs(t, err, recipes.ErrReleasePending)
		require.NotErrorIs(t, err, recipes.ErrForeignLost)
	})
}

// PostgreSQL may limit the time of all statements of a database. A wait may take longer.
func TestSessionWaitsForLongerThanAStatementMayTake(t *testing.T) {
	one := serverOf(t, sqllock.PostgreSQL).site(t)
	one.exec(t, "ALTER DATABASE "+one.name+" SET statement_timeout = 3000")
	const ttl = 12 * time.Second
	a, _ := one.client(t, sqllock.WithTTL(ttl))
	b, _ := one.client(t, sqllock.WithTTL(ttl))
	hold := mustAcquire(t, one.sessionLock(t, a))
	released := make(chan error, 1)
	time.AfterFunc(ttl/2, func() { released <- hold.Release() })
	next := mustAcquire(t, one.sessionLock(t, b))
	require.NoError(t, <-released)
	require.NoError(t, next.Release())
}
