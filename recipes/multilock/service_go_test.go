package multilock_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/framework/metrics"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/zktest"
)

// endingGo is a service whose Go ends the goroutine once it is armed, and then no more.
type endingGo struct {
	recipes.Locker
	armed    atomic.Bool
	released atomic.Int32
}

func newEndingGo() *endingGo {
	s := &endingGo{}
	s.Locker = valid(func(h *recipes.ForeignHold) {
		h.Release = func(context.Context) error { s.released.Add(1); return nil }
		h.Go = func(fn func()) bool {
			if s.armed.CompareAndSwap(true, false) {
				runtime.Goexit()
			}
			go fn()
			return true
		}
	})
	return s
}

// requireReleased requires that Go has ended a goroutine, and that the lock of the service and all others are
// released soon.
func (s *endingGo) requireReleased(t *testing.T, srv *zktest.Server) {
	t.Helper()
	time.Sleep(time.Second)
	require.False(t, s.armed.Load(), "Go was not called")
	require.NotContains(t, srv.Tree(), "ephemeral")
	require.EqualValues(t, 1, s.released.Load(), "releases of the service")
}

func TestServiceThatEndsAGoroutineIsWatched(t *testing.T) {
	simulated(t, func(t *testing.T, srv *zktest.Server, connect connector) {
		service := newEndingGo()
		service.armed.Store(true)
		hold := acquire(t, combined(t, newMutex(t, connect("c"), "/a"), service))
		require.False(t, service.armed.Load())
		time.Sleep(time.Minute) // as long as the lock of the service lasts
		service.requireReleased(t, srv)
		require.ErrorIs(t, hold.Err(), recipes.ErrForeignLost)
	})
}

// The program releases a part, which ends the whole.
func TestServiceThatEndsAGoroutineKeepsNoReleasedPart(t *testing.T) {
	simulated(t, func(t *testing.T, srv *zktest.Server, connect connector) {
		service := newEndingGo()
		part := acquire(t, newMutex(t, connect("c"), "/a"))
		acquire(t, combined(t, lent(part), service))
		service.armed.Store(true)
		require.NoError(t, part.Release())
		service.requireReleased(t, srv)
	})
}

// Two holds share a part. The release of one ends the other.
func TestServiceThatEndsAGoroutineKeepsNoSharedPart(t *testing.T) {
	simulated(t, func(t *testing.T, srv *zktest.Server, connect connector) {
		service, c := newEndingGo(), connect("c")
		shared := acquire(t, newMutex(t, c, "/a"))
		first := acquire(t, combined(t, lent(shared), newMutex(t, c, "/b")))
		acquire(t, combined(t, lent(shared), service))
		service.armed.Store(true)
		require.NoError(t, first.Release())
		service.requireReleased(t, srv)
	})
}

// A part of the lost hold has the service as its first part.
func TestServiceThatEndsAGoroutineKeepsNoNestedPart(t *testing.T) {
	simulated(t, func(t *testing.T, srv *zktest.Server, connect connector) {
		service, c := newEndingGo(), connect("c")
		hold := acquire(t, combined(t, combined(t, service, newMutex(t, c, "/a")), newMutex(t, c, "/b")))
		service.armed.Store(true)
		require.NoError(t, srv.Delete(hold.Paths()[1]))
		service.requireReleased(t, srv)
		require.ErrorIs(t, hold.Err(), recipes.ErrNodeDeleted)
	})
}

func TestServiceThatEndsAGoroutineHidesNoLoss(t *testing.T) {
	simulated(t, func(t *testing.T, srv *zktest.Server, connect connector) {
		var losses atomic.Int32
		m := testzk.NewCalling(metrics.LockLosses, 1, func() { losses.Add(1) })
		service := newEndingGo()
		hold := acquire(t, combined(t, newMutex(t, connect("c", framework.WithMetrics(m)), "/a"), service))
		time.Sleep(time.Second) // the node is watched
		service.armed.Store(true)
		require.NoError(t, srv.Delete(hold.Paths()[0]))
		service.requireReleased(t, srv)
		require.ErrorIs(t, hold.Err(), recipes.ErrNodeDeleted)
		require.EqualValues(t, 1, losses.Load())
	})
}

func TestServiceThatEndsAGoroutineIsReleasedAfterAFailedAcquire(t *testing.T) {
	simulated(t, func(t *testing.T, srv *zktest.Server, connect connector) {
		service := newEndingGo()
		last := &recordedLock{acquire: func(context.Context) (*recipes.Hold, error) {
			service.armed.Store(true)
			return nil, recipes.ErrNotAcquired
		}}
		_, err := combined(t, newMutex(t, connect("c"), "/a"), service, last).Acquire(t.Context())
		require.ErrorIs(t, err, recipes.ErrNotAcquired)
		service.requireReleased(t, srv)
	})
}

func TestReleaseThatEndsItsGoroutineIsMeasured(t *testing.T) {
	simulated(t, func(t *testing.T, _ *zktest.Server, _ connector) {
		var measured atomic.Int32
		service := valid(func(h *recipes.ForeignHold) {
			h.Release = func(context.Context) error { runtime.Goexit(); return nil }
			h.Metrics = testzk.NewCalling(metrics.LockHold, 0, func() { measured.Add(1) })
		})
		hold := acquire(t, service)
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = hold.Release()
		}()
		<-done
		require.EqualValues(t, 1, measured.Load())
	})
}
