package recipes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/docent-zk/docent/framework"
)

// Locker is a lock of ZooKeeper or of another service.
type Locker interface {
	// Acquire waits until the lock is acquired or ctx ends. ctx limits only the wait, not the hold.
	Acquire(ctx context.Context) (*Hold, error)
	// TryAcquire does not wait for other holders: it fails with ErrNotAcquired.
	TryAcquire(ctx context.Context) (*Hold, error)
}

// Do acquires l, calls fn with a context that ends with the hold, and releases the hold. It returns
// fn's error joined with that of the release. If both are the same loss of the lock, the text has it
// once. An error of the release means that the lock was lost before fn returned, or that the deletion
// of its node is not confirmed: see Hold.Release. If the lock cannot be acquired, Do returns the error
// of l.Acquire and does not call fn. If fn panics or calls runtime.Goexit, Do releases the hold, too.
// If fn releases the hold itself, the error matches ErrNotHeld. fn must not return before all work
// under the lock has ended. Do returns an error if l or fn is nil. The locks have a method Do, too.
//
//	err := recipes.Do(ctx, lock, func(ctx context.Context, hold *recipes.Hold) error {
//		return store.Write(ctx, hold.Token(), value)
//	})
func Do(ctx context.Context, l Locker, fn func(ctx context.Context, hold *Hold) error) error {
	if err := checkDo(l, fn); err != nil {
		return err
	}
	hold, err := l.Acquire(ctx)
	if err != nil {
		return err
	}
	return use(ctx, hold, fn)
}

// DoWithin is Do that waits at most d for the lock, and then fails like AcquireWithin. d does not limit
// fn. An ErrNotAcquired can also be that of fn.
func DoWithin(
	ctx context.Context, l Locker, d time.Duration, fn func(ctx context.Context, hold *Hold) error,
) error {
	if err := checkDo(l, fn); err != nil {
		return err
	}
	hold, err := AcquireWithin(ctx, l, d)
	if err != nil {
		return err
	}
	return use(ctx, hold, fn)
}

func use(ctx context.Context, hold *Hold, fn func(ctx context.Context, hold *Hold) error) (err error) {
	defer func() { err = joined(err, hold.Release()) }()
	return fn(hold.Context(ctx), hold)
}

// joined joins the error of a function and that of the release of its hold. If the function returned
// the loss that the release reports, usually as context.Cause of its context, one error says both.
func joined(failed, released error) error {
	if failed == nil || released == nil {
		return errors.Join(failed, released)
	}
	lost := errors.Unwrap(released) // without the operation and the node, which the release adds
	switch {
	case errors.Is(released, failed):
		return released
	case lost == nil || errors.Unwrap(lost) == nil: // it may be the loss of another lock
	case errors.Is(failed, lost):
		return failed
	}
	return errors.Join(failed, released)
}

var (
	errNilLocker = errors.New("recipes: the lock is nil")
	errNilFunc   = errors.New("recipes: nil function")
)

// checkDo returns an error if an argument of Do is nil.
func checkDo(l Locker, fn func(context.Context, *Hold) error) error {
	switch {
	case l == nil:
		return errNilLocker
	case fn == nil:
		return errNilFunc
	}
	return nil
}

// AcquireWithin is l.Acquire that waits at most d. The error after d matches
// context.DeadlineExceeded. It also matches ErrNotAcquired if other holders or waiters were ahead, and
// framework.ErrNotConnected if there was no connection then. If it matches neither, the servers have
// not answered in time, and the lock may be free. Otherwise AcquireWithin fails like l.Acquire. ctx and
// d limit only the wait, not the hold.
//
// With a d of 0 or less it is l.TryAcquire, which waits for no other client, but may wait for a
// connection. It fails at once if l is nil, and with framework.ErrNilContext if ctx is nil. Curator:
// acquire(time, unit), which returns false where the error matches ErrNotAcquired.
func AcquireWithin(ctx context.Context, l Locker, d time.Duration) (*Hold, error) {
	switch {
	case l == nil:
		return nil, errNilLocker
	case ctx == nil:
		return nil, framework.ErrNilContext
	case d <= 0:
		return l.TryAcquire(ctx)
	}
	within, cancel := context.WithTimeoutCause(ctx, d, errWithin(d))
	defer cancel()
	return l.Acquire(within)
}

// errWithin is the cause of the end of a context of AcquireWithin.
type errWithin time.Duration

func (d errWithin) Error() string { return fmt.Sprintf("not within %v", time.Duration(d)) }

func (errWithin) Unwrap() error { return context.DeadlineExceeded }
