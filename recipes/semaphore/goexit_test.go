package semaphore_test

import (
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// A retry policy ends the goroutine of an acquire when a request fails, each in turn. One of them records
// another fixed limit. No node is left, and other clients can acquire all permits.
func TestEndedAcquireOfASemaphoreLeavesNoNode(t *testing.T) {
	for how, end := range map[string]func(){"panic": func() { panic("end") }, "goexit": runtime.Goexit} {
		t.Run(how, func(t *testing.T) {
			sprung := 0
			for n, reached := 0, true; reached; n++ {
				sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
					other := newSemaphore(t, client(t, srv, "other"), "/sem", 2)
					release(t, acquire(t, other, 2))
					var set, ended atomic.Bool
					policy := framework.WithRetry(func(int, time.Duration) (time.Duration, bool) {
						if set.CompareAndSwap(true, false) {
							ended.Store(true)
							end()
						}
						return 100 * time.Millisecond, true
					})
					s := newSemaphore(t, client(t, srv, "c", policy), "/sem", 3)
					rule := srv.On(fault.Match{Client: "c", Path: "/sem", Skip: n}, fault.DropAfter())
					set.Store(true)
					done := make(chan struct{})
					var hold *recipes.Hold
					go func() {
						defer close(done)
						defer func() { _ = recover() }()
						hold, _ = s.AcquireN(t.Context(), 1)
						set.Store(false) // only the acquire is to be ended
					}()
					<-done
					require.Equal(t, hold == nil, ended.Load())
					if ended.Load() {
						sprung++
					}
					reached = rule.Hits() > 0
					rule.Remove()
					if hold != nil {
						release(t, hold)
					}
					time.Sleep(time.Second)
					require.NotContains(t, srv.Tree(), "ephemeral")
					release(t, acquire(t, other, 2))
				})
			}
			require.Positive(t, sprung)
		})
	}
}
