package acceptance_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
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

func bubbleMutex(t testing.TB, c *framework.Client, path string) *mutex.Mutex {
	t.Helper()
	mu, err := mutex.New(c, path)
	require.NoError(t, err)
	return mu
}

// bubbleAttempt is an acquire that runs in a goroutine.
type bubbleAttempt struct {
	done chan struct{}
	hold *recipes.Hold
	err  error
}

func bubbleAcquire(ctx context.Context, mu *mutex.Mutex) *bubbleAttempt {
	a := &bubbleAttempt{done: make(chan struct{})}
	go func() {
		defer close(a.done)
		a.hold, a.err = mu.Acquire(ctx)
	}()
	return a
}

// waiting reports whether the attempt still runs when all other goroutines are blocked.
func (a *bubbleAttempt) waiting() bool {
	synctest.Wait()
	select {
	case <-a.done:
		return false
	default:
		return true
	}
}

// won waits for the hold and returns it.
func (a *bubbleAttempt) won(t testing.TB) *recipes.Hold {
	t.Helper()
	<-a.done
	require.NoError(t, a.err)
	return a.hold
}
