package testlock

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
)

// Acquire is the Acquire or TryAcquire of a lock.
type Acquire = func(context.Context) (*recipes.Hold, error)

// Attempt is a running acquire.
type Attempt struct {
	cancel context.CancelCauseFunc
	hold   *recipes.Hold
	err    error
	done   chan struct{}
}

// Start acquires on another goroutine, which ends with the test.
func Start(t testing.TB, acquire Acquire) *Attempt {
	t.Helper()
	return StartUnder(t, testzk.Context(t), acquire)
}

// StartUnder does what Start does, with ctx instead of the context of the test.
func StartUnder(t testing.TB, ctx context.Context, acquire Acquire) *Attempt {
	t.Helper()
	ctx, cancel := context.WithCancelCause(ctx)
	a := &Attempt{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(a.done)
		a.hold, a.err = acquire(ctx)
	}()
	t.Cleanup(func() {
		cancel(nil)
		<-a.done
	})
	return a
}

// Cancel ends the context of the acquire.
func (a *Attempt) Cancel() { a.cancel(nil) }

// CancelWith is Cancel with a cause.
func (a *Attempt) CancelWith(cause error) { a.cancel(cause) }

// Done returns a channel that is closed when the acquire has ended.
func (a *Attempt) Done() <-chan struct{} { return a.done }

// Wait waits for the end of the acquire and returns its results.
func (a *Attempt) Wait() (*recipes.Hold, error) {
	<-a.done
	return a.hold, a.err
}

// Won waits for the hold and returns it. The hold may have been lost meanwhile.
func (a *Attempt) Won(t testing.TB) *recipes.Hold {
	t.Helper()
	hold, err := a.Wait()
	require.NoError(t, err)
	return hold
}

// GivesUp cancels the acquire and waits for its end.
func (a *Attempt) GivesUp(t testing.TB) {
	t.Helper()
	a.Cancel()
	_, err := a.Wait()
	require.ErrorIs(t, err, context.Canceled)
}

// Waiting reports whether the acquire has not ended.
func (a *Attempt) Waiting() bool {
	select {
	case <-a.done:
		return false
	default:
		return true
	}
}

// LostTo waits for the loss of a hold, and checks that all its methods report it. work is a context
// of the hold.
func LostTo(t testing.TB, hold *recipes.Hold, work context.Context, cause error) {
	t.Helper()
	testzk.Closes(t, hold.Done(), "the hold does not report its end")
	testzk.Closes(t, work.Done(), "the context does not end with the hold")
	require.ErrorIs(t, context.Cause(work), cause)
	require.ErrorIs(t, hold.Err(), cause)
	require.True(t, hold.ValidUntil().IsZero())
	_, err := hold.Guard(context.Background())
	require.ErrorIs(t, err, cause)
	require.ErrorIs(t, hold.Release(), cause)
	require.ErrorIs(t, hold.Release(), recipes.ErrNotHeld)
}

// Held acquires a lock, and releases it when the test ends.
func Held(t testing.TB, l recipes.Locker) *recipes.Hold {
	t.Helper()
	hold, err := l.Acquire(testzk.Context(t))
	require.NoError(t, err)
	t.Cleanup(func() { _ = hold.Release() })
	return hold
}

// Queue starts to acquire a lock, which it releases at once. It gives up when the test ends.
func Queue(t testing.TB, l recipes.Locker) {
	t.Helper()
	StartUnder(t, context.Background(), func(ctx context.Context) (*recipes.Hold, error) {
		hold, err := l.Acquire(ctx)
		if err == nil {
			_ = hold.Release()
		}
		return hold, err
	})
}
