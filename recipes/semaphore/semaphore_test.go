package semaphore_test

import (
	"context"
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/semaphore"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
)

func newSemaphore(
	t testing.TB, c *framework.Client, path string, permits int, opts ...semaphore.Option,
) *semaphore.Semaphore {
	t.Helper()
	s, err := semaphore.New(c, path, permits, opts...)
	require.NoError(t, err)
	return s
}

// another returns a semaphore of a new client.
func another(t testing.TB, path string, permits int, opts ...semaphore.Option) *semaphore.Semaphore {
	t.Helper()
	return newSemaphore(t, testzk.Connected(t, testzk.Connect()), path, permits, opts...)
}

func acquire(t testing.TB, s *semaphore.Semaphore, n int) *recipes.Hold {
	t.Helper()
	hold, err := s.AcquireN(testzk.Context(t), n)
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

// refused checks that TryAcquireN cannot acquire n permits.
func refused(t testing.TB, s *semaphore.Semaphore, n int) {
	t.Helper()
	_, err := s.TryAcquireN(testzk.Context(t), n)
	require.ErrorIs(t, err, recipes.ErrNotAcquired)
}

// start acquires n permits on another goroutine, which ends with the test.
func start(t testing.TB, s *semaphore.Semaphore, n int) *testlock.Attempt {
	t.Helper()
	return startUnder(t, testzk.Context(t), s, n)
}

// startUnder does what start does, under ctx.
func startUnder(t testing.TB, ctx context.Context, s *semaphore.Semaphore, n int) *testlock.Attempt {
	t.Helper()
	acquire := func(ctx context.Context) (*recipes.Hold, error) { return s.AcquireN(ctx, n) }
	return testlock.StartUnder(t, ctx, acquire)
}

// crowd waits until so many permits are held and so many waiters are queued.
func crowd(t testing.TB, s *semaphore.Semaphore, permits, waiters int) []recipes.Participant {
	t.Helper()
	var all []recipes.Participant
	testzk.Eventually(t, func() bool {
		var err error
		all, err = s.Participants(testzk.Context(t))
		taken := 0
		for _, p := range all {
			if strings.Contains(p.Node, "/leases/") {
				taken++
			}
		}
		return err == nil && taken == permits && len(all) == permits+waiters
	}, "want %d permits and %d waiters", permits, waiters)
	return all
}

// empty waits until no lease and no queue node is left.
func empty(t testing.TB, path string) {
	t.Helper()
	for _, dir := range []string{"/leases", "/locks"} {
		testzk.Empty(t, path+dir)
	}
}

// number returns the data of a limit's node.
func number(permits int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(permits)) }

// simTimeout is the session timeout of clients in virtual time.
const simTimeout = 4 * time.Second

// client returns a client in virtual time.
func client(t testing.TB, srv *zktest.Server, name string, opts ...framework.Option) *framework.Client {
	t.Helper()
	c, err := framework.New(srv.MemAddr(), append([]framework.Option{
		framework.WithDialer(srv.Client(name).DialContext),
		framework.WithSessionTimeout(simTimeout),
		framework.WithRetry(retry.Forever(100 * time.Millisecond)),
	}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// requireEmpty waits for background work in virtual time, and checks that no lease and no queue
// node is left.
func requireEmpty(t testing.TB, srv *zktest.Server, path string) {
	t.Helper()
	time.Sleep(2 * simTimeout)
	for _, dir := range []string{"/leases", "/locks"} {
		if srv.Exists(path + dir) {
			children, err := srv.Children(path + dir)
			require.NoError(t, err)
			require.Empty(t, children, dir)
		}
	}
}
