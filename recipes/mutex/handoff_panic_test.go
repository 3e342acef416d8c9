package mutex_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// trapped is a context of the program. Once the trap is set, it ends the goroutine that calls Err,
// after a number of calls that return.
type trapped struct {
	context.Context
	trap  *testzk.Trap
	calls int
}

func (c *trapped) Err() error {
	switch {
	case !c.trap.IsSet():
	case c.calls > 0:
		c.calls--
	default:
		c.trap.Spring()
	}
	return c.Context.Err()
}

// The goroutine of an acquire is ended just after another goroutine of the client has handed it the
// lock, or just after it has given up. The lock is free for others.
func TestLockIsFreeAfterAContextEndedAHandoff(t *testing.T) {
	release := func(t *testing.T, first *recipes.Hold, _ context.CancelFunc) { require.NoError(t, first.Release()) }
	limits := mutex.Handoff{Streak: 5, Span: time.Minute}
	passing, keeping := mutex.WithLocalHandoff(limits), keeping(limits, time.Minute)
	for name, row := range map[string]struct {
		option  mutex.Option
		acquire func(m *mutex.Mutex, ctx context.Context) (*recipes.Hold, error)
		calls   int                                                                // of Err that return
		then    func(t *testing.T, first *recipes.Hold, cancel context.CancelFunc) // called while it waits
	}{
		"handed to a waiter": {passing, (*mutex.Mutex).Acquire, 0, release},
		"a waiter gives up": {
			passing, (*mutex.Mutex).Acquire, 0,
			func(t *testing.T, first *recipes.Hold, cancel context.CancelFunc) {
				cancel()
				time.Sleep(time.Second)
				release(t, first, cancel)
			},
		},
		"a kept node": {
			keeping,
			func(m *mutex.Mutex, ctx context.Context) (*recipes.Hold, error) {
				time.Sleep(2 * time.Second) // until the node is kept
				return m.TryAcquire(ctx)
			},
			2, // calls before the hand-off
			release,
		},
	} {
		for _, goexit := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s goexit=%v", name, goexit), func(t *testing.T) {
				sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
					c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client("c").DialContext))
					m := newMutex(t, c, "/lock", row.option)
					first := mustAcquire(t, m)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					trap := &testzk.Trap{Goexit: goexit}
					ended := testzk.Sprung(t, func() { _, _ = row.acquire(m, &trapped{ctx, trap, row.calls}) })
					time.Sleep(time.Second)
					trap.Set()
					row.then(t, first, cancel)
					select {
					case <-ended:
					case <-time.After(time.Minute):
						require.FailNow(t, "it waits for another hand-off")
					}
					require.False(t, trap.IsSet(), "the trap was not sprung")
					again, cancel := context.WithTimeout(t.Context(), 10*time.Second)
					defer cancel()
					hold, err := m.Acquire(again)
					require.NoError(t, err)
					require.NoError(t, hold.Release())
				})
			})
		}
	}
}
