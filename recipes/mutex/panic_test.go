package mutex_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/framework/metrics"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// traps are in code of the program that runs during an acquire, on the goroutine that acquires.
var traps = map[string]func(t *testzk.Trap) framework.Option{
	"waiters": func(t *testzk.Trap) framework.Option {
		return framework.WithMetrics(testzk.NewCalling(metrics.LockWaiters, -1, t.Spring))
	},
	"wait": func(t *testzk.Trap) framework.Option {
		return framework.WithMetrics(testzk.NewCalling(metrics.LockWait, 0, t.Spring))
	},
	"policy": func(t *testzk.Trap) framework.Option {
		return framework.WithRetry(func(int, time.Duration) (time.Duration, bool) {
			t.Spring()
			return 100 * time.Millisecond, true
		})
	},
}

// A panic or Goexit in code of the program during an acquire leaves the lock free, for this process
// and for others.
func TestLockIsFreeAfterTheProgramEndedAnAcquire(t *testing.T) {
	limits := mutex.Handoff{Streak: 5, Span: time.Second}
	kinds := map[string][]mutex.Option{
		"plain": nil, "handoff": {mutex.WithLocalHandoff(limits)}, "sticky": {keeping(limits, time.Second)},
	}
	calls := map[string]func(*mutex.Mutex, context.Context) (*recipes.Hold, error){
		"Acquire": (*mutex.Mutex).Acquire, "TryAcquire": (*mutex.Mutex).TryAcquire,
	}
	for point, option := range traps {
		for kind, opts := range kinds {
			for call, acquire := range calls {
				for _, goexit := range []bool{false, true} {
					switch {
					case point == "waiters" && call == "TryAcquire":
						continue // a try does not count as a waiter
					case kind == "handoff" && call == "TryAcquire":
						continue // the same as plain
					case kind != "plain" && call == "Acquire" && point != "wait" && point != "waiters" && !goexit:
						continue // it runs on a goroutine of the client, where a panic ends the program
					}
					name := fmt.Sprintf("%s %s %s goexit=%v", point, kind, call, goexit)
					sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
						trap := &testzk.Trap{Goexit: goexit}
						c := testzk.Connected(t, srv.MemAddr(), option(trap),
							framework.WithDialer(srv.Client("c").DialContext))
						m := newMutex(t, c, "/lock", opts...)
						require.NoError(t, mustAcquire(t, m).Release())
						time.Sleep(2 * time.Second) // no node is kept after that
						if point == "policy" {
							srv.On(fault.Match{Client: "c", Op: fault.OpCreate}, fault.DropAfter())
						}
						trap.Set()
						onOther := goexit && kind != "plain" && call == "Acquire" &&
							point != "wait" && point != "waiters"
						if onOther { // the waiter gets an error about the goroutine that has ended
							_, err := acquire(m, t.Context())
							require.ErrorContains(t, err, "ended the goroutine", name)
						} else {
							<-testzk.Sprung(t, func() { _, _ = acquire(m, t.Context()) })
						}
						require.False(t, trap.IsSet(), "%s: the trap was not sprung", name)
						ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
						defer cancel()
						hold, err := m.Acquire(ctx)
						require.NoError(t, err, "%s: %s", name, srv.Tree())
						require.NoError(t, hold.Release())
						other := testzk.Connected(t, srv.MemAddr(),
							framework.WithDialer(srv.Client("other").DialContext))
						hold, err = newMutex(t, other, "/lock").Acquire(ctx)
						require.NoError(t, err, "%s: %s", name, srv.Tree())
						require.NoError(t, hold.Release())
						time.Sleep(2 * time.Second)
						require.NotContains(t, srv.Tree(), "ephemeral", name)
					})
				}
			}
		}
	}
}

func mustAcquire(t *testing.T, m *mutex.Mutex) *recipes.Hold {
	t.Helper()
	hold, err := m.Acquire(t.Context())
	require.NoError(t, err)
	return hold
}

// A Locker can be locked again after code of the program has ended the goroutine in Lock or Unlock.
func TestLockerWorksAfterTheProgramEndedACall(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		locking, unlocking := &testzk.Trap{}, &testzk.Trap{}
		traps := map[metrics.Instrument]*testzk.Trap{metrics.LockWait: locking, metrics.LockHold: unlocking}
		for instrument, trap := range traps {
			c := testzk.Connected(t, srv.MemAddr(),
				framework.WithMetrics(testzk.NewCalling(instrument, 0, trap.Spring)),
				framework.WithDialer(srv.Client("c").DialContext))
			l := newMutex(t, c, "/lock").Locker(t.Context())
			trap.Set()
			lockAndUnlock := func() {
				l.Lock()
				defer l.Unlock()
			}
			func() {
				defer func() { require.Equal(t, "trap", recover()) }()
				lockAndUnlock()
			}()
			lockAndUnlock()
		}
	})
}

// Metrics end the goroutine that counts a deletion, and the deletion needs more than one attempt: the context of
// an acquire has ended, or the connection is lost.
func TestNodeIsDeletedAlthoughMetricsEndItsFirstDeletion(t *testing.T) {
	for _, goexit := range []bool{false, true} {
		for _, n := range []int64{1, -1} {
			for name, call := range map[string]func(d *endedDeletion){
				"acquire": (*endedDeletion).acquire, "release": (*endedDeletion).release,
			} {
				t.Run(fmt.Sprintf("%s %+d goexit=%v", name, n, goexit), func(t *testing.T) {
					sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
						dialer := func(name string) framework.Option {
							return framework.WithDialer(srv.Client(name).DialContext)
						}
						trap := &testzk.Trap{Goexit: goexit}
						m := testzk.NewCalling(metrics.PendingDeletions, n, trap.Spring)
						c := testzk.Connected(t, srv.MemAddr(), dialer("c"), framework.WithMetrics(m))
						other := testzk.Connected(t, srv.MemAddr(), dialer("other"))
						call(&endedDeletion{t, srv, trap, newMutex(t, c, "/lock"), newMutex(t, other, "/lock")})
						require.False(t, trap.IsSet(), "the trap was not sprung")
						ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
						defer cancel()
						hold, err := newMutex(t, other, "/lock").Acquire(ctx)
						require.NoError(t, err, srv.Tree())
						require.NoError(t, hold.Release())
					})
				})
			}
		}
	}
}

// endedDeletion has a lock of a client with a trap, and one of another client.
type endedDeletion struct {
	t           *testing.T
	srv         *zktest.Server
	trap        *testzk.Trap
	lock, other *mutex.Mutex
}

// ends calls fn on a goroutine of its own, which the trap ends.
func (d *endedDeletion) ends(fn func()) {
	d.trap.Set()
	<-testzk.Sprung(d.t, fn)
}

func (d *endedDeletion) acquire() {
	hold := mustAcquire(d.t, d.other)
	d.ends(func() {
		ctx, cancel := context.WithTimeout(d.t.Context(), time.Second)
		defer cancel()
		_, _ = d.lock.Acquire(ctx)
	})
	require.NoError(d.t, hold.Release())
}

func (d *endedDeletion) release() {
	hold := mustAcquire(d.t, d.lock)
	d.srv.On(fault.Match{Client: "c", Op: fault.OpDelete, Times: 1}, fault.DropBefore())
	d.ends(func() { _ = hold.Release() })
}
