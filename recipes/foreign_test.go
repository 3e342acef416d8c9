package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/multilock"
	"github.com/docent-zk/docent/recipes/mutex"
)

const leaseTime = 10 * time.Second

// lease is what a service has granted to a client.
type lease struct {
	until    atomic.Int64 // in nanoseconds
	lost     chan struct{}
	reason   error
	released atomic.Int64
	refuses  error // what Release returns
	metrics  testzk.Metrics
}

func newLease() *lease {
	l := &lease{lost: make(chan struct{})}
	l.renew()
	return l
}

func (l *lease) renew() { l.until.Store(time.Now().Add(leaseTime).UnixNano()) }

func (l *lease) end() time.Time { return time.Unix(0, l.until.Load()) }

func (l *lease) hold() recipes.ForeignHold {
	return recipes.ForeignHold{
		Name: "there", Token: 7, Until: l.end, Lost: l.lost, Reason: func() error { return l.reason },
		Release: func(context.Context) error { l.released.Add(1); return l.refuses }, Metrics: &l.metrics,
	}
}

func held(t testing.TB, f recipes.ForeignHold) *recipes.Hold {
	t.Helper()
	h, err := recipes.HoldForeign(f)
	require.NoError(t, err)
	return h
}

func TestForeignHoldIsAHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLease()
		h := held(t, l.hold())
		require.NoError(t, h.Err())
		require.Equal(t, int64(7), h.Token())
		require.Equal(t, []int64{7}, h.Tokens())
		require.Empty(t, h.Paths())
		require.Equal(t, l.end(), h.ValidUntil())
		ctx := h.Context(t.Context())
		require.NoError(t, ctx.Err())
		_, err := h.Guard(t.Context())
		require.ErrorIs(t, err, recipes.ErrUnsupported)
		require.Equal(t, framework.NotApplied, framework.OutcomeOf(err))
		require.ErrorContains(t, err, "there")

		require.NoError(t, h.Release())
		require.Equal(t, int64(1), l.released.Load())
		require.ErrorIs(t, context.Cause(ctx), recipes.ErrNotHeld)
		require.ErrorIs(t, h.Release(), recipes.ErrNotHeld)
		require.ErrorContains(t, h.Release(), "release there")
		require.Equal(t, int64(1), l.released.Load())
		require.Zero(t, h.ValidUntil())
		require.Equal(t, int64(7), h.Token(), "readable after the end")
	})
}

func TestForeignHoldEndsWithItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLease()
		h := held(t, l.hold())
		for range 5 {
			time.Sleep(leaseTime / 2)
			l.renew()
		}
		require.NoError(t, h.Err())
		ended := l.end()
		<-h.Done()
		require.Equal(t, ended, time.Now())
		require.ErrorIs(t, h.Err(), recipes.ErrForeignLost)
		synctest.Wait()
		require.Equal(t, int64(1), l.released.Load(), "the service may still leave it to the holder")
		require.ErrorIs(t, h.Release(), recipes.ErrForeignLost)
		require.Equal(t, int64(1), l.released.Load())
		require.Equal(t, []string{
			"docent.lock.hold{foreign there foreign_lost} 35s", "docent.lock.losses{foreign there foreign_lost} 1",
		}, l.metrics.Lines(time.Second))
	})
}

// While a machine is suspended the monotonic clock stops. The time of the service continues.
func TestForeignHoldEndsWhileTheMachineIsSuspended(t *testing.T) {
	var until atomic.Pointer[time.Time]
	set := func(at time.Time) { until.Store(&at) }
	set(time.Now().Add(time.Minute))
	f := newLease().hold()
	f.Until = func() time.Time { return *until.Load() }
	h := held(t, f)
	require.NoError(t, h.Err())
	set(suspendedFor(2*time.Minute, time.Now().Add(time.Minute)))
	require.ErrorIs(t, h.Err(), recipes.ErrForeignLost)
}

// suspendedFor returns at as it looks after a suspension of d: the wall clock has advanced, the
// monotonic clock has not.
func suspendedFor(d time.Duration, at time.Time) time.Time {
	at = at.Add(-d)
	// Package time has no way to set the monotonic reading.
	monotonic := (*int64)(unsafe.Add(unsafe.Pointer(&at), unsafe.Sizeof(uint64(0))))
	*monotonic += int64(d)
	return at
}

func TestForeignHoldReportsWhyItWasLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLease()
		h := held(t, l.hold())
		ctx := h.Context(t.Context())
		l.reason = errors.New("the key is another client's")
		close(l.lost)
		<-ctx.Done()
		require.ErrorIs(t, context.Cause(ctx), recipes.ErrForeignLost)
		require.ErrorIs(t, h.Err(), l.reason)
		synctest.Wait()
		require.Equal(t, int64(1), l.released.Load())
	})
}

func TestForeignHoldEndsWithItsClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, closed := newLease(), make(chan struct{})
		f := l.hold()
		f.Closed = closed
		h := held(t, f)
		close(closed)
		<-h.Done()
		require.ErrorIs(t, h.Err(), recipes.ErrForeignLost)

		f = newLease().hold()
		f.Go = func(func()) bool { return false }
		f.Closed = closed
		_, err := recipes.HoldForeign(f)
		require.ErrorIs(t, err, recipes.ErrForeignLost)
	})
}

// The program may recover from the panic, as it could if HoldForeign called Go itself.
func TestPanicOfTheGoOfAForeignHoldIsThatOfTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newLease().hold()
		f.Go = func(func()) bool { panic("nil map") }
		require.PanicsWithValue(t, "nil map", func() { _, _ = recipes.HoldForeign(f) })
	})
}

func TestForeignHoldThatHasEndedBeforeIsRefusedAndReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLease()
		time.Sleep(leaseTime)
		_, err := recipes.HoldForeign(l.hold())
		require.ErrorIs(t, err, recipes.ErrForeignLost)
		require.ErrorContains(t, err, "there")
		synctest.Wait()
		require.Equal(t, int64(1), l.released.Load())
	})
}

func TestFailedReleaseOfAForeignHoldIsPending(t *testing.T) {
	l := newLease()
	l.refuses = errors.New("connection reset")
	h := held(t, l.hold())
	err := h.Release()
	require.ErrorIs(t, err, recipes.ErrReleasePending)
	require.ErrorIs(t, err, l.refuses)
}

func TestReleaseOfAForeignHoldFindsItsLoss(t *testing.T) {
	l := newLease()
	l.refuses = fmt.Errorf("%w: the key is gone", recipes.ErrForeignLost)
	err := held(t, l.hold()).Release()
	require.ErrorIs(t, err, recipes.ErrForeignLost)
	require.NotErrorIs(t, err, recipes.ErrReleasePending)
	require.Contains(t, l.metrics.Lines(time.Hour), "docent.lock.losses{foreign there foreign_lost} 1")
}

func TestReleaseOfAForeignHoldIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for within, want := range map[time.Duration]time.Duration{0: 10 * time.Second, time.Second: time.Second} {
			f := newLease().hold()
			f.Within = within
			f.Release = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
			begun := time.Now()
			require.ErrorIs(t, held(t, f).Release(), recipes.ErrReleasePending)
			require.Equal(t, want, time.Since(begun))
		}
	})
}

func TestIncompleteForeignHoldIsRefused(t *testing.T) {
	for want, change := range map[string]func(f *recipes.ForeignHold){
		"no name":        func(f *recipes.ForeignHold) { f.Name = "" },
		"nil Until":      func(f *recipes.ForeignHold) { f.Until = nil },
		"nil Release":    func(f *recipes.ForeignHold) { f.Release = nil },
		"token -1":       func(f *recipes.ForeignHold) { f.Token = -1 },
		"not comparable": func(f *recipes.ForeignHold) { f.Key = []int{1} },
		"Within is -1s":  func(f *recipes.ForeignHold) { f.Within = -time.Second },
	} {
		l := newLease()
		f := l.hold()
		change(&f)
		_, err := recipes.HoldForeign(f)
		require.ErrorContains(t, err, want)
		require.Zero(t, l.released.Load())
	}
}

// locker makes a Locker of a function.
type locker func() (*recipes.Hold, error)

func (l locker) Acquire(context.Context) (*recipes.Hold, error)    { return l() }
func (l locker) TryAcquire(context.Context) (*recipes.Hold, error) { return l() }

// A foreign hold and that of a mutex are held as one, in any order.
func TestForeignHoldIsHeldTogetherWithAMutex(t *testing.T) {
	c := testzk.Connected(t, testzk.Connect())
	for _, first := range []bool{true, false} {
		mu, err := mutex.New(c, testzk.Path(t)+"/lock")
		require.NoError(t, err)
		l := newLease()
		l.until.Store(time.Now().Add(time.Hour).UnixNano()) // this test is in real time
		locks := []recipes.Locker{mu, locker(func() (*recipes.Hold, error) { return recipes.HoldForeign(l.hold()) })}
		if first {
			locks[0], locks[1] = locks[1], locks[0]
		}
		both, err := multilock.Combine(locks...)
		require.NoError(t, err)
		hold, err := both.Acquire(testzk.Context(t))
		require.NoError(t, err)
		require.Contains(t, hold.Tokens(), int64(7))
		_, err = hold.Guard(testzk.Context(t))
		require.NoError(t, err, "the nodes are checked")
		require.NoError(t, hold.Release())
		require.Equal(t, int64(1), l.released.Load())

		hold, err = both.Acquire(testzk.Context(t))
		require.NoError(t, err)
		l.until.Store(time.Now().UnixNano())
		require.ErrorIs(t, hold.Err(), recipes.ErrForeignLost)
		free, err := mu.Acquire(testzk.Context(t))
		require.NoError(t, err, "the mutex is released with the loss of the other part")
		require.NoError(t, free.Release())
	}
}

// serviceKey is the key of a lock for re-entry.
type serviceKey string

// A client refuses goroutines from the begin of its Close, perhaps before Closed is closed.
func TestForeignHoldOfAClientThatRefusesGoroutinesIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, closed := range []chan struct{}{nil, make(chan struct{})} {
			f := newLease().hold()
			f.Go, f.Closed = func(func()) bool { return false }, closed
			_, err := recipes.HoldForeign(f)
			require.ErrorIs(t, err, recipes.ErrForeignLost)
		}
	})
}

func TestForeignHoldReenters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLease()
		f := l.hold()
		f.Key = serviceKey("there")
		outer := held(t, f)
		ctx := outer.Context(t.Context())
		for _, other := range []any{serviceKey("elsewhere"), "there", nil, []int{1}} {
			_, ok := recipes.Reenter(ctx, other)
			require.False(t, ok, other)
		}
		_, ok := recipes.Reenter(t.Context(), f.Key)
		require.False(t, ok)
		inner, ok := recipes.Reenter(ctx, f.Key)
		require.True(t, ok)
		require.Equal(t, outer.Token(), inner.Token())

		require.NoError(t, outer.Release())
		require.Zero(t, l.released.Load(), "the inner hold goes on")
		_, ok = recipes.Reenter(ctx, f.Key)
		require.False(t, ok, "a released hold is not re-entered")
		again, ok := recipes.Reenter(inner.Context(t.Context()), f.Key)
		require.True(t, ok)
		require.NoError(t, inner.Release())
		require.Zero(t, l.released.Load())
		require.NoError(t, again.Release())
		require.Equal(t, int64(1), l.released.Load())
	})
}

// A loss ends all holds of the lock.
func TestForeignHoldsOfOneLockAreLostTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLease()
		f := l.hold()
		f.Key = serviceKey("there")
		outer := held(t, f)
		inner, ok := recipes.Reenter(outer.Context(t.Context()), f.Key)
		require.True(t, ok)
		close(l.lost)
		<-inner.Done()
		require.ErrorIs(t, outer.Err(), recipes.ErrForeignLost)
		require.ErrorIs(t, inner.Release(), recipes.ErrForeignLost)
		synctest.Wait()
		require.Equal(t, int64(1), l.released.Load())
	})
}

// A part of several locks is re-entered by itself.
func TestForeignPartReenters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, other := newLease(), newLease()
		locks := map[*lease]recipes.Locker{}
		for lease, key := range map[*lease]any{l: serviceKey("there"), other: nil} {
			f := lease.hold()
			f.Key = key
			locks[lease] = locker(func() (*recipes.Hold, error) { return recipes.HoldForeign(f) })
		}
		both, err := multilock.Combine(locks[l], locks[other])
		require.NoError(t, err)
		whole, err := both.Acquire(t.Context())
		require.NoError(t, err)
		inner, ok := recipes.Reenter(whole.Context(t.Context()), serviceKey("there"))
		require.True(t, ok)
		require.NoError(t, whole.Release())
		require.Equal(t, int64(1), other.released.Load())
		require.Zero(t, l.released.Load())
		require.NoError(t, inner.Release())
		require.Equal(t, int64(1), l.released.Load())
	})
}
