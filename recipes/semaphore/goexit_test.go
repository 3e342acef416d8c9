package semaphore_test

import (
	"fmt"
	"math/rand/v2"
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
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/semaphore"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// A logger ends the goroutine of an acquire in the calls that only semaphores make. The first
// waiter warns that it waits for a higher limit, or a request fails that records another fixed
// limit. No node is left, and other clients can acquire all permits.
func TestEndedAcquireOfASemaphoreLeavesNoNode(t *testing.T) {
	for name, row := range map[string]struct {
		message string
		opts    []semaphore.Option
		n       int
		faults  bool // at each request in turn
	}{
		"warning":       {"more permits requested", []semaphore.Option{semaphore.WithSharedLimit("/limit")}, 3, false},
		"another limit": {"attempt failed", nil, 1, true},
	} {
		for how, end := range map[string]func(){"panic": func() { panic("end") }, "goexit": runtime.Goexit} {
			t.Run(fmt.Sprintf("%s %s", name, how), func(t *testing.T) {
				sprung := 0
				for n, reached := 0, true; reached; n++ {
					sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
						other := newSemaphore(t, client(t, srv, "other"), "/sem", 2, row.opts...)
						release(t, acquire(t, other, 2))
						var set, ended atomic.Bool
						core, _ := observer.New(zap.DebugLevel)
						log := zap.New(core, zap.Hooks(func(e zapcore.Entry) error {
							if strings.Contains(e.Message, row.message) && set.CompareAndSwap(true, false) {
								ended.Store(true)
								end()
							}
							return nil
						}))
						s := newSemaphore(t, client(t, srv, "c", framework.WithLogger(log)), "/sem", 3, row.opts...)
						action := fault.Pass()
						if row.faults {
							action = fault.DropAfter()
						}
						rule := srv.On(fault.Match{Client: "c", Path: "/sem", Skip: n}, action)
						set.Store(true)
						done := make(chan struct{})
						var hold *recipes.Hold
						go func() {
							defer close(done)
							defer func() { _ = recover() }()
							hold, _ = s.AcquireN(t.Context(), row.n)
							set.Store(false) // only the acquire is to be ended
						}()
						<-done
						require.Equal(t, hold == nil, ended.Load())
						if ended.Load() {
							sprung++
						}
						reached = row.faults && rule.Hits() > 0
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
}
