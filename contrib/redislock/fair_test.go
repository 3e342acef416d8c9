package redislock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/contrib/redislock"
	"github.com/docent-zk/docent/recipes"
)

// bubbleFair runs a test in virtual time, with the fair locks of some clients that never poll.
func bubbleFair(t *testing.T, n int, test func(t *testing.T, srv *fake, peers []*peer, locks []*redislock.Lock)) {
	synctest.Test(t, func(t *testing.T) {
		srv := newFake()
		var peers []*peer
		var locks []*redislock.Lock
		for range n {
			p := newPeer(t, srv)
			peers, locks = append(peers, p), append(locks, newFair(t, p.client, "lock"))
		}
		test(t, srv, peers, locks)
	})
}

// The goroutines of all clients acquire in one order, and each release wakes only the next one.
func TestFairQueue(t *testing.T) {
	bubbleFair(t, 3, func(t *testing.T, srv *fake, peers []*peer, locks []*redislock.Lock) {
		hold := acquire(t, locks[0])
		var waiting []<-chan *recipes.Hold
		for i := range 12 {
			waiting = append(waiting, start(t.Context(), t, locks[i%3]))
			time.Sleep(time.Millisecond)
		}
		_, err := locks[0].TryAcquire(t.Context())
		require.ErrorIs(t, err, recipes.ErrNotAcquired)
		srv.requests.Store(0)
		released := time.Now()
		for i, won := range waiting {
			require.NoError(t, hold.Release())
			hold = <-won
			synctest.Wait()
			for _, later := range waiting[i+1:] {
				require.Empty(t, later)
			}
			_, err := locks[i%3].TryAcquire(t.Context())
			require.ErrorIs(t, err, recipes.ErrNotAcquired)
		}
		require.Equal(t, released, time.Now())
		require.LessOrEqual(t, srv.requests.Load(), int64(3*len(waiting)+1), "and the text of a script")
		require.NoError(t, hold.Release())
		require.Zero(t, srv.count("{docent:lock}:queue"))
		require.Zero(t, srv.count("{docent:lock}:alive"))
	})
}

func TestTryDoesNotPassTheQueue(t *testing.T) {
	bubbleFair(t, 2, func(t *testing.T, srv *fake, peers []*peer, locks []*redislock.Lock) {
		hold := acquire(t, locks[0])
		won := start(t.Context(), t, locks[1])
		peers[1].setCut(true) // it does not hear that it is its turn
		require.NoError(t, hold.Release())
		_, err := locks[0].TryAcquire(t.Context())
		require.ErrorIs(t, err, recipes.ErrNotAcquired)
		peers[1].setCut(false)
		require.NoError(t, (<-won).Release())
	})
}

// Waiters that crashed delay those behind them by the time to live together.
func TestWaitersThatCrashDelayByTheTimeToLive(t *testing.T) {
	bubbleFair(t, 6, func(t *testing.T, srv *fake, peers []*peer, locks []*redislock.Lock) {
		hold := acquire(t, locks[0])
		ctx, cancel := context.WithCancel(t.Context())
		var crashed []<-chan *recipes.Hold
		for i := 1; i < 5; i++ {
			crashed = append(crashed, start(ctx, t, locks[i]))
		}
		won := start(t.Context(), t, locks[5])
		for i := 1; i < 5; i++ {
			peers[i].setCut(true)
		}
		released := time.Now()
		require.NoError(t, hold.Release())
		next := <-won
		require.Greater(t, time.Since(released), ttl/2)
		require.LessOrEqual(t, time.Since(released), ttl+ttl/10)
		require.NoError(t, next.Release())
		cancel()
		for i, won := range crashed {
			require.Nil(t, <-won)
			peers[i+1].setCut(false)
		}
	})
}

// A waiter that gives up tells the one behind it, if it had been its turn.
func TestWaiterThatGivesUpPassesItsTurn(t *testing.T) {
	bubbleFair(t, 3, func(t *testing.T, srv *fake, peers []*peer, locks []*redislock.Lock) {
		hold := acquire(t, locks[0])
		ctx, cancel := context.WithCancel(t.Context())
		first := start(ctx, t, locks[1])
		second := start(t.Context(), t, locks[2])
		peers[1].fault = func(_ context.Context, answer bool) error {
			if !answer {
				return errReset // it cannot take its turn
			}
			return nil
		}
		require.NoError(t, hold.Release())
		synctest.Wait()
		peers[1].fault = nil
		given := time.Now()
		cancel()
		require.Nil(t, <-first)
		require.NoError(t, (<-second).Release())
		require.Equal(t, given, time.Now())
	})
}

// A waiter that is cut off for a short time, and one whose record was renewed, keep their place.
func TestWaiterKeepsItsPlace(t *testing.T) {
	bubbleFair(t, 3, func(t *testing.T, srv *fake, peers []*peer, locks []*redislock.Lock) {
		hold := acquire(t, locks[0])
		first := start(t.Context(), t, locks[1])
		second := start(t.Context(), t, locks[2])
		time.Sleep(3 * ttl)
		peers[1].setCut(true)
		time.Sleep(ttl / 2)
		peers[1].setCut(false)
		require.NoError(t, hold.Release())
		next := <-first
		synctest.Wait()
		require.Empty(t, second)
		require.NoError(t, next.Release())
		require.NoError(t, (<-second).Release())
	})
}

// A holder that crashed publishes nothing, and the first waiter asks when the key expires.
func TestFairWaiterAsksWhenTheKeyExpires(t *testing.T) {
	bubbleFair(t, 2, func(t *testing.T, srv *fake, peers []*peer, locks []*redislock.Lock) {
		acquire(t, locks[0])
		peers[0].setCut(true)
		begun := time.Now()
		require.NoError(t, acquire(t, locks[1]).Release())
		require.LessOrEqual(t, time.Since(begun), ttl+ttl/10)
		peers[0].setCut(false)
	})
}

func TestFairLockReenters(t *testing.T) {
	bubbleFair(t, 1, func(t *testing.T, srv *fake, peers []*peer, locks []*redislock.Lock) {
		outer := acquire(t, locks[0])
		inner, err := locks[0].Acquire(outer.Context(t.Context()))
		require.NoError(t, err)
		require.NoError(t, outer.Release())
		require.NoError(t, inner.Release())
		require.Empty(t, srv.owner("docent:lock"))
	})
}

func TestNilLockOption(t *testing.T) {
	bubble(t, func(t *testing.T, srv *fake, a, _ *peer) {
		_, err := redislock.New(a.client, "lock", nil)
		require.ErrorContains(t, err, "option 0 is nil")
	})
}

// The record of a waiter does not outlast its acquire, even if the key of the lock is no lock any more.
func TestWaiterOfAKeyOfAnotherKindLeavesNothing(t *testing.T) {
	bubbleFair(t, 3, func(t *testing.T, srv *fake, peers []*peer, locks []*redislock.Lock) {
		hold := acquire(t, locks[0])
		failed := make(chan error, 1)
		go func() {
			_, err := locks[1].Acquire(t.Context())
			failed <- err
		}()
		time.Sleep(ttl / 10)
		srv.delete("docent:lock")
		srv.redis.HSet("docent:lock", "a", "b")
		require.ErrorContains(t, <-failed, "WRONGTYPE")
		<-hold.Done()
		time.Sleep(ttl / 10) // until the record is deleted in the background
		require.Zero(t, srv.count("{docent:lock}:queue"))
		srv.delete("docent:lock")
		next, err := locks[2].TryAcquire(t.Context())
		require.NoError(t, err)
		require.NoError(t, next.Release())
	})
}
