package mutex_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/proxy"
)

func newMutex(t testing.TB, c *framework.Client, path string, opts ...mutex.Option) *mutex.Mutex {
	t.Helper()
	mu, err := mutex.New(c, path, opts...)
	require.NoError(t, err)
	return mu
}

func acquire(t testing.TB, mu *mutex.Mutex) *recipes.Hold {
	t.Helper()
	hold, err := mu.Acquire(testzk.Context(t))
	require.NoError(t, err)
	require.NoError(t, hold.Err())
	return hold
}

// sent returns the number of requests without heartbeats.
func sent(p *proxy.Proxy) int {
	counts := p.Requests()
	return counts.Total() - counts[fault.OpSync]
}

// attempt is a running Acquire.
type attempt struct {
	cancel context.CancelFunc
	hold   *recipes.Hold
	err    error
	done   chan struct{}
}

// start acquires on another goroutine, which ends with the test.
func start(t testing.TB, mu *mutex.Mutex) *attempt {
	t.Helper()
	ctx, cancel := context.WithCancel(testzk.Context(t))
	a := &attempt{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(a.done)
		a.hold, a.err = mu.Acquire(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-a.done
	})
	return a
}

// wait waits for the end of the acquire and returns its results.
func (a *attempt) wait() (*recipes.Hold, error) {
	<-a.done
	return a.hold, a.err
}

func (a *attempt) won(t testing.TB) *recipes.Hold {
	t.Helper()
	hold, err := a.wait()
	require.NoError(t, err)
	return hold
}

func (a *attempt) waiting() bool {
	select {
	case <-a.done:
		return false
	default:
		return true
	}
}

// queued waits until the queue has n nodes.
func queued(t testing.TB, mu *mutex.Mutex, n int) []recipes.Participant {
	t.Helper()
	var queue []recipes.Participant
	testzk.Eventually(t, func() bool {
		var err error
		queue, err = mu.Participants(testzk.Context(t))
		return err == nil && len(queue) == n
	}, "want %d nodes in the queue", n)
	return queue
}
