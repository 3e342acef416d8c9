package acceptance_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
)

// Tests in virtual time share what follows. They begin with onlyInProcess(t, virtual).
const (
	virtual        = "the test runs in virtual time"
	bubbleTimeout  = 6 * time.Second       // session timeout
	bubbleDeadline = bubbleTimeout * 2 / 3 // after which a silent session is lost
)

// bubbleClient returns a connected client that reaches srv under a name.
func bubbleClient(t testing.TB, srv *zktest.Server, name string, opts ...framework.Option) *framework.Client {
	t.Helper()
	c := bubbleNew(t, srv, srv.MemAddr(), name, opts...)
	require.NoError(t, c.WaitConnected(t.Context()))
	return c
}

// bubbleNew is like bubbleClient and does not wait for the connection.
func bubbleNew(t testing.TB, srv *zktest.Server, connect, name string, opts ...framework.Option) *framework.Client {
	t.Helper()
	c, err := framework.New(connect, append([]framework.Option{
		framework.WithDialer(srv.Client(name).DialContext),
		framework.WithSessionTimeout(bubbleTimeout),
		framework.WithRetry(retry.Forever(100 * time.Millisecond)),
	}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// bubbleSetUp is like bubbleNew, and calls setUp before the first connection. A listener of setUp is called with
// Connected. One that is added after New may miss it.
func bubbleSetUp(
	t testing.TB, srv *zktest.Server, name string, setUp func(*framework.Client), opts ...framework.Option,
) *framework.Client {
	t.Helper()
	srv.Client(name).Cut()
	defer srv.Client(name).Heal()
	c := bubbleNew(t, srv, srv.MemAddr(), name, opts...)
	synctest.Wait() // the client dials
	setUp(c)
	return c
}

func bubbleMutex(t testing.TB, c *framework.Client, path string) *mutex.Mutex {
	t.Helper()
	mu, err := mutex.New(c, path)
	require.NoError(t, err)
	return mu
}

// bubbleAcquire acquires the lock by a new client.
func bubbleAcquire(t testing.TB, srv *zktest.Server, name string) *testlock.Attempt {
	t.Helper()
	return testlock.StartUnder(t, t.Context(), bubbleMutex(t, bubbleClient(t, srv, name), "/lock").Acquire)
}

// bubbleWaits reports whether the attempt still runs when all other goroutines are blocked.
func bubbleWaits(a *testlock.Attempt) bool {
	synctest.Wait()
	return a.Waiting()
}
