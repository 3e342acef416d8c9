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
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/rwlock"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// env is the environment of a test: a server of its own in virtual time, or the real one.
type env struct {
	connect, path string
	dial          func(ctx context.Context, network, address string) (net.Conn, error)
	while         time.Duration // long enough for all pending events
}

// anywhere runs a test in virtual time or, if that is wanted, on the real server. It runs in
// parallel with other tests.
func anywhere(t *testing.T, test func(t *testing.T, in env)) {
	t.Helper()
	t.Parallel()
	if realzk.Wanted() != "" {
		test(t, env{testzk.Connect(), testzk.Path(t), new(net.Dialer).DialContext, 200 * time.Millisecond})
		return
	}
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) { test(t, on(srv)) })
}

// on returns an environment in virtual time.
func on(srv *zktest.Server) env { return env{srv.MemAddr(), "/lock", srv.DialContext, time.Second} }

func (in env) client(t testing.TB) *framework.Client {
	t.Helper()
	return testzk.Connected(t, in.connect, framework.WithDialer(in.dial))
}

// lock returns the lock of a new client. All are the same lock.
func (in env) lock(t testing.TB, opts ...rwlock.Option) *rwlock.RWLock {
	t.Helper()
	return newLock(t, in.client(t), in.path, opts...)
}

// waits checks that the attempts still wait after a while.
func (in env) waits(t testing.TB, all ...*testlock.Attempt) {
	t.Helper()
	time.Sleep(in.while)
	for i, a := range all {
		require.True(t, a.Waiting(), "waiter %d got the lock", i)
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

// downgrade acquires the read side under a write hold.
func downgrade(t testing.TB, rw *rwlock.RWLock, written *recipes.Hold) *recipes.Hold {
	t.Helper()
	return under(t, written.Context(testzk.Context(t)), rw.Read())
}

// upgrade acquires the write side under a read hold.
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

// busy checks that a side cannot be acquired now.
func busy(t testing.TB, side *rwlock.Side) {
	t.Helper()
	_, err := side.TryAcquire(testzk.Context(t))
	require.ErrorIs(t, err, recipes.ErrNotAcquired)
}

func participants(t testing.TB, side *rwlock.Side) []recipes.Participant {
	t.Helper()
	all, err := side.Participants(testzk.Context(t))
	require.NoError(t, err)
	return all
}

// queued waits until the side has n participants.
func queued(t testing.TB, side *rwlock.Side, n int) []recipes.Participant {
	t.Helper()
	var all []recipes.Participant
	testzk.Eventually(t, func() bool {
		all = participants(t, side)
		return len(all) == n
	}, "want %d participants", n)
	return all
}

// empty waits until the queue is empty.
func empty(t testing.TB, rw *rwlock.RWLock) {
	t.Helper()
	queued(t, rw.Read(), 0)
	queued(t, rw.Write(), 0)
}

// digits returns the digits at the end of a node's name.
func digits(node string) string { return node[strings.LastIndex(node, "__")+2:] }
