package sqllock

import (
	"context"
	"fmt"
	"time"

	"github.com/docent-zk/docent/recipes"
)

// Lock is a lock with a lease, a recipes.Locker: see the package. It is safe for concurrent use, and
// does not re-enter. The zero value fails to acquire.
type Lock struct{ e engine }

// New returns the lock with a name, which has 1 to 255 bytes of UTF-8. It makes no request. All locks
// with that name in that table exclude each other, whatever client they are of. New returns an error if
// c is nil or a zero value, or if the name is not valid.
func New(c *Client, name string) (*Lock, error) {
	if err := c.check(name); err != nil {
		return nil, fmt.Errorf("sqllock: lock: %w", err)
	}
	return &Lock{engine{c, c.leases, name}}, nil
}

// Name returns the name of the lock.
func (l *Lock) Name() string { return l.e.name }

// Acquire waits until the lock is acquired. Goroutines of one client acquire it in the order in which
// they came. Among clients there is no order.
//
// It fails when ctx ends; then the error matches that of ctx, and recipes.ErrNotAcquired if the wait
// was for other holders. It fails with ErrClosed when the client is closed. An error of the first
// statement ends it at once, and so does no answer to it for half a lease, at most 5 s. Later it goes on
// after errors, until all looks have failed for a lease, three or more. The error of a statement matches
// neither context.DeadlineExceeded nor context.Canceled. Whenever it fails it does not hold the lock: a
// request that may still be applied is undone in the background, and if that fails, ends with its lease.
//
// ctx limits only the wait, not the hold.
func (l *Lock) Acquire(ctx context.Context) (*recipes.Hold, error) {
	return l.e.acquire(ctx, (*attempt).wait)
}

// TryAcquire fails with recipes.ErrNotAcquired if the lock is held, or if a transaction has it by
// InTx. Otherwise it fails like Acquire, at the first error. Only an acquire whose reply was lost is
// looked for and sent again. If that does not tell whether it was applied, TryAcquire returns the error
// of the reply.
func (l *Lock) TryAcquire(ctx context.Context) (*recipes.Hold, error) {
	return l.e.acquire(ctx, (*attempt).try)
}

// AcquireWithin is Acquire that waits at most d, or TryAcquire if d is 0 or less: see
// recipes.AcquireWithin.
func (l *Lock) AcquireWithin(ctx context.Context, d time.Duration) (*recipes.Hold, error) {
	return recipes.AcquireWithin(ctx, l, d)
}

// Do acquires the lock, calls fn with a context that ends with the hold, and releases the hold: see
// recipes.Do.
func (l *Lock) Do(ctx context.Context, fn func(ctx context.Context, hold *recipes.Hold) error) error {
	return recipes.Do(ctx, l, fn)
}
