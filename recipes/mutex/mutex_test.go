package mutex_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
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

// generous has limits that no test reaches.
var generous = mutex.Handoff{Streak: 1_000_000, Span: time.Hour}

// keeping returns the option for a lock that keeps its node for idle.
func keeping(handoff mutex.Handoff, idle time.Duration) mutex.Option {
	handoff.Idle = idle
	return mutex.WithLocalHandoff(handoff)
}

func dialled(t *testing.T, srv *zktest.Server, name string, opts ...framework.Option) *framework.Client {
	return testzk.Connected(t, srv.MemAddr(), append(opts, framework.WithDialer(srv.Client(name).DialContext))...)
}
