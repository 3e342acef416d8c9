package locktest

import (
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/framework/metrics"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// trap is in code of the program's. It ends the goroutine that comes by, once, when it is set: by a
// panic, or as testing.T.FailNow does.
type trap struct {
	set    atomic.Bool
	goexit bool
}

func (t *trap) spring() {
	switch {
	case !t.set.CompareAndSwap(true, false):
	case t.goexit:
		runtime.Goexit()
	default:
		panic("trap")
	}
}

// trapped are metrics with a trap in one of the calls.
type trapped struct {
	testzk.Metrics
	trap       *trap
	instrument metrics.Instrument
}

func (m *trapped) Add(i metrics.Instrument, n int64, l metrics.Labels) {
	m.Metrics.Add(i, n, l)
	if i == m.instrument && n < 0 {
		m.trap.spring()
	}
}

func (m *trapped) Record(i metrics.Instrument, d time.Duration, l metrics.Labels) {
	m.Metrics.Record(i, d, l)
	if i == m.instrument {
		m.trap.spring()
	}
}

func logs(message string) func(*trap) framework.Option {
	return func(t *trap) framework.Option {
		core, _ := observer.New(zap.DebugLevel)
		return framework.WithLogger(zap.New(core, zap.Hooks(func(e zapcore.Entry) error {
			if strings.Contains(e.Message, message) {
				t.spring()
			}
			return nil
		})))
	}
}

func measures(i metrics.Instrument) func(*trap) framework.Option {
	return func(t *trap) framework.Option { return framework.WithMetrics(&trapped{trap: t, instrument: i}) }
}

// undisturbed are the traps that every acquire comes by.
var undisturbed = map[string]func(*trap) framework.Option{
	"metrics of waiters": measures(metrics.LockWaiters),
	"metrics of waits":   measures(metrics.LockWait),
	"log of acquires":    logs("acquired"),
}

// disturbed are those that an acquire comes by if a request has failed.
var disturbed = map[string]func(*trap) framework.Option{
	"log of attempts": logs("attempt failed"),
	"retry policy": func(t *trap) framework.Option {
		return framework.WithRetry(func(int, time.Duration) (time.Duration, bool) {
			t.spring()
			return 100 * time.Millisecond, true
		})
	},
}

// Code of the program's ends the goroutine that acquires, wherever it is called. The lock is free
// for others, in this process and elsewhere, and nothing is left.
func codeEndsAcquire(t *testing.T, k Kind) {
	for name, sit := range situations {
		for place, option := range undisturbed {
			if sit.try && strings.Contains(place, "waiters") {
				continue // which does not count
			}
			for _, goexit := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s in %s goexit=%v", name, place, goexit), func(t *testing.T) {
					t.Parallel()
					sim.Once(t, 1, inBubble(k, func(w *simFixture) {
						trap := &trap{goexit: goexit}
						require.True(w.t, w.endsAcquire(sit, trap, w.connect(target, option(trap))), "the trap was not sprung")
					}))
				})
			}
		}
		for place, option := range disturbed {
			for _, times := range []int{1, 2} { // a read that is repeated fails again
				t.Run(fmt.Sprintf("%s in %s times=%d", name, place, times), func(t *testing.T) {
					t.Parallel()
					sprung := 0
					eachRequest(t, k, func(w *simFixture, nth zktest.Match) (reached bool) {
						nth.Times = times
						trap := &trap{goexit: true} // a panic on a goroutine of the client's ends the program
						c := w.connect(target, option(trap))
						rule := w.srv.On(nth, zktest.DropAfter())
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

// endsAcquire makes an acquire by c, which the trap may end, and requires that nothing is left of
// it. It reports whether the trap was sprung.
func (w *simFixture) endsAcquire(sit situation, trap *trap, c *framework.Client) (sprung bool) {
	w.t.Helper()
	blocker := w.blocker(sit)
	var hold *recipes.Hold
	ended := make(chan struct{})
	trap.set.Store(true)
	go func() {
		defer close(ended)
		defer func() { _ = recover() }()
		acquire := w.lock(c).Acquire
		if sit.try {
			acquire = w.lock(c).TryAcquire
		}
		hold, _ = acquire(testzk.Context(w.t)) // also an error, if the trap was on a goroutine of the client's
	}()
	settle()
	if blocker != nil {
		select {
		case <-ended:
			require.Nil(w.t, hold, "acquired although another holds the lock")
		default:
		}
		w.release(blocker)
		settle()
	}
	closes(w.t, ended, "the acquire does not end")
	sprung = !trap.set.Swap(false)
	if hold != nil {
		w.release(hold)
	}
	settle()
	require.Empty(w.t, w.owned(w.session(c).ID()), "left behind")
	again := w.start(w.lock(c))
	settle()
	require.False(w.t, again.waiting(), "this client cannot acquire the lock again")
	w.release(again.won(w.t))
	w.checkFree(nil)
	return sprung
}
