package sqllock

import (
	"context"

	"github.com/docent-zk/docent/recipes"
)

// Lock is a lock with a lease, a recipes.Locker: see the package. It is safe for concurrent use, and
// does not re-enter. The zero value fails to acquire.
type Lock struct{ e engine }

// Name returns the name of the lock.
func (l *Lock) Name() string { return l.e.name }

// Acquire waits until the lock is acquired. Goroutines of one client acquire it in the order in which
// they came. Among clients there is no order.
//
// It fails when ctx ends; then the error matches that of ctx, and recipes.ErrNotAcquired if the wait
// was for other holders. It fails with ErrClosed when the client is closed. An error of the first
// statement ends it at once. Later it goes on after errors, until all statements have failed for a
// lease. Whenever it fails it does not hold the lock: a request that may still be applied is
// undone in the background, and if that fails, ends with its lease.
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
