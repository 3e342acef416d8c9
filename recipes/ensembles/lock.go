package ensembles

import (
	"context"
	"fmt"
	"time"

	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/internal/check"
)

// Lock is the lock of a name. It is safe for concurrent use if the locks of which it is made are.
type Lock struct {
	lock recipes.Locker // nil in the zero value
}

// Acquire acquires the lock as the lock on its ensemble does, and its hold is that lock's. Errors have
// the name of the ensemble. If the ensemble cannot be reached, Acquire fails with
// framework.ErrNotConnected when the client's retry policy or ctx ends. It never uses another ensemble.
//
// A name that moves while the set is changed has two locks, which Acquire acquires one after another
// as multilock.Combine does. The hold ends when one of the two ends. Hold.Tokens has the tokens in the
// order of Set.Of, and Hold.Token is 0. Hold.Guard fails with recipes.ErrManySessions. If one of the
// two ensembles cannot be reached, Acquire fails.
func (l *Lock) Acquire(ctx context.Context) (*recipes.Hold, error) {
	if err := l.check(ctx); err != nil {
		return nil, err
	}
	return l.lock.Acquire(ctx)
}

// TryAcquire is Acquire that does not wait for other clients, and fails with recipes.ErrNotAcquired.
func (l *Lock) TryAcquire(ctx context.Context) (*recipes.Hold, error) {
	if err := l.check(ctx); err != nil {
		return nil, err
	}
	return l.lock.TryAcquire(ctx)
}

// Do acquires the lock, calls fn with a context that ends with the hold, and releases the hold: see
// recipes.Do.
func (l *Lock) Do(ctx context.Context, fn func(ctx context.Context, hold *recipes.Hold) error) error {
	return recipes.Do(ctx, l, fn)
}

// AcquireWithin is Acquire that waits at most d, or TryAcquire if d is 0 or less: see
// recipes.AcquireWithin.
func (l *Lock) AcquireWithin(ctx context.Context, d time.Duration) (*recipes.Hold, error) {
	return recipes.AcquireWithin(ctx, l, d)
}

func (l *Lock) check(ctx context.Context) error {
	return check.Call(ctx, "ensembles", "Lock", l.lock != nil)
}

// part is the lock of a name on one ensemble, which its errors name.
type part struct {
	ensemble string
	recipes.Locker
}

func (p part) Acquire(ctx context.Context) (*recipes.Hold, error) {
	hold, err := p.Locker.Acquire(ctx)
	return hold, p.named(err)
}

func (p part) TryAcquire(ctx context.Context) (*recipes.Hold, error) {
	hold, err := p.Locker.TryAcquire(ctx)
	return hold, p.named(err)
}

func (p part) named(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("ensemble %q: %w", p.ensemble, err)
}

var _ recipes.Locker = (*Lock)(nil)
