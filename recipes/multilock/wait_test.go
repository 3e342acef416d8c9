package multilock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/multilock"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// checker reports two holders of one lock and tokens that do not grow.
type checker struct {
	inside atomic.Bool
	last   atomic.Int64
}

func (r *checker) enter(token int64) error {
	if !r.inside.CompareAndSwap(false, true) {
		return errors.New("two goroutines hold the lock")
	}
	if previous := r.last.Swap(token); previous >= token {
		return fmt.Errorf("token %d after %d", token, previous)
	}
	return nil
}

// contend runs fn on n goroutines and passes each its number.
func contend(t *testing.T, n int, fn func(i int) error) {
	t.Helper()
	errs := make([]error, n)
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() { errs[i] = fn(i) })
	}
	running.Wait()
	require.NoError(t, errors.Join(errs...))
}

func TestOppositeOrdersNeitherDeadlockNorShare(t *testing.T) {
	paths := named(t, 3)
	referees := map[string]*checker{}
	for _, path := range paths {
		referees[path] = &checker{}
	}
	orders := [][]string{
		{paths[0], paths[1]}, {paths[1], paths[0]}, {paths[2], paths[0]}, {paths[1], paths[2], paths[0]},
	}
	contend(t, len(orders), func(i int) error {
		m := newMulti(t, own(t), orders[i])
		for range 50 {
			hold, err := m.Acquire(testzk.Context(t))
			if err != nil {
				return err
			}
			for n, path := range orders[i] {
				err = errors.Join(err, referees[path].enter(hold.Tokens()[n]))
			}
			for _, path := range orders[i] {
				referees[path].inside.Store(false)
			}
			if err := errors.Join(err, hold.Release()); err != nil {
				return err
			}
		}
		return nil
	})
	free(t, paths...)
}

func TestAllQueuesAreWaitedForAtOnce(t *testing.T) {
	paths := named(t, 3)
	c, other := own(t), own(t)
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}} {
		var busy []*recipes.Hold
		for _, path := range paths {
			busy = append(busy, acquire(t, newMutex(t, other, path)))
		}
		waiter := testlock.Start(t, newMulti(t, c, paths).Acquire)
		for _, path := range paths {
			queued(t, other, path, 2)
		}
		behind := testlock.Start(t, newMutex(t, other, paths[order[0]]).Acquire)
		queued(t, other, paths[order[0]], 3)
		for _, i := range order {
			require.True(t, waiter.Waiting(), "some of the locks are held")
			require.NoError(t, busy[i].Release())
		}
		hold := waiter.Won(t)
		require.True(t, behind.Waiting(), "the node in the queue that was free first is kept")
		require.NoError(t, hold.Release())
		require.NoError(t, behind.Won(t).Release())
	}
	free(t, paths...)
}

// The waiter's node in the first queue is deleted, at the front or behind another node. In the
// second queue another node is ahead.
func TestWaiterWithADeletedNodeQueuesAgainInAllQueues(t *testing.T) {
	paths := named(t, 2)
	c, other := own(t), own(t)
	for name, isBusy := range map[string]bool{"at the front": false, "behind another": true} {
		t.Run(name, func(t *testing.T) {
			var first *recipes.Hold
			ahead := 0
			if isBusy {
				first, ahead = acquire(t, newMutex(t, other, paths[0])), 1
			}
			second := acquire(t, newMutex(t, other, paths[1]))
			waiter := testlock.Start(t, newMulti(t, c, paths).Acquire)
			lost := queued(t, other, paths[0], ahead+1)[ahead]
			kept := queued(t, other, paths[1], 2)[1]
			remove(t, lost.Node)
			if isBusy {
				testzk.Eventually(t, func() bool {
					_, err := other.Exists(testzk.Context(t), kept.Node)
					return err != nil
				}, "the node in the other queue is not deleted")
				require.NoError(t, first.Release())
			}
			require.NoError(t, second.Release())
			hold := waiter.Won(t)
			for i, node := range hold.Paths() {
				require.NotContains(t, []string{lost.Node, kept.Node}, node)
				require.Greater(t, hold.Tokens()[i], kept.Token)
				queue := queued(t, other, paths[i], 1)
				require.Equal(t, node, queue[0].Node, "a hold without all of its nodes")
			}
			_, err := hold.Guard(testzk.Context(t))
			require.NoError(t, err)
			require.NoError(t, hold.Release())
		})
	}
	free(t, paths...)
}

func TestWaitForBusyLocksEndsInTime(t *testing.T) {
	paths := []string{"/a", "/b", "/c", "/d", "/e"}
	for name, opts := range map[string][]multilock.Option{"together": nil, "in order": {multilock.WithPathOrder()}} {
		sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
			c, other := simClient(t, srv, "c", 4*time.Second), simClient(t, srv, "other", 4*time.Second)
			var busy []*recipes.Hold
			for _, path := range paths {
				busy = append(busy, acquire(t, newMutex(t, other, path)))
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			began := time.Now()
			hold, err := newMulti(t, c, paths, opts...).Acquire(ctx)
			require.Less(t, time.Since(began), 2*time.Second, "%s: one second for all locks together", name)
			require.Nil(t, hold)
			require.ErrorIs(t, err, recipes.ErrNotAcquired, name)
			require.ErrorIs(t, err, context.DeadlineExceeded, name)
			require.ErrorContains(t, err, paths[0], name)
			for _, path := range paths {
				queued(t, other, path, 1)
			}
			for _, hold := range busy {
				require.NoError(t, hold.Release())
			}
		}, zktest.WithSessionTimeouts(time.Second, time.Minute))
	}
}

func TestErrorOfManyLocksNamesTheFirstFew(t *testing.T) {
	paths := named(t, 9)
	busy := acquire(t, newMutex(t, own(t), paths[8]))
	_, err := newMulti(t, own(t), paths).TryAcquire(testzk.Context(t))
	require.ErrorIs(t, err, recipes.ErrNotAcquired)
	require.ErrorContains(t, err, paths[4]+" and 4 more")
	require.NotContains(t, err.Error(), paths[5])
	require.NoError(t, busy.Release())
}

func TestWaiterWithALostSessionQueuesAgainInAllQueues(t *testing.T) {
	t.Parallel()
	p := testzk.Proxy(t)
	paths := named(t, 2)
	other := own(t)
	busy := acquire(t, newMutex(t, other, paths[1]))
	c := testzk.Connected(t, p.Addr(), testzk.Mortal())
	former, err := c.Session(testzk.Context(t))
	require.NoError(t, err)
	waiter := testlock.Start(t, newMulti(t, c, paths).Acquire)
	stale := []string{queued(t, other, paths[0], 1)[0].Node, queued(t, other, paths[1], 2)[1].Node}
	p.BlackholeReplies(true) // the server gets the requests and keeps the session; the client gets no replies
	testzk.Closes(t, former.Done(), "the session does not notice that answers are missing")
	require.NoError(t, busy.Release())
	p.BlackholeReplies(false)
	hold := waiter.Won(t)
	for i, node := range hold.Paths() {
		require.NotEqual(t, stale[i], node, "granted on a node of the former session")
	}
	require.NoError(t, hold.Release())
	free(t, paths...)
}

func TestCloseOfTheClientEndsHoldsAndWaitsAtOnce(t *testing.T) {
	paths := named(t, 2)
	other := own(t)
	c, err := framework.New(testzk.Connect(), framework.WithSessionTimeout(time.Minute))
	require.NoError(t, err)
	m := newMulti(t, c, paths)
	hold := acquire(t, m)
	waiter := testlock.Start(t, m.Acquire)
	queued(t, other, paths[0], 2)
	require.NoError(t, c.Close())
	_, err = waiter.Wait()
	require.ErrorIs(t, err, framework.ErrClosed)
	require.ErrorIs(t, hold.Release(), framework.ErrClosed)
	_, err = m.Acquire(testzk.Context(t))
	require.ErrorIs(t, err, framework.ErrClosed)
	free(t, paths...)
}

func TestInOrderWaitsForOneLockAtATimeInTheOrderOfTheirPaths(t *testing.T) {
	paths := named(t, 3)
	c, other := own(t), own(t)
	middle := acquire(t, newMutex(t, other, paths[1]))
	backwards := slices.Clone(paths)
	slices.Reverse(backwards)
	waiter := testlock.Start(t, newMulti(t, c, backwards, multilock.WithPathOrder()).Acquire)
	queued(t, other, paths[1], 2)
	excluded(t, other, paths[0])
	last, err := newMutex(t, other, paths[2]).TryAcquire(testzk.Context(t))
	require.NoError(t, err, "the waiter is not queued for locks after the one it waits for")
	require.NoError(t, middle.Release())
	queued(t, other, paths[2], 2)
	require.True(t, waiter.Waiting())
	require.NoError(t, last.Release())
	hold := waiter.Won(t)
	require.Greater(t, hold.Tokens()[0], hold.Tokens()[1])
	require.Greater(t, hold.Tokens()[1], hold.Tokens()[2],
		"acquired in the order of the paths, reported in that of the list")
	require.NoError(t, hold.Release())
	free(t, paths...)
}

// A mutex nested in another is not queued for the second lock while it waits for the first.
// Together with such mutexes only WithPathOrder avoids deadlocks.
func TestInOrderDoesNotDeadlockWithNestedMutexes(t *testing.T) {
	paths := named(t, 2)
	contend(t, 2, func(i int) error {
		c := own(t)
		first, second := newMutex(t, c, paths[0]), newMutex(t, c, paths[1])
		m := newMulti(t, c, []string{paths[1], paths[0]}, multilock.WithPathOrder())
		for range 25 {
			ctx := testzk.Context(t)
			if i == 0 {
				hold, err := m.Acquire(ctx)
				if err != nil {
					return err
				}
				if err := hold.Release(); err != nil {
					return err
				}
				continue
			}
			outer, err := first.Acquire(ctx)
			if err != nil {
				return err
			}
			inner, err := second.Acquire(ctx)
			if err != nil {
				return err
			}
			if err := errors.Join(inner.Release(), outer.Release()); err != nil {
				return err
			}
		}
		return nil
	})
	free(t, paths...)
}
