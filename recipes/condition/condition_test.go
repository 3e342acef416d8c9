package condition_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/condition"
	"github.com/docent-zk/docent/recipes/multilock"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

func TestNewChecksItsArguments(t *testing.T) {
	c := testzk.Client(t, testzk.Connect())
	mu, err := mutex.New(c, "/a/lock")
	require.NoError(t, err)
	_, err = condition.New(nil, "/a/c")
	require.ErrorContains(t, err, "new condition: the mutex is nil")
	_, err = condition.New(&mutex.Mutex{}, "/a/c")
	require.ErrorIs(t, err, framework.ErrZeroValue)
	for _, path := range []string{"", "/", "a", "/a/lock"} {
		_, err = condition.New(mu, path)
		require.ErrorIs(t, err, framework.ErrInvalidPath, path)
	}
	_, err = condition.New(mu, "/a/c", condition.WithData(nil), condition.WithIdentity())
	require.ErrorContains(t, err, "exclude each other")
	_, err = condition.New(mu, "/a/c", nil)
	require.ErrorContains(t, err, "option 0 is nil")
	view, err := framework.New(testzk.Connect(), framework.WithNamespace("a"))
	require.NoError(t, err)
	defer view.Close()
	mu, err = mutex.New(view, "/lock")
	require.NoError(t, err)
	_, err = condition.New(mu, "/c")
	require.NoError(t, err)
}

// The errors that are IllegalMonitorStateException in Java change nothing: the hold stays as it was.
func TestWrongHoldsAreErrors(t *testing.T) {
	t.Parallel()
	c, path := testzk.Connected(t, testzk.Connect()), testzk.Path(t)
	u, other := newUser(t, c, path), newUser(t, c, path+"/other")
	elsewhere := newUser(t, testzk.Connected(t, testzk.Connect()), path)
	ctx := testzk.Context(t)
	check := func(hold *recipes.Hold, want error, text string) {
		t.Helper()
		same, err := u.cond.Wait(ctx, hold)
		require.Same(t, hold, same)
		for _, err := range []error{err, u.cond.Signal(ctx, hold), u.cond.Broadcast(ctx, hold)} {
			require.ErrorIs(t, err, want)
			require.ErrorContains(t, err, text)
		}
		notSent(t, u.cond.Signal(ctx, hold), u.cond.Broadcast(ctx, hold))
	}
	hold := other.acquire()
	check(hold, condition.ErrOtherLock, hold.Path())
	require.NoError(t, hold.Release())
	check(hold, condition.ErrOtherLock, hold.Path())

	hold = elsewhere.acquire() // the same path, of another client
	check(hold, condition.ErrOtherLock, hold.Path())
	require.NoError(t, hold.Release())

	both, err := multilock.New(c, []string{u.mutex.Path(), other.mutex.Path()})
	require.NoError(t, err)
	hold, err = both.Acquire(ctx)
	require.NoError(t, err)
	check(hold, condition.ErrOtherLock, hold.Path())
	require.NoError(t, hold.Release())

	hold = u.acquire()
	require.NoError(t, hold.Release())
	check(hold, recipes.ErrNotHeld, "")
	check(&recipes.Hold{}, recipes.ErrNotHeld, "")
	_, err = u.cond.Wait(ctx, nil)
	require.ErrorContains(t, err, "the hold is nil")
	require.ErrorContains(t, u.cond.Signal(ctx, nil), "the hold is nil")
	var none context.Context
	require.ErrorIs(t, u.cond.Signal(none, hold), framework.ErrNilContext)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	notSent(t, u.cond.Signal(ctx, nil), u.cond.Signal(none, hold), u.cond.Signal(ended, u.acquire()),
		(&condition.Condition{}).Signal(ctx, hold))
	require.NoError(t, elsewhere.client.DeleteRecursive(ctx, u.mutex.Path()))

	hold = u.acquire()
	require.NoError(t, elsewhere.client.Delete(ctx, hold.Path(), -1))
	testzk.Closes(t, hold.Done(), "the hold is not lost")
	check(hold, recipes.ErrNodeDeleted, "")
	exists, _, err := testzk.Observer(t).Exists(u.cond.Path())
	require.NoError(t, err)
	require.False(t, exists, "a wrong hold has made nodes")
}

// notSent requires errors that say that there was no signal.
func notSent(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		require.Error(t, err)
		require.Equal(t, framework.NotApplied, framework.OutcomeOf(err), "%v", err)
	}
}

// Useless signals that cannot be deleted do no harm.
func TestUselessSignalThatCannotBeDeleted(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		a, b := named(t, srv, "a"), named(t, srv, "b")
		a.wait().GivesUp(t)
		for _, node := range []string{"/p/condition/signal-0000000000-x", "/p/condition/signal-0000000000-x/y"} {
			require.NoError(t, srv.Create(node, nil))
		}
		b.signal()
		waiting := a.wait()
		b.signal()
		require.NoError(t, waiting.Won(t).Release())
		last := a.waitWithin(time.Second)
		last.ends(t, false)
		b.has(0, 1)
	})
}

func TestWaitNeedsTheOnlyHold(t *testing.T) {
	t.Parallel()
	u := newUser(t, testzk.Connected(t, testzk.Connect()), testzk.Path(t))
	ctx := testzk.Context(t)
	outer := u.acquire()
	inner, err := u.mutex.Acquire(outer.Context(ctx))
	require.NoError(t, err)
	for _, hold := range []*recipes.Hold{outer, inner} {
		same, err := u.cond.Wait(ctx, hold)
		require.Same(t, hold, same)
		require.ErrorIs(t, err, condition.ErrOtherHolds)
		require.NoError(t, hold.Err())
		require.NoError(t, u.cond.Signal(ctx, hold))
	}
	require.NoError(t, inner.Release())
	_, err = u.cond.Wait(outer.Context(ctx), outer)
	require.ErrorContains(t, err, "the context ends with the hold")
	require.NoError(t, outer.Err())
	waiting := u.waitWith(outer)
	testzk.Closes(t, outer.Done(), "Wait does not release the lock")
	u.signal()
	require.NoError(t, waiting.Won(t).Release())
}

// A holder that enters the lock again while Wait makes its node keeps it.
func TestReentryDuringWaitIsAnError(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		u := named(t, srv, "a")
		hold := u.acquire()
		work := hold.Context(t.Context())
		srv.On(fault.Match{Client: "a", Op: fault.OpMulti}, fault.Delay(time.Second))
		waiting := u.waitWith(hold)
		time.Sleep(500 * time.Millisecond)
		inner, err := u.mutex.Acquire(work)
		require.NoError(t, err)
		same, err := waiting.Wait()
		require.ErrorIs(t, err, condition.ErrOtherHolds)
		require.Same(t, hold, same)
		require.NoError(t, errors.Join(hold.Err(), inner.Err()))
		settle()
		u.has(0, 0)
		require.NoError(t, errors.Join(hold.Release(), inner.Release()))
	})
}

// A waiter that has a signal gives up before it has the lock. The signal goes to the next one that
// was there, and not to one that came later.
func TestSignalOfAWaiterThatGivesUp(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		a, b, c := named(t, srv, "a"), named(t, srv, "b"), named(t, srv, "c")
		first, second := a.wait(), b.wait()
		hold := c.acquire()
		require.NoError(t, c.cond.Signal(t.Context(), hold))
		settle()
		first.GivesUp(t) // it is in the queue of the mutex
		third := c.waitWith(hold)
		require.NoError(t, second.Won(t).Release())
		settle()
		require.True(t, third.Waiting())
		c.has(1, 0)
		c.signal()
		require.NoError(t, third.Won(t).Release())
	})
}

// All waiters that were there leave. Their signals are no use to later waiters, and the next holder
// that signals deletes them.
func TestUselessSignalsAreDeleted(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		a, b := named(t, srv, "a"), named(t, srv, "b")
		leave := func(send func(context.Context, *recipes.Hold) error) {
			waiting := a.wait()
			hold := b.acquire()
			require.NoError(t, send(t.Context(), hold))
			require.NoError(t, send(t.Context(), hold)) // nothing
			waiting.GivesUp(t)
			require.NoError(t, hold.Release())
			settle() // the waiter's node is deleted in the background
		}
		leave(b.cond.Signal)
		leave(b.cond.Broadcast)
		b.has(0, 1) // the second one has deleted that of the first
		later := a.wait()
		settle()
		require.True(t, later.Waiting())
		b.signal()
		require.NoError(t, later.Won(t).Release())
		settle()
		b.has(0, 0)
		leave(b.cond.Signal)
		b.broadcast()
		b.has(0, 0)
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		u, other := named(t, srv, "a"), named(t, srv, "b")
		hold := u.acquire()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := u.cond.Wait(ended, hold)
		require.ErrorIs(t, err, context.Canceled)
		require.NoError(t, hold.Err(), "nothing was done")

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		same, err := u.cond.Wait(ctx, hold)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "the lock is not held now")
		require.Same(t, hold, same)
		require.ErrorIs(t, hold.Release(), recipes.ErrNotHeld)
		settle()
		other.has(0, 0)
	})
}

// The end of the context while the signal is taken is no failure: the waiter has the lock, and takes
// the signal all the same.
func TestContextEndsWhileTheSignalIsTaken(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		u, other := named(t, srv, "a"), named(t, srv, "b")
		first, second := u.wait(), other.wait()
		taking := srv.On(fault.Match{Client: "a", Op: fault.OpMulti}, fault.Delay(time.Second))
		named(t, srv, "c").signal()
		require.NoError(t, taking.Wait(t.Context()))
		first.Cancel()
		hold := first.Won(t)
		require.NoError(t, hold.Err())
		other.has(2, 1)
		settle()
		other.has(1, 0)
		require.True(t, second.Waiting())
		require.NoError(t, hold.Release())
		other.signal()
		require.NoError(t, second.Won(t).Release())
	})
}

// A waiter whose node another client deletes fails, whether it is the first one or not.
func TestNodeOfAWaiterIsDeleted(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		u, other := named(t, srv, "a"), named(t, srv, "b")
		delete := func() {
			names, err := srv.Children("/p/condition")
			require.NoError(t, err)
			require.NoError(t, srv.Delete("/p/condition/"+names[0]))
		}
		first := u.wait()
		delete()
		_, err := first.Wait()
		require.ErrorIs(t, err, recipes.ErrNodeDeleted)
		second := u.wait()
		hold := other.acquire()
		require.NoError(t, other.cond.Signal(t.Context(), hold))
		settle()
		require.NoError(t, other.client.DeleteRecursive(t.Context(), "/p/condition")) // with the signal
		require.NoError(t, hold.Release())
		_, err = second.Wait()
		require.ErrorIs(t, err, recipes.ErrNodeDeleted)
	})
}

func TestLockIsLostBeforeTheRelease(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		u, other := named(t, srv, "a"), named(t, srv, "b")
		hold := u.acquire()
		require.NoError(t, srv.Delete(hold.Path())) // not noticed yet
		same, err := u.cond.Wait(t.Context(), hold)
		require.ErrorIs(t, err, recipes.ErrNodeDeleted)
		require.Same(t, hold, same)
		require.False(t, srv.Exists("/p/condition"), "there is a waiter that did not hold the lock")

		hold = u.acquire()
		srv.On(fault.Match{Client: "a", Op: fault.OpDelete}, fault.DropBefore())
		srv.Client("a").Refuse(true)
		waiting := u.waitWith(hold)
		_, err = waiting.Wait()
		require.ErrorIs(t, err, framework.ErrSessionLost)
		srv.Client("a").Refuse(false)
		outage()
		other.signal()
		other.has(0, 0)
	})
}

func TestSessionIsLostInTheWait(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		u, other := named(t, srv, "a"), named(t, srv, "b")
		first, second := u.wait(), other.wait()
		expire(t, srv, "a")
		_, err := first.Wait()
		require.ErrorIs(t, err, framework.ErrSessionLost)
		first = u.wait()
		other.signal()
		require.NoError(t, second.Won(t).Release())
		other.signal()
		require.NoError(t, first.Won(t).Release())
		first = u.wait()
		require.NoError(t, u.client.Close())
		_, err = first.Wait()
		require.ErrorIs(t, err, framework.ErrClosed)
		settle()
		other.has(0, 0)
	})
}

// A signal whose answer is lost is given once.
func TestSignalIsGivenOnce(t *testing.T) {
	for _, action := range []fault.Action{fault.DropBefore(), fault.DropAfter()} {
		for _, all := range []bool{false, true} {
			virtually(t, func(t *testing.T, srv *zktest.Server) {
				a, b, c := named(t, srv, "a"), named(t, srv, "b"), named(t, srv, "c")
				waiting := []*testlock.Attempt{a.wait(), b.wait()}
				hold := c.acquire()
				srv.On(fault.Match{Client: "c", Op: fault.OpMulti}, action)
				if all {
					require.NoError(t, c.cond.Broadcast(t.Context(), hold))
				} else {
					require.NoError(t, c.cond.Signal(t.Context(), hold))
				}
				c.has(2, 1)
				require.NoError(t, hold.Release())
				require.NoError(t, waiting[0].Won(t).Release())
				settle()
				require.Equal(t, all, !waiting[1].Waiting())
			})
		}
	}
}

// Signal fails when its context ends without a connection, or when the hold is lost. The outcome says
// whether the signal may have been given.
func TestSignalFails(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		a, b := named(t, srv, "a"), named(t, srv, "b")
		waiting := a.wait()
		hold := b.acquire()
		srv.On(fault.Match{Client: "b", Op: fault.OpMulti}, fault.DropAfter())
		ctx, cancel := context.WithCancel(t.Context())
		sent := make(chan error)
		go func() { sent <- b.cond.Signal(ctx, hold) }()
		time.Sleep(time.Millisecond)
		srv.Client("b").Refuse(true)
		time.Sleep(time.Second / 2)
		cancel()
		err := <-sent
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, framework.Unknown, framework.OutcomeOf(err))
		err = b.cond.Signal(testzk.Context(t), hold)
		require.ErrorIs(t, err, framework.ErrSessionLost)
		require.Equal(t, framework.NotApplied, framework.OutcomeOf(err))
		srv.Client("b").Refuse(false)
		require.NoError(t, waiting.Won(t).Release()) // the signal stays given
	})
}

// All waiters leave after Signal has seen them, and the server deletes the empty directory. The signal
// is no use then.
func TestSignalEndsWhenAllWaitersHaveLeft(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		a, b := named(t, srv, "a"), named(t, srv, "b")
		for _, send := range []func(context.Context, *recipes.Hold) error{b.cond.Signal, b.cond.Broadcast} {
			waiting, hold := a.wait(), b.acquire()
			held := srv.On(fault.Match{Client: "b", Op: fault.OpMulti}, fault.Hold())
			sent := make(chan error, 1)
			go func() { sent <- send(t.Context(), hold) }()
			require.NoError(t, held.Wait(t.Context()))
			waiting.GivesUp(t)
			time.Sleep(100 * time.Millisecond)
			require.NoError(t, srv.Delete("/p/condition"))
			held.Release()
			require.NoError(t, <-sent)
			require.False(t, srv.Exists("/p/condition"))
			require.NoError(t, hold.Release())
		}
	})
}

// The server answers to the release that the session has expired, before the client knows of it. The
// wait reports that, and not the release, which is not confirmed.
func TestSessionExpiresAtTheRelease(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		u, other := named(t, srv, "a"), named(t, srv, "b")
		hold := u.acquire()
		expired := srv.On(fault.Match{Client: "a", Op: fault.OpDelete}, fault.Fail(zktest.SessionExpired))
		waiting := u.waitWith(hold)
		require.NoError(t, expired.Wait(t.Context()))
		time.Sleep(100 * time.Millisecond)
		require.True(t, waiting.Waiting())
		expire(t, srv, "a")
		_, err := waiting.Wait()
		require.ErrorIs(t, err, framework.ErrSessionLost)
		require.NotErrorIs(t, err, recipes.ErrReleasePending)
		other.signal()
		other.has(0, 0)
	})
}
