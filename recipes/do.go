package recipes

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Locker is a lock: of ZooKeeper, or of another service.
type Locker interface {
	// Acquire waits until the lock is acquired or ctx ends. ctx limits only the wait, not the hold.
	Acquire(ctx context.Context) (*Hold, error)
	// TryAcquire does not wait for other holders: ErrNotAcquired.
	TryAcquire(ctx context.Context) (*Hold, error)
}

// Do acquires l, calls fn with a context that ends with the hold, releases the hold, and returns fn's error joined with that of the release:
// an error of the release says that the lock was lost before fn returned, or that its node is not confirmed to be deleted. If the
// lock cannot be acquired fn is not called. If fn panics or calls runtime.Goexit the hold is released, too.
//
//	err := recipes.Do(ctx, mu, func(ctx context.Context, hold *recipes.Hold) error {
//		return store.Write(ctx, hold.Token(), value)
//	})
func Do(ctx context.Context, l Locker, fn func(ctx context.Context, hold *Hold) error) (err error) {
	hold, err := l.Acquire(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hold.Release()) }()
	return fn(hold.Context(ctx), hold)
}

// AcquireWithin is l.Acquire that waits at most d: then it fails with ErrNotAcquired, which matches context.DeadlineExceeded, too. ctx
// and d limit only the wait, not the hold. A d of 0 or less fails without a request. Curator: acquire(time, unit).
func AcquireWithin(ctx context.Context, l Locker, d time.Duration) (*Hold, error) {
	if ctx == nil {
		return l.Acquire(ctx)
	}
	within, cancel := context.WithTimeoutCause(ctx, d, errWithin(d))
	defer cancel()
	hold, err := l.Acquire(within)
	if err != nil && within.Err() != nil && ctx.Err() == nil && !errors.Is(err, ErrNotAcquired) {
		err = fmt.Errorf("%w: %w", ErrNotAcquired, err)
	}
	return hold, err
}

// errWithin is the cause of the end of a context of AcquireWithin.
type errWithin time.Duration

func (d errWithin) Error() string { return fmt.Sprintf("not within %v", time.Duration(d)) }

func (errWithin) Unwrap() error { return context.DeadlineExceeded }
