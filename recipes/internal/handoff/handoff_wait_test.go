package handoff_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

func TestAllLocalWaitersFailAtOnceIfNoServerCanBeReached(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		srv.Client("local").Refuse(true)
		c := testzk.Client(t, srv.MemAddr(), framework.WithDialer(srv.Client("local").DialContext),
			framework.WithConnectTimeout(2*time.Second), framework.WithRetry(retry.Never()))
		begun := time.Now()
		for _, a := range waiters(t, newMutex(t, c, "/lock", mutex.WithLocalHandoff(generous)), 20) {
			_, err := a.Wait()
			require.ErrorIs(t, err, framework.ErrNotConnected)
			require.LessOrEqual(t, time.Since(begun), 2*time.Second)
		}
	})
}

// The node is passed to a waiter at the instant at which its context ends, before or after it. The
// servers are silent then.
func TestWaiterThatIsCanceledAtTheHandoffReturnsAtOnce(t *testing.T) {
	for round := range 20 {
		withHandoff(t, generous, func(t *testing.T, h *handoffFixture) {
			hold := acquire(t, h.lock)
			waiting := waiters(t, h.lock, 1)
			h.Client("local").Cut()
			begun := time.Now()
			both(round, func() { _ = hold.Release() }, waiting[0].Cancel)
			late, err := waiting[0].Wait()
			require.Zero(t, time.Since(begun))
			cancelled(t, round, late, err)
			h.Client("local").Heal()
			require.NoError(t, acquire(t, h.other).Release(), "the lock is not free")
		}, framework.WithSessionTimeout(40*time.Second))
	}
}

func TestCanceledWaiterIsPassedOver(t *testing.T) {
	for round := range 20 {
		withHandoff(t, generous, func(t *testing.T, h *handoffFixture) {
			hold := acquire(t, h.lock)
			waiting := waiters(t, h.lock, 2)
			both(round, func() { _ = hold.Release() }, waiting[0].Cancel)
			late, err := waiting[0].Wait()
			cancelled(t, round, late, err)
			next := waiting[1].Won(t)
			require.Equal(t, hold.Token(), next.Token())
			require.NoError(t, next.Release())
		})
	}
}

// both calls release and cancel at the same virtual time. In even rounds the release comes first,
// in odd rounds the cancellation.
func both(round int, release, cancel func()) {
	if round%2 == 0 {
		release()
		cancel()
		return
	}
	cancel()
	go release() // without a waiter the release waits for the servers
}

// cancelled releases a hold that began before the end of its waiter's context. It requires an error
// of a waiter whose context ended first.
func cancelled(t *testing.T, round int, hold *recipes.Hold, err error) {
	if err == nil && round%2 == 0 {
		go func() { _ = hold.Release() }()
		return
	}
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, recipes.ErrNotAcquired)
}

// Waiters that wait for a second each, while the lock is held for three, keep the queue position of
// the first of them. No other client gets ahead.
func TestWaiterThatGivesUpLeavesItsPositionToLocalWaiters(t *testing.T) {
	withHandoff(t, generous, func(t *testing.T, h *handoffFixture) {
		before := acquire(t, h.other)
		won := make(chan *recipes.Hold, 30)
		for i := range 30 {
			time.AfterFunc(time.Duration(i)*100*time.Millisecond, func() { briefly(h.lock, won) })
		}
		time.Sleep(time.Second / 2)
		other := testlock.Start(t, h.other.Acquire)
		time.Sleep(2450 * time.Millisecond)
		require.NoError(t, before.Release())
		last := other.Won(t)
		require.Len(t, won, 10, "all goroutines that waited when the lock became free")
		require.Less(t, (<-won).Token(), last.Token())
		require.NoError(t, last.Release())
		synctest.Wait()
	})
}

// Two goroutines of the other client acquire the lock all the time. One hold is longer than any
// waiter here waits.
func TestShortWaitsSucceedAsOftenAsWithoutHandoff(t *testing.T) {
	served := func(option mutex.Option) (n int) {
		withOption(t, option, func(t *testing.T, h *handoffFixture) {
			_, stop := run(t, h.other, 150*time.Millisecond)
			time.Sleep(time.Second)
			long := acquire(t, h.other)
			time.AfterFunc(3*time.Second, func() { _ = long.Release() })
			won := make(chan *recipes.Hold, 150)
			for range cap(won) {
				go briefly(h.lock, won)
				time.Sleep(100 * time.Millisecond)
			}
			stop()
			time.Sleep(2 * time.Second)
			n = len(won)
		})
		return n
	}
	alone, together := served(mutex.WithData(nil)), served(mutex.WithLocalHandoff(generous))
	require.Greater(t, alone, 100)
	require.Greater(t, together, alone-5, "except for different orders of simultaneous events")
}

// briefly waits for the lock for a second at most and holds it for 10 ms.
func briefly(lock *mutex.Mutex, won chan<- *recipes.Hold) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if hold, err := lock.Acquire(ctx); err == nil {
		won <- hold
		time.Sleep(10 * time.Millisecond)
		_ = hold.Release()
	}
}
