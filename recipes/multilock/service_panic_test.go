package multilock_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
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

// lossLogger calls end, once, when the loss of a hold is logged.
func lossLogger(end func()) *zap.Logger {
	core, _ := observer.New(zap.DebugLevel)
	end = once(end)
	return zap.New(core, zap.Hooks(func(e zapcore.Entry) error {
		if e.Message == "hold ended" {
			end()
		}
		return nil
	}))
}

// once returns a function that calls end the first time. Later calls do not wait for the first one.
func once(end func()) func() {
	var called atomic.Bool
	return func() {
		if called.CompareAndSwap(false, true) {
			end()
		}
	}
}

// reporting returns options that have end called, once, when the loss of a hold is logged or measured.
func reporting(end func()) map[string]framework.Option {
	return map[string]framework.Option{
		"log":     framework.WithLogger(lossLogger(end)),
		"metrics": framework.WithMetrics(testzk.NewCalling(metrics.LockLosses, 1, once(end))),
	}
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
				c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client("c").DialContext))
				var late atomic.Bool
				lost, given := make(chan struct{}), make(chan struct{}, 2)
				begun := time.Now()
				hold := acquire(t, combined(t, foreign(func() recipes.ForeignHold {
					return recipes.ForeignHold{
						Lost: lost, Logger: lossLogger(runtime.Goexit),
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

// valid is a hold of a service that is valid for a minute. change changes it.
func valid(change func(h *recipes.ForeignHold)) recipes.Locker {
	return foreign(func() recipes.ForeignHold {
		until := time.Now().Add(time.Minute)
		h := recipes.ForeignHold{
			Until:   func() time.Time { return until },
			Release: func(context.Context) error { return nil },
		}
		change(&h)
		return h
	})
}

func TestServiceThatEndsItsReleaseIsNoSuccess(t *testing.T) {
	simulated(t, func(t *testing.T, _ *zktest.Server, connect connector) {
		service := valid(func(h *recipes.ForeignHold) {
			h.Release = func(context.Context) error { runtime.Goexit(); return nil }
		})
		hold := acquire(t, combined(t, newMutex(t, connect("c"), "/a"), service))
		err := hold.Release()
		require.ErrorIs(t, err, recipes.ErrReleasePending)
		require.ErrorContains(t, err, "ended the goroutine")
	})
}

// The code of a service panics, or ends the goroutine, when a release asks whether the lock is still held.
func TestServiceThatEndsAReleaseKeepsNoLock(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic("end") }, "goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			simulated(t, func(t *testing.T, srv *zktest.Server, connect connector) {
				var armed atomic.Bool
				service := valid(func(h *recipes.ForeignHold) {
					until := h.Until()
					h.Until = func() time.Time {
						if armed.CompareAndSwap(true, false) {
							end()
						}
						return until
					}
				})
				hold := acquire(t, combined(t, newMutex(t, connect("c"), "/a"), service))
				synctest.Wait() // what watches the hold has asked, too
				done := make(chan struct{})
				go func() {
					defer close(done)
					defer func() { _ = recover() }()
					armed.Store(true)
					_ = hold.Release()
				}()
				<-done
				time.Sleep(time.Second)
				require.NotContains(t, srv.Tree(), "ephemeral")
				require.Error(t, hold.Err())
			})
		})
	}
}

// A hold that was released does not ask the service any more: its lease may be gone.
func TestReleasedHoldDoesNotAskTheService(t *testing.T) {
	simulated(t, func(t *testing.T, _ *zktest.Server, connect connector) {
		var asked atomic.Int32
		service := valid(func(h *recipes.ForeignHold) {
			until := h.Until()
			h.Until = func() time.Time { asked.Add(1); return until }
		})
		hold := acquire(t, combined(t, newMutex(t, connect("c"), "/a"), service))
		require.NoError(t, hold.Release())
		time.Sleep(time.Second)
		before := asked.Load()
		require.ErrorIs(t, hold.Err(), recipes.ErrNotHeld)
		require.ErrorIs(t, hold.Release(), recipes.ErrNotHeld)
		require.Equal(t, before, asked.Load())
	})
}
