package rwlock_test

import (
	"context"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/realzk"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/rwlock"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// place is where a test happens: in virtual time on a server of its own, or on the real one.
type place struct {
	connect, path string
	dial          func(ctx context.Context, network, address string) (net.Conn, error)
	while         time.Duration // in which whatever can happen does
}

// anywhere runs a test in virtual time, or on the real server if that is wanted, along with other parallel tests.
func anywhere(t *testing.T, test func(t *testing.T, in place)) {
	t.Helper()
	t.Parallel()
	if realzk.Wanted() != "" {
		test(t, place{testzk.Connect(), testzk.Path(t), new(net.Dialer).DialContext, 200 * time.Millisecond})
		return
	}
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) { test(t, on(srv)) })
}

// on is a place in virtual time.
func on(srv *zktest.Server) place { return place{srv.MemAddr(), "/lock", srv.DialContext, time.Second} }

func (in place) client(t testing.TB) *framework.Client {
	t.Helper()
	return testzk.Connected(t, in.connect, framework.WithDialer(in.dial))
}

// lock is the lock of a client of its own; all are the same lock.
func (in place) lock(t testing.TB, opts ...rwlock.Option) *rwlock.RWLock {
	t.Helper()
	return newLock(t, in.client(t), in.path, opts...)
}

// waits checks that the attempts come to nothing for a while.
func (in place) waits(t testing.TB, all ...*attempt) {
	t.Helper()
	time.Sleep(in.while)
	for i, a := range all {
		require.True(t, a.waiting(), "waiter %d got in", i)
	}
}

func newLock(t testing.TB, c *framework.Client, path string, opts ...rwlock.Option) *rwlock.RWLock {
	t.Helper()
	rw, err := rwlock.New(c, path, opts...)
	require.NoError(t, err)
	return rw
}

func acquire(t testing.TB, side *rwlock.Side) *recipes.Hold {
	t.Helper()
	return under(t, testzk.Context(t), side)
}

// under acquires under a context.
func under(t testing.TB, ctx context.Context, side *rwlock.Side) *recipes.Hold {
	t.Helper()
	hold, err := side.Acquire(ctx)
	require.NoError(t, err)
	require.NoError(t, hold.Err())
	return hold
}

// downgrade reads under a write hold.
func downgrade(t testing.TB, rw *rwlock.RWLock, written *recipes.Hold) *recipes.Hold {
	t.Helper()
	return under(t, written.Context(testzk.Context(t)), rw.Read())
}

// upgrade writes beside a read hold.
func upgrade(t testing.TB, rw *rwlock.RWLock, reading *recipes.Hold) *recipes.Hold {
	t.Helper()
	hold, err := rw.TryUpgrade(reading.Context(testzk.Context(t)))
	require.NoError(t, err)
	require.NoError(t, hold.Err())
	return hold
}

func release(t testing.TB, holds ...*recipes.Hold) {
	t.Helper()
	for _, h := range holds {
		require.NoError(t, h.Release())
	}
}

// busy checks that a side cannot be had now.
func busy(t testing.TB, side *rwlock.Side) {
	t.Helper()
	_, err := side.TryAcquire(testzk.Context(t))
	require.ErrorIs(t, err, recipes.ErrNotAcquired)
}

func line(t testing.TB, side *rwlock.Side) []recipes.Participant {
	t.Helper()
	all, err := side.Participants(testzk.Context(t))
	require.NoError(t, err)
	return all
}

// queued waits until n of a side are in line.
func queued(t testing.TB, side *rwlock.Side, n int) []recipes.Participant {
	t.Helper()
	var all []recipes.Participant
	testzk.Eventually(t, func() bool {
		all = line(t, side)
		return len(all) == n
	}, "want %d in line", n)
	return all
}

// empty waits until nobody is in line.
func empty(t testing.TB, rw *rwlock.RWLock) {
	t.Helper()
	queued(t, rw.Read(), 0)
	queued(t, rw.Write(), 0)
}

// digits are what the name of a node ends in.
func digits(node string) string { return node[strings.LastIndex(node, "__")+2:] }
