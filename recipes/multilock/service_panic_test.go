package multilock_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// logging returns a logger that calls end, once, on the goroutine that logs the message.
func logging(message string, end func()) framework.Option {
	var ended atomic.Bool
	core, _ := observer.New(zap.DebugLevel)
	return framework.WithLogger(zap.New(core, zap.Hooks(func(e zapcore.Entry) error {
		if e.Message == message && ended.CompareAndSwap(false, true) {
			end()
		}
		return nil
	})))
}

// A hold of a foreign lock ends, and the logger ends the goroutine that reports it. The foreign
// lock is released, because the service may still grant it to the client. The lock that is held
// with it is released too.
func TestForeignLockIsReleasedAlthoughItsLossCannotBeLogged(t *testing.T) {
	for name, lose := range map[string]func(t *testing.T, hold *recipes.Hold, lost chan struct{}, late *atomic.Bool){
		"which Err finds": func(t *testing.T, hold *recipes.Hold, _ chan struct{}, late *atomic.Bool) {
			late.Store(true)
			require.ErrorIs(t, hold.Err(), recipes.ErrForeignLost)
		},
		"which the service reports": func(_ *testing.T, _ *recipes.Hold, lost chan struct{}, _ *atomic.Bool) {
			close(lost)
		},
	} {
		t.Run(name, func(t *testing.T) {
			sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
				c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client("c").DialContext),
					logging("hold ended", runtime.Goexit))
				var late atomic.Bool
				lost, given := make(chan struct{}), make(chan struct{}, 2)
				begun := time.Now()
				hold := acquire(t, combined(t, foreign(func() recipes.ForeignHold {
					return recipes.ForeignHold{
						Lost: lost, Logger: c.Logger(),
						Until: func() time.Time {
							if late.Load() {
								return begun
							}
							return begun.Add(time.Hour)
						},
						Release: func(context.Context) error { given <- struct{}{}; return nil },
					}
				}), newMutex(t, c, "/lock")))
				time.Sleep(time.Second)
				lose(t, hold, lost, &late)
				time.Sleep(time.Second)
				require.ErrorIs(t, hold.Err(), recipes.ErrForeignLost)
				require.Len(t, given, 1, "number of releases")
				require.NotContains(t, srv.Tree(), "ephemeral", "the lock that is held with it")
			})
		})
	}
}
