package acceptance_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/multilock"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// p16Ways are the ways to hold several locks as one.
var p16Ways = map[string]func(t testing.TB, c *framework.Client, paths []string) *multilock.MultiLock{
	"New": func(t testing.TB, c *framework.Client, paths []string) *multilock.MultiLock {
		t.Helper()
		m, err := multilock.New(c, paths)
		require.NoError(t, err)
		return m
	},
	"New in order": func(t testing.TB, c *framework.Client, paths []string) *multilock.MultiLock {
		t.Helper()
		m, err := multilock.New(c, paths, multilock.WithPathOrder())
		require.NoError(t, err)
		return m
	},
	"Combine": func(t testing.TB, c *framework.Client, paths []string) *multilock.MultiLock {
		t.Helper()
		var locks []recipes.Locker
		for _, path := range paths {
			locks = append(locks, p16Mutex(t, c, path))
		}
		m, err := multilock.Combine(locks...)
		require.NoError(t, err)
		return m
	},
}

func p16Mutex(t testing.TB, c *framework.Client, path string) *mutex.Mutex {
	t.Helper()
	mu, err := mutex.New(c, path)
	require.NoError(t, err)
	return mu
}

func p16Acquire(t testing.TB, l recipes.Locker) *recipes.Hold {
	t.Helper()
	hold, err := l.Acquire(testzk.Context(t))
	require.NoError(t, err)
	return hold
}

// p16Queue waits until the queue of path has n nodes.
func p16Queue(t testing.TB, mu *mutex.Mutex, n int) {
	t.Helper()
	testzk.Eventually(t, func() bool {
		queue, err := mu.Participants(testzk.Context(t))
		return err == nil && len(queue) == n
	}, "want %d nodes in the queue", n)
}

// A process dies while it waits for the second of two locks. It holds the first one or has a node
// in its queue. The first lock is free as soon as the session has ended on the servers, in each way
// to hold several locks.
func TestP16_ProcessThatDiesBetweenTwoLocksDelaysNoOther(t *testing.T) {
	t.Parallel()
	onlyInProcess(t, virtual)
	for way, multi := range p16Ways {
		t.Run(way, func(t *testing.T) {
			sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
				dying, other := bubbleClient(t, srv, "dying"), bubbleClient(t, srv, "other")
				first, second := bubbleMutex(t, other, "/first"), bubbleMutex(t, other, "/second")
				busy := p16Acquire(t, second)
				result := make(chan error, 1)
				go func() {
					_, err := multi(t, dying, []string{"/first", "/second"}).Acquire(t.Context())
					result <- err
				}()
				p16Queue(t, first, 1)
				p16Queue(t, second, 2)

				srv.Client("dying").Cut()
				died := time.Now()
				free := p16Acquire(t, first)
				require.LessOrEqual(t, time.Since(died), bubbleTimeout+100*time.Millisecond,
					"the server checks ten times a second")
				require.Empty(t, result)
				require.NoError(t, errors.Join(free.Release(), busy.Release()))
				require.NoError(t, dying.Close())
				require.Error(t, <-result)
				srv.Client("dying").Heal()
			})
		})
	}
}

// Five locks are held by others, and Acquire has one second. It ends within 1.1 s (11 s where time
// is real and the machine busy) and leaves no node in any queue. This is so in each way to hold
// several locks.
func TestP16_DeadlineIsForAllLocksTogether(t *testing.T) {
	t.Parallel()
	for way, multi := range p16Ways {
		t.Run(way, func(t *testing.T) {
			anywhere(t, func(t *testing.T, in place) {
				opts, waits := testzk.Waiting(t)
				ours, theirs := in.client(t, opts...), in.client(t)
				var paths []string
				var busy []*recipes.Hold
				for i := range 5 {
					paths = append(paths, fmt.Sprintf("%s/%d", in.root, i))
					busy = append(busy, p16Acquire(t, p16Mutex(t, theirs, paths[i])))
				}
				lock, result := multi(t, ours, paths), make(chan error, 1)
				ctx, pass := in.deadline(t, time.Second)
				go func() {
					_, err := lock.Acquire(ctx)
					result <- err
				}()
				waits()
				require.Empty(t, result)
				pass()
				passed := time.Now()
				err := <-result
				require.Less(t, time.Second+time.Since(passed), in.within(1100*time.Millisecond))
				require.ErrorIs(t, err, recipes.ErrNotAcquired)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				for i, path := range paths {
					p16Queue(t, p16Mutex(t, theirs, path), 1)
					require.NoError(t, busy[i].Release())
				}
			})
		})
	}
}

// The node of each of three locks in turn is deleted by another client. The multi-lock is lost
// within 1 s (10 s where time is real and the machine busy). It reports the loss, refuses writes
// through its Guard, and has released the other locks. This is so in each way to hold several
// locks.
func TestP16_LossOfOneLockIsTheLossOfAll(t *testing.T) {
	t.Parallel()
	for way, multi := range p16Ways {
		t.Run(way, func(t *testing.T) {
			anywhere(t, func(t *testing.T, in place) {
				ours, theirs := in.client(t), in.client(t)
				paths := []string{in.root + "/a", in.root + "/b", in.root + "/c"}
				for i := range paths {
					hold := p16Acquire(t, multi(t, ours, paths))
					work := hold.Context(t.Context())
					require.NoError(t, theirs.Delete(t.Context(), hold.Paths()[i], -1))
					deleted := time.Now()
					<-work.Done()
					require.Less(t, time.Since(deleted), in.within(time.Second))
					require.ErrorIs(t, context.Cause(work), recipes.ErrNodeDeleted)
					require.ErrorIs(t, hold.Err(), recipes.ErrNodeDeleted)
					_, err := hold.Guard(t.Context(), framework.CreateOp(in.root+"/late", nil))
					require.ErrorIs(t, err, recipes.ErrNodeDeleted)
					for _, path := range paths {
						require.NoError(t, p16Acquire(t, p16Mutex(t, theirs, path)).Release())
					}
					require.Less(t, time.Since(deleted), in.within(time.Second))
					require.ErrorIs(t, hold.Release(), recipes.ErrNodeDeleted)
				}
			})
		})
	}
}
