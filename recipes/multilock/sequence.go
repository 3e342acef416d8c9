package multilock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/internal/ownership"
)

// sequence is a list of locks that are acquired one after another.
type sequence struct {
	locks []recipes.Locker // in the order in which they are acquired
	given []int            // the index at which each lock was given; nil: the same
	key   any              // for re-entry; nil: each lock re-enters by itself
}

type acquisition func(recipes.Locker, context.Context) (*recipes.Hold, error)

// Acquire waits for each lock, one after another.
func (s *sequence) Acquire(ctx context.Context) (*recipes.Hold, error) {
	return s.acquire(ctx, recipes.Locker.Acquire)
}

// TryAcquire waits for no lock.
func (s *sequence) TryAcquire(ctx context.Context) (*recipes.Hold, error) {
	return s.acquire(ctx, recipes.Locker.TryAcquire)
}

// acquire acquires each lock with how. If code of the program panics or ends the goroutine, acquire
// releases the locks acquired so far, because nothing else does.
func (s *sequence) acquire(ctx context.Context, how acquisition) (*recipes.Hold, error) {
	var holds []*ownership.Hold
	returned := false
	defer func() {
		if !returned {
			_ = undo(context.Background(), holds)
		}
	}()
	hold, err := s.join(ctx, how, &holds)
	returned = true
	return hold, err
}

// join acquires all locks and returns one hold of them. It begins again if an acquired lock is lost
// before all are acquired.
func (s *sequence) join(ctx context.Context, how acquisition, holds *[]*ownership.Hold) (*recipes.Hold, error) {
	for {
		err := s.all(ctx, how, holds)
		lost := slices.ContainsFunc(*holds, func(h *ownership.Hold) bool { return h.Err() != nil })
		if err == nil && !lost {
			return recipes.NewHold(ownership.Combine(s.key, s.asGiven(*holds)...), nil)
		}
		undone := undo(ctx, *holds)
		if !lost || ctx.Err() != nil {
			return nil, errors.Join(cmp.Or(err, ctxerr.Of(ctx)), undone)
		}
	}
}

// all acquires the locks, until one fails. Waiting for a lock ends when an acquired one is lost.
func (s *sequence) all(ctx context.Context, how acquisition, holds *[]*ownership.Hold) error {
	former := *holds // of the last time
	*holds = nil
	for i, l := range s.locks {
		hold, err := how(l, ctx)
		if err != nil {
			return err
		}
		if hold == nil {
			return fmt.Errorf("multilock: lock %d (%T) returned neither a hold nor an error", i, l)
		}
		own := ownership.Of(hold)
		*holds = append(*holds, own) // before Err is called: the code of a service may end the goroutine
		if err := hold.Err(); errors.Is(err, recipes.ErrNotHeld) || err != nil && slices.Contains(former, own) {
			*holds = (*holds)[:i]
			return fmt.Errorf("lock %d (%T) returned a hold that has ended: %w", i, l, err)
		}
		ctx = hold.Context(ctx)
	}
	return nil
}

// asGiven returns the holds in the order in which their locks were given.
func (s *sequence) asGiven(holds []*ownership.Hold) []*ownership.Hold {
	if s.given == nil {
		return holds
	}
	all := make([]*ownership.Hold, len(holds))
	for n, i := range s.given {
		all[i] = holds[n]
	}
	return all
}

// undoTimeout bounds how long a failed acquire waits for the release of the other locks.
const undoTimeout = time.Second

// undo releases acquired holds. ctx limits only the wait for the release, not the release.
func undo(ctx context.Context, acquired []*ownership.Hold) error {
	ctx, cancel := context.WithTimeout(ctx, undoTimeout)
	defer cancel()
	return ownership.ReleaseAll(ctx, acquired)
}

// same reports whether a and b are equal. Values that cannot be compared are never equal.
func same(a, b recipes.Locker) bool {
	return reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.ValueOf(a).Comparable() && a == b
}
