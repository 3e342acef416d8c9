package semaphore_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/recipes/semaphore"
)

func newMutex(t testing.TB, c *framework.Client, path string, opts ...semaphore.Option) *semaphore.Mutex {
	t.Helper()
	m, err := semaphore.NewMutex(c, path, opts...)
	require.NoError(t, err)
	return m
}

func TestMutexIsNotReentrantAndAFailedAcquireLeavesTheHoldIntact(t *testing.T) {
	path := testzk.Path(t)
	opts, waits := testzk.Waiting(t)
	m := newMutex(t, testzk.Connected(t, testzk.Connect(), opts...), path)
	hold, err := m.Acquire(testzk.Context(t))
	require.NoError(t, err)
	inside := hold.Context(testzk.Context(t))
	_, err = m.TryAcquire(inside)
	require.ErrorIs(t, err, recipes.ErrNotAcquired)
	ctx, pass := testzk.Deadline(inside)
	late := testlock.StartUnder(t, ctx, m.Acquire)
	waits()
	pass()
	_, err = late.Wait()
	require.ErrorIs(t, err, recipes.ErrNotAcquired)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, hold.Err())
	_, err = hold.Guard(testzk.Context(t))
	require.NoError(t, err)
	testzk.Eventually(t, func() bool { // the failed acquire may leave the deletion of its node to the background
		queue, err := m.Participants(testzk.Context(t))
		return err == nil && len(queue) == 1 && queue[0].Node == hold.Path()
	}, "the failed acquire has left a node")
	release(t, hold)
	require.ErrorIs(t, hold.Release(), recipes.ErrNotHeld)
	empty(t, path)
}

func TestMutexIsReleasedByAnyGoroutine(t *testing.T) {
	m := newMutex(t, testzk.Connected(t, testzk.Connect()), testzk.Path(t))
	hold, err := m.Acquire(testzk.Context(t))
	require.NoError(t, err)
	released := make(chan error)
	go func() { released <- hold.Release() }()
	require.NoError(t, <-released)
	hold, err = m.TryAcquire(testzk.Context(t))
	require.NoError(t, err)
	release(t, hold)
}

func TestMutexIsASemaphoreOfOne(t *testing.T) {
	path := testzk.Path(t)
	m := newMutex(t, testzk.Connected(t, testzk.Connect()), path, semaphore.WithData([]byte("us")))
	hold, err := m.Acquire(testzk.Context(t))
	require.NoError(t, err)
	require.Regexp(t, `^`+path+`/leases/_c_[-0-9a-f]{36}-lease-\d{10}$`, hold.Path())
	refused(t, another(t, path, 1), 1)
	_, err = another(t, path, 2).Acquire(testzk.Context(t))
	require.ErrorIs(t, err, semaphore.ErrLimit)
	other, err := mutex.New(testzk.Connected(t, testzk.Connect()), path)
	require.NoError(t, err)
	apart, err := other.TryAcquire(testzk.Context(t))
	require.NoError(t, err, "other nodes, another lock")
	release(t, apart, hold)
}

func TestMutexHasNeitherSlotsNorASharedLimit(t *testing.T) {
	c := testzk.Client(t, "127.0.0.1:1")
	for _, opt := range []semaphore.Option{semaphore.WithSlots(), semaphore.WithSharedLimit("/limit")} {
		m, err := semaphore.NewMutex(c, "/m", opt)
		require.ErrorContains(t, err, "not for a mutex")
		require.Nil(t, m)
	}
	for _, m := range []*semaphore.Mutex{{}} {
		_, err := m.Acquire(testzk.Context(t))
		require.ErrorIs(t, err, framework.ErrZeroValue)
		_, err = m.TryAcquire(testzk.Context(t))
		require.ErrorIs(t, err, framework.ErrZeroValue)
		_, err = m.Participants(testzk.Context(t))
		require.ErrorIs(t, err, framework.ErrZeroValue)
	}
}

// Curator's clients use that queue as a mutex, and others may too. A permit is no hold of that
// mutex.
func TestPermitIsNoHoldOfAMutexOnTheSemaphoresQueue(t *testing.T) {
	path := testzk.Path(t)
	c := testzk.Connected(t, testzk.Connect())
	permit := acquire(t, newSemaphore(t, c, path, 2), 1)
	queue, err := mutex.New(c, path+"/locks")
	require.NoError(t, err)
	held, err := queue.Acquire(testzk.Context(t))
	require.NoError(t, err)
	_, err = queue.TryAcquire(permit.Context(testzk.Context(t)))
	require.ErrorIs(t, err, recipes.ErrNotAcquired)
	release(t, held, permit)
}

func TestMutexIsMeasuredAsAMutex(t *testing.T) {
	var m testzk.Metrics
	c, path := testzk.Connected(t, testzk.Connect(), framework.WithMetrics(&m)), testzk.Path(t)
	hold, err := newMutex(t, c, path).Acquire(testzk.Context(t))
	require.NoError(t, err)
	release(t, hold)
	release(t, acquire(t, newSemaphore(t, c, path+"-s", 2), 2))
	require.NoError(t, c.Close())
	require.Subset(t, m.Lines(time.Hour), []string{
		"docent.lock.hold{semaphore-mutex " + path + " released} 0s",
		"docent.lock.wait{semaphore-mutex " + path + " acquired} 0s",
		"docent.lock.hold{semaphore " + path + "-s released} 0s",
		"docent.lock.wait{semaphore " + path + "-s acquired} 0s",
	})
}
