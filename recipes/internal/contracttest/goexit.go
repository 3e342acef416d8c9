package contracttest

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/framework/metrics"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// trap is in code of the program. Once it is set, the next call of spring ends an acquire.
type trap struct {
	set    atomic.Bool
	end    ending
	cancel context.CancelFunc // ends the context of the acquire
}

// ending is how a trap ends an acquire.
type ending string

const (
	panics  ending = "panic"
	goexits ending = "goexit" // as testing.T.FailNow does
	cancels ending = "cancel" // the acquire may still succeed
)

func (t *trap) spring() {
	if !t.set.CompareAndSwap(true, false) {
		return
	}
	switch t.end {
	case panics:
		panic("trap")
	case goexits:
		runtime.Goexit()
	case cancels:
		t.cancel()
	}
}

func measures(i metrics.Instrument) func(*trap) framework.Option {
	return func(t *trap) framework.Option { return framework.WithMetrics(testzk.NewCalling(i, -1, t.spring)) }
}

// undisturbed has the traps that each acquire springs.
var undisturbed = map[string]func(*trap) framework.Option{
	"metrics of waiters": measures(metrics.LockWaiters),
	"metrics of waits":   measures(metrics.LockWait),
}

// disturbed has the traps that an acquire springs if a request has failed.
var disturbed = map[string]func(*trap) framework.Option{
	"retry policy": func(t *trap) framework.Option {
		return framework.WithRetry(func(int, time.Duration) (time.Duration, bool) {
			t.spring()
			return 100 * time.Millisecond, true
		})
	},
}

// Code of the program ends the goroutine that acquires, or the context of the acquire, at any of its
// calls. The lock is free for this process and for others, and no node is left.
func codeEndsAcquire(t *testing.T, k Kind) {
	for name, sit := range situations {
		for point, option := range undisturbed {
			if sit.try && strings.Contains(point, "waiters") {
				continue // a try does not count as a waiter
			}
			for _, end := range []ending{panics, goexits, cancels} {
				t.Run(fmt.Sprintf("%s in %s %s", name, point, end), func(t *testing.T) {
					t.Parallel()
					sim.Once(t, 1, inBubble(k, func(w *simFixture) {
						trap := &trap{end: end}
						sprung := w.endsAcquire(sit, trap, w.connect(target, option(trap)))
						require.True(w.t, sprung, "the trap was not sprung")
					}))
				})
			}
		}
		for point, option := range disturbed {
			for _, end := range []ending{goexits, cancels} { // a panic on a goroutine of the client ends the program
				for _, times := range []int{1, 2} { // a repeated read fails again
					t.Run(fmt.Sprintf("%s in %s %s times=%d", name, point, end, times), func(t *testing.T) {
						t.Parallel()
						sprung := 0
						eachRequest(t, k, func(w *simFixture, nth fault.Match) (reached bool) {
							nth.Times = times
							trap := &trap{end: end}
							c := w.connect(target, option(trap))
							rule := w.srv.On(nth, fault.DropAfter())
							if w.endsAcquire(sit, trap, c) {
								sprung++
							}
							reached = rule.Hits() > 0
							rule.Remove()
							return reached
						})
						require.Positive(t, sprung, "the trap was never sprung")
					})
				}
			}
		}
	}
}

// endsAcquire acquires the lock by c. The trap may end that acquire. Then no node may be left. It
// reports whether the trap was sprung.
func (w *simFixture) endsAcquire(sit situation, trap *trap, c *framework.Client) (sprung bool) {
	w.t.Helper()
	blocker := w.blocker(sit)
	var hold *recipes.Hold
	ended := make(chan struct{})
	ctx, cancel := context.WithCancel(testzk.Context(w.t))
	defer cancel()
	trap.cancel = cancel
	trap.set.Store(true)
	go func() {
		defer close(ended)
		defer func() { _ = recover() }()
		acquire := w.lock(c).Acquire
		if sit.try {
			acquire = w.lock(c).TryAcquire
		}
		hold, _ = acquire(ctx) // an error if the trap was on a goroutine of the client
	}()
	settle()
	if blocker != nil {
		select {
		case <-ended:
			require.Nil(w.t, hold, "acquired while another client holds the lock")
		default:
		}
		w.release(blocker)
		settle()
	}
	testzk.Closes(w.t, ended, "the acquire does not end")
	sprung = !trap.set.Swap(false)
	if hold != nil {
		w.release(hold)
	}
	settle()
	require.Empty(w.t, w.owned(w.session(c).ID()), "left behind")
	again := w.start(w.lock(c))
	settle()
	require.False(w.t, again.Waiting(), "this client cannot acquire the lock again")
	w.release(won(w.t, again))
	w.checkFree(nil)
	return sprung
}
