package multilock_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/multilock"
	"github.com/docent-zk/docent/recipes/mutex"
)

// named returns n paths that no other test uses.
func named(t testing.TB, n int) []string {
	t.Helper()
	root := testzk.Path(t)
	paths := make([]string, n)
	for i := range paths {
		paths[i] = fmt.Sprintf("%s/%03d", root, i)
	}
	return paths
}

func newMulti(t testing.TB, c *framework.Client, paths []string, opts ...multilock.Option) *multilock.MultiLock {
	t.Helper()
	m, err := multilock.New(c, paths, opts...)
	require.NoError(t, err)
	return m
}

func newMutex(t testing.TB, c *framework.Client, path string) *mutex.Mutex {
	t.Helper()
	mu, err := mutex.New(c, path)
	require.NoError(t, err)
	return mu
}

// of returns a multi-lock of any locks.
func combined(t testing.TB, locks ...recipes.Locker) *multilock.MultiLock {
	t.Helper()
	m, err := multilock.Combine(locks...)
	require.NoError(t, err)
	return m
}

// own returns a new client.
func own(t testing.TB) *framework.Client {
	t.Helper()
	return testzk.Connected(t, testzk.Connect())
}

func acquire(t testing.TB, l recipes.Locker) *recipes.Hold {
	t.Helper()
	hold, err := l.Acquire(testzk.Context(t))
	require.NoError(t, err)
	require.NoError(t, hold.Err())
	return hold
}

// acquirer is Acquire or TryAcquire.
type acquirer = func(context.Context) (*recipes.Hold, error)

// queued waits until the queue at path has n nodes.
func queued(t testing.TB, c *framework.Client, path string, n int) []recipes.Participant {
	t.Helper()
	mu := newMutex(t, c, path)
	var queue []recipes.Participant
	testzk.Eventually(t, func() bool {
		var err error
		queue, err = mu.Participants(testzk.Context(t))
		return err == nil && len(queue) == n
	}, "want %d nodes in the queue at %s, and there are %v", n, path, &queue)
	return queue
}

// free waits until the queues at paths are empty.
func free(t testing.TB, paths ...string) {
	t.Helper()
	for _, path := range paths {
		testzk.Empty(t, path)
	}
}

// excluded checks that a single mutex on path cannot be acquired.
func excluded(t testing.TB, c *framework.Client, path string) {
	t.Helper()
	_, err := newMutex(t, c, path).TryAcquire(testzk.Context(t))
	require.ErrorIs(t, err, recipes.ErrNotAcquired, path)
}

// remove deletes a node without its owner.
func remove(t testing.TB, node string) {
	t.Helper()
	require.NoError(t, testzk.Observer(t).Delete(node, -1))
}

// forbid leaves all clients without the permissions perms for a node.
func forbid(t testing.TB, path string, perms int32) {
	t.Helper()
	testzk.Permit(t, path, zk.PermAll&^perms)
}
