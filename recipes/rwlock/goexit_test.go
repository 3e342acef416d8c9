package rwlock_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/framework/metrics"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/rwlock"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// The points of an acquire at which it calls code of the program.
const granted, failed = "granted", "failed"

var points = map[string]func(spring func()) framework.Option{
	granted: func(spring func()) framework.Option {
		return framework.WithMetrics(testzk.NewCalling(metrics.LockWait, 0, spring))
	},
	failed: func(spring func()) framework.Option {
		return framework.WithRetry(func(int, time.Duration) (time.Duration, bool) {
			spring()
			return 100 * time.Millisecond, true
		})
	},
}

// Metrics end the goroutine that downgrades or upgrades when the hold is granted, or a retry policy does when
// a request fails. The first hold stays valid, and no other node is left.
func TestSecondHoldIsReleasedIfItsAcquireIsEnded(t *testing.T) {
	type acquirer = func(*rwlock.RWLock, context.Context) (*recipes.Hold, error)
	read := func(rw *rwlock.RWLock, ctx context.Context) (*recipes.Hold, error) { return rw.Read().Acquire(ctx) }
	write := func(rw *rwlock.RWLock, ctx context.Context) (*recipes.Hold, error) { return rw.Write().Acquire(ctx) }
	sides := map[string]struct{ first, beside acquirer }{
		"upgrade": {read, (*rwlock.RWLock).TryUpgrade}, "downgrade": {write, read},
	}
	ends := map[string]func(){"panic": func() { panic("end") }, "goexit": runtime.Goexit}
	for name, side := range sides {
		for how, end := range ends {
			for _, point := range []string{granted, failed} {
				t.Run(fmt.Sprintf("%s, %s, %s", name, how, point), func(t *testing.T) {
					for n, reached := 0, true; reached; n++ {
						sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
							var set, ended atomic.Bool
							spring := func() {
								if set.CompareAndSwap(true, false) {
									ended.Store(true)
									end()
								}
							}
							c := testzk.Connected(t, srv.MemAddr(), points[point](spring),
								framework.WithDialer(srv.Client("c").DialContext))
							rw := newLock(t, c, "/lock")
							first, err := side.first(rw, t.Context())
							require.NoError(t, err)
							time.Sleep(time.Second)
							action := fault.DropAfter()
							if point == granted {
								action = fault.Pass()
							}
							rule := srv.On(fault.Match{Client: "c", Path: "/lock", Skip: n}, action)
							set.Store(true)
							done := make(chan struct{})
							var hold *recipes.Hold
							go func() {
								defer close(done)
								defer func() { _ = recover() }()
								hold, _ = side.beside(rw, first.Context(t.Context()))
								set.Store(false) // only the acquire is to be ended
							}()
							<-done
							require.Equal(t, hold == nil, ended.Load())
							reached = point == failed && rule.Hits() > 0
							rule.Remove()
							if hold != nil {
								require.NoError(t, hold.Release())
							}
							time.Sleep(time.Second)
							left, err := srv.Children("/lock")
							require.NoError(t, err)
							require.Len(t, left, 1, "other nodes than that of the first hold")
							require.NoError(t, first.Err())
							require.NoError(t, first.Release())
						})
					}
				})
			}
		}
	}
}
