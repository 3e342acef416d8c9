package handoff_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// relay is two goroutines that hand a lock to each other until it is stopped. All holds have the
// same length.
type relay struct {
	mu   sync.Mutex
	last *recipes.Hold
	lost []error // errors of Release
}

func run(t *testing.T, lock *mutex.Mutex, each time.Duration) (r *relay, stop func()) {
	r = &relay{}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	stop = func() { cancel(); running.Wait() }
	t.Cleanup(stop)
	for range 2 {
		running.Go(func() {
			for ctx.Err() == nil {
				if hold, err := lock.Acquire(ctx); err == nil {
					r.keep(hold, each)
				}
			}
		})
	}
	return r, stop
}

func (r *relay) keep(hold *recipes.Hold, d time.Duration) {
	r.mu.Lock()
	r.last = hold
	r.mu.Unlock()
	time.Sleep(d)
	if err := hold.Release(); err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.lost = append(r.lost, err)
	}
}

func (r *relay) holder() *recipes.Hold {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// The deletion of a node is noticed even if all holds are short, because the watch is independent
// of the hold.
func TestDeletedNodeIsNotPassedOnForLong(t *testing.T) {
	for name, c := range map[string]struct {
		watched bool // the node is watched, because it waited
		each    time.Duration
	}{
		"a node that never waited":         {false, 50 * time.Millisecond},
		"a node that waited":               {true, 50 * time.Millisecond},
		"in holds shorter than any answer": {true, 100 * time.Microsecond},
	} {
		t.Run(name, func(t *testing.T) {
			withHandoff(t, generous, func(t *testing.T, h *handoffFixture) {
				var before *recipes.Hold
				if c.watched {
					before = acquire(t, h.other)
				}
				r, stop := run(t, h.lock, c.each)
				time.Sleep(time.Second)
				require.NoError(t, release(before))
				time.Sleep(time.Second)
				node := r.holder().Path()
				require.NoError(t, h.Delete(node))

				other := acquire(t, h.other)
				time.Sleep(time.Second)
				for range 2000 {
					require.Error(t, r.holder().Err(), "both holds are valid a second after the node was deleted")
					time.Sleep(time.Millisecond)
				}
				require.Len(t, r.lost, 1)
				require.ErrorIs(t, r.lost[0], recipes.ErrNodeDeleted)
				require.NoError(t, other.Release())
				time.Sleep(time.Second)
				require.NotEqual(t, node, r.holder().Path(), "the relay does not continue with another node")
				stop()
			})
		})
	}
}

func TestRevokedNodeIsNotPassedOn(t *testing.T) {
	for _, each := range []time.Duration{50 * time.Millisecond, time.Millisecond} {
		withHandoff(t, generous, func(t *testing.T, h *handoffFixture) {
			r, stop := run(t, h.lock, each)
			time.Sleep(time.Second)
			other := testlock.Start(t, h.other.Acquire)
			time.Sleep(time.Second)
			require.True(t, other.Waiting(), "the lock was not passed on")
			require.NoError(t, recipes.Revoke(t.Context(), h.remote, recipes.Participant{Node: r.holder().Path()}))
			begun := time.Now()
			hold := other.Won(t)
			require.Less(t, time.Since(begun), time.Second)
			require.NoError(t, hold.Release())
			stop()
			require.Empty(t, r.lost)
		})
	}
}

// A guard is applied while its node exists. A guard of a former holder must not be applied under
// the next hold.
func TestNodeIsNotPassedOnWhileAGuardMayStillBeApplied(t *testing.T) {
	guard := func(ctx context.Context, hold *recipes.Hold) error {
		_, err := hold.Guard(ctx, framework.SetOp("/config", []byte("written"), -1))
		return err
	}
	for name, begin := range map[string]func(*testing.T, *handoffFixture, *recipes.Hold){
		"under way": func(t *testing.T, h *handoffFixture, hold *recipes.Hold) {
			h.On(fault.Match{Client: "local", Op: fault.OpMulti}, fault.Delay(500*time.Millisecond))
			go func() { _ = guard(context.Background(), hold) }()
			time.Sleep(100 * time.Millisecond)
		},
		"not sent yet": func(t *testing.T, h *handoffFixture, hold *recipes.Hold) {
			h.Client("local").Refuse(true)
			h.Client("local").Drop()
			time.Sleep(100 * time.Millisecond)
			go func() { _ = guard(context.Background(), hold) }()
			time.AfterFunc(500*time.Millisecond, func() { h.Client("local").Refuse(false) })
			time.Sleep(100 * time.Millisecond)
		},
		"of unknown outcome": func(t *testing.T, h *handoffFixture, hold *recipes.Hold) {
			h.On(fault.Match{Client: "local", Op: fault.OpMulti}, fault.Delay(500*time.Millisecond))
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			err := guard(ctx, hold)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, framework.Unknown, framework.OutcomeOf(err))
		},
	} {
		t.Run(name, func(t *testing.T) {
			withHandoff(t, generous, func(t *testing.T, h *handoffFixture) {
				hold := acquire(t, h.lock)
				waiting := waiters(t, h.lock, 2)
				begin(t, h, hold)
				require.NoError(t, hold.Release())
				next := waiting[0].Won(t)
				before, err := h.Get("/config")
				require.NoError(t, err)
				time.Sleep(2 * time.Second)
				after, err := h.Get("/config")
				require.NoError(t, err)
				require.Equal(t, string(before), string(after), "the guard of a former holder was applied")
				require.Greater(t, next.Token(), hold.Token())

				require.NoError(t, next.Release())
				last := waiting[1].Won(t)
				require.Equal(t, next.Token(), last.Token(), "the unknown outcome concerned the former node")
				require.NoError(t, last.Release())
				require.NoError(t, h.Set("/config", []byte("0")))
			}, framework.WithRetry(retry.Forever(100*time.Millisecond)))
		})
	}
}

func TestNodeIsPassedOnAfterGuardsOfKnownOutcome(t *testing.T) {
	withHandoff(t, generous, func(t *testing.T, h *handoffFixture) {
		hold := acquire(t, h.lock)
		waiting := waiters(t, h.lock, 1)
		_, err := hold.Guard(t.Context(), framework.SetOp("/config", []byte("0"), -1))
		require.NoError(t, err)
		_, err = hold.Guard(t.Context(), framework.SetOp("/config", []byte("1"), 77))
		require.Equal(t, framework.NotApplied, framework.OutcomeOf(err))
		require.NoError(t, hold.Release())
		next := waiting[0].Won(t)
		require.Equal(t, hold.Token(), next.Token())
		require.NoError(t, next.Release())
	})
}

// The paths of a hold and of its guards depend on the namespace view that acquired it. So a node
// stays within one view.
func TestHoldsArePassedOnWithinOneViewOnly(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		c := dialled(t, srv, "local")
		root := newMutex(t, c, "/ns/lock", mutex.WithLocalHandoff(generous))
		view := newMutex(t, c.Namespace("ns"), "/lock", mutex.WithLocalHandoff(generous))
		hold := acquire(t, root)
		require.NoError(t, srv.Create("/config", nil))
		require.NoError(t, srv.Create("/ns/config", nil))
		waiting := append(waiters(t, view, 1), waiters(t, root, 1)...)
		time.Sleep(time.Second)
		require.Regexp(t, "^/ns/lock/", hold.Path())
		require.NoError(t, hold.Release())
		for i, a := range []*testlock.Attempt{waiting[1], waiting[0]} {
			hold := a.Won(t)
			require.Regexp(t, []string{"^/ns/lock/", "^/lock/"}[i], hold.Path())
			_, err := hold.Guard(t.Context(), framework.SetOp("/config", fmt.Append(nil, i), -1))
			require.NoError(t, err)
			require.NoError(t, hold.Release())
		}
		of := map[string]string{}
		for _, path := range []string{"/config", "/ns/config"} {
			data, err := srv.Get(path)
			require.NoError(t, err)
			of[path] = string(data)
		}
		require.Equal(t, map[string]string{"/config": "0", "/ns/config": "1"}, of)
	})
}
