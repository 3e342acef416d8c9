package multilock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/multilock"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// foreign is a lock of a service that grants each acquire. external returns the acquired lock.
func foreign(t *testing.T, c *framework.Client, external func() recipes.ForeignHold) recipes.Locker {
	t.Helper()
	lock, err := multilock.Foreign(c, "service", func(context.Context, bool) (recipes.ForeignHold, error) {
		return external(), nil
	})
	require.NoError(t, err)
	return lock
}

// stuck is a release by a service that does not answer.
func stuck(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

func TestServiceThatDoesNotAnswerDelaysNoClose(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, h *recipes.Hold, srv *zktest.Server, lost chan struct{}){
		"the service reports the loss": func(_ *testing.T, _ *recipes.Hold, _ *zktest.Server, lost chan struct{}) {
			close(lost)
		},
		"another part is lost": func(t *testing.T, h *recipes.Hold, srv *zktest.Server, _ chan struct{}) {
			require.NoError(t, srv.Delete(h.Path()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
				c, lost := simClient(t, srv, "c", 40*time.Second), make(chan struct{})
				other := foreign(t, c, func() recipes.ForeignHold {
					return recipes.ForeignHold{Lost: lost, Release: stuck}
				})
				hold := acquire(t, combined(t, newMutex(t, c, "/a"), other))
				time.Sleep(time.Second)
				end(t, hold, srv, lost)
				<-hold.Done()
				time.Sleep(time.Second)
				began := time.Now()
				require.NoError(t, c.Close())
				require.Less(t, time.Since(began), time.Second)
			}, zktest.WithSessionTimeouts(time.Second, time.Minute))
		})
	}
}

func TestServiceThatDoesNotAnswerDelaysNoCanceledAcquire(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		ctx, cancel := context.WithCancel(t.Context())
		other := foreign(t, simClient(t, srv, "c", 40*time.Second), func() recipes.ForeignHold {
			cancel()
			return recipes.ForeignHold{Release: stuck}
		})
		began := time.Now()
		_, err := other.Acquire(ctx)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, recipes.ErrReleasePending)
		require.LessOrEqual(t, time.Since(began), time.Second)
	}, zktest.WithSessionTimeouts(time.Second, time.Minute))
}

// Another attempt would have the same result each time.
func TestForeignLockThatEndsAtOnceIsAnError(t *testing.T) {
	path, c, s := named(t, 1)[0], own(t), &service{}
	ended := foreign(t, c, func() recipes.ForeignHold {
		external, _ := s.try()
		external.Until = func() time.Time { return time.Now().Add(-time.Second) }
		return external
	})
	_, err := combined(t, newMutex(t, c, path), ended).TryAcquire(testzk.Context(t))
	require.ErrorIs(t, err, recipes.ErrForeignLost)
	isReleased := func() bool { taken, released := s.state(); return !taken && released == 1 }
	testzk.Eventually(t, isReleased, "the foreign lock is not released")
	free(t, path)
}

func TestErrorOfACanceledAcquireHasTheCause(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	fails, err := multilock.Foreign(own(t), "service", func(context.Context, bool) (recipes.ForeignHold, error) {
		cancel()
		return recipes.ForeignHold{}, errors.New("connection reset")
	})
	require.NoError(t, err)
	_, err = fails.Acquire(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "acquire service: ")
	require.ErrorContains(t, err, "connection reset")
}

func TestPanicOfALockLeavesNoOtherHeld(t *testing.T) {
	path, c := named(t, 1)[0], own(t)
	m := combined(t, newMutex(t, c, path), foreign(t, c, func() recipes.ForeignHold { panic("out of order") }))
	require.PanicsWithValue(t, "out of order", func() { _, _ = m.Acquire(testzk.Context(t)) })
	free(t, path)
}

func TestLossOfAForeignLockIsMeasured(t *testing.T) {
	var m testzk.Metrics
	c, lost := testzk.Connected(t, testzk.Connect(), framework.WithMetrics(&m)), make(chan struct{})
	hold := acquire(t, foreign(t, c, func() recipes.ForeignHold {
		return recipes.ForeignHold{Lost: lost, Release: func(context.Context) error { return nil }}
	}))
	close(lost)
	require.ErrorIs(t, hold.Release(), recipes.ErrForeignLost)
	require.NoError(t, c.Close())
	require.Subset(t, m.Lines(time.Hour), []string{
		"docent.lock.hold{foreign service foreign_lost} 0s",
		"docent.lock.losses{foreign service foreign_lost} 1",
	})
}

// While a machine is suspended the monotonic clock stops. The time of the service continues.
func TestForeignLockEndsWhileTheMachineIsSuspended(t *testing.T) {
	var until atomic.Pointer[time.Time]
	set := func(at time.Time) { until.Store(&at) }
	set(time.Now().Add(time.Minute))
	hold := acquire(t, foreign(t, own(t), func() recipes.ForeignHold {
		return recipes.ForeignHold{
			Until:   func() time.Time { return *until.Load() },
			Release: func(context.Context) error { return nil },
		}
	}))
	require.NoError(t, hold.Err())
	set(suspendedFor(2*time.Minute, time.Now().Add(time.Minute)))
	require.ErrorIs(t, hold.Err(), recipes.ErrForeignLost)
}

// suspendedFor returns at as it looks after a suspension of d: the wall clock has advanced, the
// monotonic clock has not.
func suspendedFor(d time.Duration, at time.Time) time.Time {
	at = at.Add(-d)
	// Package time has no way to set the monotonic reading.
	monotonic := (*int64)(unsafe.Add(unsafe.Pointer(&at), unsafe.Sizeof(uint64(0))))
	*monotonic += int64(d)
	return at
}

// A service may change Until at any time, also between two reads of it.
func TestForeignLockIsNotValidForLongerThanTheSession(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		var asked atomic.Int64
		hold := acquire(t, foreign(t, simClient(t, srv, "c", 4*time.Second), func() recipes.ForeignHold {
			return recipes.ForeignHold{Release: func(context.Context) error { return nil }, Until: func() time.Time {
				if asked.Add(1)%2 == 0 {
					return time.Now().Add(time.Second)
				}
				return time.Now().Add(time.Hour)
			}}
		}))
		synctest.Wait()
		for range 2 { // asks once in each state
			asked.Add(1)
			require.False(t, hold.ValidUntil().After(time.Now().Add(4*time.Second)))
		}
		require.NoError(t, hold.Release())
	}, zktest.WithSessionTimeouts(time.Second, time.Minute))
}
