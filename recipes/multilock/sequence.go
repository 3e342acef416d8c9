package multilock

import (
	"context"
	"errors"
	"reflect"
	"slices"

	"github.com/docent-zk/docent/recipes"
)

// sequence is locks that are acquired one after another.
type sequence struct {
	locks []Lock
	order []int // in which they are acquired; nil: as they are
	key   any   // for re-entry; nil: they see to that themselves
}

// Acquire waits for each lock in its turn.
func (s *sequence) Acquire(ctx context.Context) (*recipes.Hold, error) {
	return s.acquire(ctx, Lock.Acquire)
}

// TryAcquire waits for none.
func (s *sequence) TryAcquire(ctx context.Context) (*recipes.Hold, error) {
	return s.acquire(ctx, Lock.TryAcquire)
}

// acquire stops waiting for a lock when one that it has is lost.
func (s *sequence) acquire(ctx context.Context, how func(Lock, context.Context) (*recipes.Hold, error)) (*recipes.Hold, error) {
	holds := make([]*recipes.Hold, len(s.locks))
	var acquired []*recipes.Hold
	for n := range s.locks {
		i := n
		if s.order != nil {
			i = s.order[n]
		}
		hold, err := how(s.locks[i], ctx)
		if err != nil {
			return nil, errors.Join(err, undo(acquired))
		}
		holds[i], acquired = hold, append(acquired, hold)
		ctx = hold.Context(ctx)
	}
	return recipes.Join(s.key, holds...), nil
}

// undo releases what was acquired, the last first.
func undo(acquired []*recipes.Hold) error {
	var all []error
	for _, hold := range slices.Backward(acquired) {
		all = append(all, hold.Release())
	}
	return errors.Join(all...)
}

// same reports whether two locks are one, as far as can be told.
func same(a, b Lock) bool {
	return reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.ValueOf(a).Comparable() && a == b
}
