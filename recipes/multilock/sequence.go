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

// sequence is locks that are acquired one after another.
type sequence struct {
	locks []Lock // in the order in which they are acquired
	given []int  // at which place each of them was given; nil: as they are
	key   any    // for re-entry; nil: they see to that themselves
}

type acquisition func(Lock, context.Context) (*recipes.Hold, error)

// Acquire waits for each lock in its turn.
func (s *sequence) Acquire(ctx context.Context) (*recipes.Hold, error) {
	return s.acquire(ctx, Lock.Acquire)
}

// TryAcquire waits for none.
func (s *sequence) TryAcquire(ctx context.Context) (*recipes.Hold, error) {
	return s.acquire(ctx, Lock.TryAcquire)
}

// acquire waits for each lock, or for none. If code of the program's panics, or ends the goroutine,
// what has been acquired is released, because nothing else will.
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

// join makes one hold of all locks. It begins again when a lock that it has is lost before it has all of them.
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

// all acquires as many locks as it can. It stops waiting for one when another, that it has, is lost.
func (s *sequence) all(ctx context.Context, how acquisition, holds *[]*ownership.Hold) error {
	*holds = nil
	for i, l := range s.locks {
		hold, err := how(l, ctx)
		if err != nil {
			return err
		}
		*holds = append(*holds, ownership.Of(hold)) // before it is asked, which may log its end
		if err := hold.Err(); errors.Is(err, recipes.ErrNotHeld) {
			*holds = (*holds)[:i]
			return fmt.Errorf("multilock: lock %d (%T) gave a hold that is none: %w", i, l, err)
		}
		ctx = hold.Context(ctx)
	}
	return nil
}

// asGiven is what belongs to each of the locks, in the order in which they were given.
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

// undoPatience bounds how long a caller whose attempt has failed waits to see the other locks free again.
const undoPatience = time.Second

// undo releases what was acquired. That does not depend on ctx: only how long we wait for it does.
func undo(ctx context.Context, acquired []*ownership.Hold) error {
	ctx, cancel := context.WithTimeout(ctx, undoPatience)
	defer cancel()
	return ownership.ReleaseAll(ctx, acquired)
}

// same reports whether two locks are one, as far as can be told.
func same(a, b Lock) bool {
	return reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.ValueOf(a).Comparable() && a == b
}
