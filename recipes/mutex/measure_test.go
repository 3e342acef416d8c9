package mutex_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
)

// measured returns a client, the path of a lock, and a function for what was measured of it.
func measured(t *testing.T) (c *framework.Client, path string, lines func() []string) {
	t.Helper()
	var m testzk.Metrics
	c, path = testzk.Connected(t, testzk.Connect(), framework.WithMetrics(&m)), testzk.Path(t)
	return c, path, func() []string {
		require.NoError(t, c.Close())
		var lines []string
		testzk.Eventually(t, func() bool { // Close waits for a second at most
			lines = m.Lines(time.Hour) // durations are not compared here
			return slices.Contains(lines, "docent.session.losses{closed} 1")
		}, "the end of the session is not measured")
		return lines
	}
}

func TestReentrantHoldsCountOnceAndTriesAreNoWaiters(t *testing.T) {
	c, path, lines := measured(t)
	mu, ctx := newMutex(t, c, path), testzk.Context(t)
	outer, err := mu.TryAcquire(ctx)
	require.NoError(t, err)
	inner, err := mu.Acquire(outer.Context(ctx))
	require.NoError(t, err)
	_, err = mu.TryAcquire(ctx)
	require.ErrorIs(t, err, recipes.ErrNotAcquired)
	require.NoError(t, inner.Release())
	require.NoError(t, outer.Release())
	require.ErrorIs(t, outer.Release(), recipes.ErrNotHeld)
	require.Equal(t, []string{
		"docent.deletions.pending{} 0",
		"docent.lock.hold{mutex " + path + " released} 0s",
		"docent.lock.wait{mutex " + path + " acquired} 0s",
		"docent.lock.wait{mutex " + path + " not_acquired} 0s",
		"docent.session.losses{closed} 1",
	}, lines())
}

// The lock may have had another holder before the end of such a hold.
func TestReleaseOfADeletedNodeCountsAsALoss(t *testing.T) {
	c, path, lines := measured(t)
	hold := acquire(t, newMutex(t, c, path))
	require.NoError(t, testzk.Observer(t).Delete(hold.Path(), -1))
	require.ErrorIs(t, hold.Release(), recipes.ErrNodeDeleted)
	require.Subset(t, lines(), []string{
		"docent.lock.hold{mutex " + path + " node_deleted} 0s",
		"docent.lock.losses{mutex " + path + " node_deleted} 1",
	})
}

func TestFailedAcquireIsMeasuredAsFailed(t *testing.T) {
	c, path, lines := measured(t)
	require.NoError(t, c.Close())
	_, err := newMutex(t, c, path).Acquire(testzk.Context(t))
	require.ErrorIs(t, err, framework.ErrClosed)
	require.Subset(t, lines(), []string{
		"docent.lock.wait{mutex " + path + " failed} 0s",
		"docent.lock.waiters{mutex " + path + "} 0",
	})
}
