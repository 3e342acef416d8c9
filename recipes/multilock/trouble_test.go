package multilock_test

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// foreign is a lock of a service that grants each acquire. external returns the acquired lock.
func foreign(external func() recipes.ForeignHold) recipes.Locker {
	return ofService(func(context.Context, bool) (recipes.ForeignHold, error) { return external(), nil })
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
				other := foreign(func() recipes.ForeignHold {
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
				time.Sleep(10 * time.Second) // the release of the service ends by its own limit
			}, zktest.WithSessionTimeouts(time.Second, time.Minute))
		})
	}
}

func TestServiceThatDoesNotAnswerDelaysNoCanceledAcquire(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		ctx, cancel := context.WithCancel(t.Context())
		other := foreign(func() recipes.ForeignHold {
			cancel()
			return recipes.ForeignHold{Release: stuck}
		})
		began := time.Now()
		_, err := combined(t, other, newMutex(t, simClient(t, srv, "c", 40*time.Second), "/a")).Acquire(ctx)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, recipes.ErrReleasePending)
		require.LessOrEqual(t, time.Since(began), time.Second)
		time.Sleep(10 * time.Second) // the release of the service ends by its own limit
	}, zktest.WithSessionTimeouts(time.Second, time.Minute))
}

// Another attempt would have the same result each time.
func TestForeignLockThatEndsAtOnceIsAnError(t *testing.T) {
	path, c, s := named(t, 1)[0], own(t), &service{}
	ended := foreign(func() recipes.ForeignHold {
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

func TestPanicOfALockLeavesNoOtherHeld(t *testing.T) {
	path, c := named(t, 1)[0], own(t)
	m := combined(t, newMutex(t, c, path), foreign(func() recipes.ForeignHold { panic("out of order") }))
	require.PanicsWithValue(t, "out of order", func() { _, _ = m.Acquire(testzk.Context(t)) })
	free(t, path)
}

// A service may change Until at any time, also between two reads of it.
func TestForeignLockIsNotValidForLongerThanTheSession(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		var asked atomic.Int64
		other := foreign(func() recipes.ForeignHold {
			return recipes.ForeignHold{Release: func(context.Context) error { return nil }, Until: func() time.Time {
				if asked.Add(1)%2 == 0 {
					return time.Now().Add(time.Second)
				}
				return time.Now().Add(time.Hour)
			}}
		})
		hold := acquire(t, combined(t, other, newMutex(t, simClient(t, srv, "c", 4*time.Second), "/a")))
		synctest.Wait()
		for range 2 { // asks once in each state
			asked.Add(1)
			require.False(t, hold.ValidUntil().After(time.Now().Add(4*time.Second)))
		}
		require.NoError(t, hold.Release())
	}, zktest.WithSessionTimeouts(time.Second, time.Minute))
}
