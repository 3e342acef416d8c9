package condition_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

// When its time is over, a waiter gets the lock again and leaves nothing.
func TestTimeOfAWaitIsOver(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		u, other := named(t, srv, "a"), named(t, srv, "b")
		hold, begin := u.acquire(), time.Now()
		next, signaled, err := u.cond.WaitWithin(t.Context(), hold, time.Minute)
		require.NoError(t, err)
		require.False(t, signaled)
		require.InDelta(t, time.Minute, time.Since(begin), float64(time.Second))
		require.ErrorIs(t, hold.Err(), recipes.ErrNotHeld)
		require.Greater(t, next.Token(), hold.Token())
		require.NoError(t, next.Err())
		_, err = other.mutex.TryAcquire(t.Context())
		require.ErrorIs(t, err, recipes.ErrNotAcquired)
		other.has(0, 0)
		require.NoError(t, next.Release())

		waiting := u.waitWithin(time.Second)
		hold = other.acquire()
		settle()
		require.True(t, waiting.Waiting(), "the lock is held by another client")
		require.NoError(t, hold.Release())
		waiting.ends(t, false)
		other.has(0, 0)
	})
}

func TestSignalComesWithinTheTime(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		u, other := named(t, srv, "a"), named(t, srv, "b")
		for _, signal := range []func(){other.signal, other.broadcast} {
			begin, waiting := time.Now(), u.waitWithin(time.Minute)
			signal()
			waiting.ends(t, true)
			require.Less(t, time.Since(begin), time.Minute)
			other.has(0, 0)
		}
	})
}

// Without any time, the lock is passed to the clients that wait for it all the same.
func TestWaitWithoutTimePassesTheLockOn(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		u, other := named(t, srv, "a"), named(t, srv, "b")
		for _, d := range []time.Duration{0, -time.Second} {
			hold := u.acquire()
			turn := testlock.Start(t, other.mutex.Acquire)
			settle()
			waiting := &timed{}
			waiting.Attempt = testlock.Start(t, func(ctx context.Context) (next *recipes.Hold, err error) {
				next, waiting.signaled, err = u.cond.WaitWithin(ctx, hold, d)
				return next, err
			})
			between := turn.Won(t)
			settle()
			require.True(t, waiting.Waiting())
			require.NoError(t, between.Release())
			waiting.ends(t, false)
			other.has(0, 0)
		}
	})
}

// A waiter whose time is over takes the signal that it has when it gets the lock.
func TestSignalAfterTheTimeIsTaken(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		u, other := named(t, srv, "a"), named(t, srv, "b")
		waiting := u.waitWithin(time.Second)
		hold := other.acquire()
		settle()
		require.NoError(t, other.cond.Signal(t.Context(), hold))
		require.NoError(t, hold.Release())
		waiting.ends(t, true)
		other.has(0, 0)
	})
}

// A waiter whose time is over does not wait for the waiters ahead of it. Each has its signal.
func TestTimeIsOverBehindAnotherWaiter(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		a, b, c := named(t, srv, "a"), named(t, srv, "b"), named(t, srv, "c")
		first, second, third := a.wait(), b.waitWithin(time.Second), a.wait()
		hold := c.acquire()
		settle() // the second one is in the queue of the mutex
		for range 3 {
			require.NoError(t, c.cond.Signal(t.Context(), hold))
		}
		settle()
		require.NoError(t, hold.Release())
		next := second.Won(t)
		require.True(t, second.signaled)
		c.has(2, 2)
		require.True(t, first.Waiting())
		require.True(t, third.Waiting())
		require.NoError(t, next.Release())
		require.NoError(t, first.Won(t).Release())
		require.NoError(t, third.Won(t).Release())
		c.has(0, 0)
	})
}

// The waiter ahead dies while one whose time is over leaves without a signal. The signal of the dead
// one is not lost: the one that leaves takes it.
func TestSignalIsPassedToAWaiterThatLeaves(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		a, b, c := named(t, srv, "a"), named(t, srv, "b"), named(t, srv, "c")
		first, second := a.wait(), b.waitWithin(time.Second)
		hold := c.acquire()
		settle() // the second one is in the queue of the mutex
		require.NoError(t, c.cond.Signal(t.Context(), hold))
		leaving := srv.On(fault.Match{Client: "b", Op: fault.OpMulti}, fault.Delay(time.Second))
		require.NoError(t, hold.Release())
		require.NoError(t, leaving.Wait(t.Context()))
		expire(t, srv, "a")
		second.ends(t, true)
		_, err := first.Wait()
		require.ErrorIs(t, err, framework.ErrSessionLost)
		settle()
		c.has(0, 0)
	})
}

// The waiter ahead dies while one whose time is over takes a signal. It takes the older one, so the
// next waiter, which came between the two signals, has the other one.
func TestSignalsMoveUpWhileOneIsTaken(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		a, b, c, d := named(t, srv, "a"), named(t, srv, "b"), named(t, srv, "c"), named(t, srv, "d")
		first, second := a.wait(), b.waitWithin(time.Second)
		hold := d.acquire()
		turns := []*testlock.Attempt{testlock.Start(t, c.mutex.Acquire)}
		time.Sleep(time.Second / 2)
		turns = append(turns, testlock.Start(t, d.mutex.Acquire))
		settle() // the second one is in the queue of the mutex, after these two
		require.NoError(t, d.cond.Signal(t.Context(), hold))
		require.NoError(t, hold.Release())
		third := c.waitWith(turns[0].Won(t))
		hold = turns[1].Won(t)
		require.NoError(t, d.cond.Signal(t.Context(), hold))
		d.has(3, 2)
		leaving := srv.On(fault.Match{Client: "b", Op: fault.OpMulti}, fault.Delay(time.Second))
		require.NoError(t, hold.Release())
		require.NoError(t, leaving.Wait(t.Context()))
		expire(t, srv, "a")
		second.ends(t, true)
		require.NoError(t, third.Won(t).Release())
		_, err := first.Wait()
		require.ErrorIs(t, err, framework.ErrSessionLost)
		settle()
		d.has(0, 0)
	})
}

// The answer to the transaction by which a waiter leaves is lost.
func TestTimeIsOverAndAnAnswerIsLost(t *testing.T) {
	for _, action := range []fault.Action{fault.DropBefore(), fault.DropAfter()} {
		virtually(t, func(t *testing.T, srv *zktest.Server) {
			u, other := named(t, srv, "a"), named(t, srv, "b")
			waiting := u.waitWithin(time.Second)
			lost := srv.On(fault.Match{Client: "a", Op: fault.OpMulti}, action)
			waiting.ends(t, false)
			require.NoError(t, lost.Wait(t.Context()))
			other.has(0, 0)
		})
	}
}

// ctx ends while a waiter whose time is over waits for the lock, and while it leaves. It then has no
// lock and leaves nothing.
func TestContextEndsAfterTheTime(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		u, other := named(t, srv, "a"), named(t, srv, "b")
		waiting := u.waitWithin(time.Second)
		hold := other.acquire()
		settle()
		waiting.GivesUp(t)
		require.NoError(t, hold.Release())

		waiting = u.waitWithin(time.Second)
		leaving := srv.On(fault.Match{Client: "a", Op: fault.OpMulti}, fault.Delay(time.Second))
		require.NoError(t, leaving.Wait(t.Context()))
		waiting.GivesUp(t)
		require.NoError(t, other.acquire().Release())
		settle()
		other.has(0, 0)
	})
}

func TestSessionIsLostAfterTheTime(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		u, other := named(t, srv, "a"), named(t, srv, "b")
		waiting := u.waitWithin(time.Second)
		hold := other.acquire()
		settle()
		expire(t, srv, "a")
		_, err := waiting.Wait()
		require.ErrorIs(t, err, framework.ErrSessionLost)
		require.ErrorContains(t, err, "the lock is not held now")
		require.NoError(t, hold.Release())
		settle()
		other.has(0, 0)
	})
}
