package multilock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/multilock"
)

// bounded is a lock with the methods that call recipes.Do and recipes.AcquireWithin.
type bounded interface {
	recipes.Locker
	Do(ctx context.Context, fn func(ctx context.Context, hold *recipes.Hold) error) error
	AcquireWithin(ctx context.Context, d time.Duration) (*recipes.Hold, error)
}

func TestDoHoldsTheLockWhileTheFunctionRuns(t *testing.T) {
	client, path := own(t), testzk.Path(t)
	together := newMulti(t, client, []string{path + "/a", path + "/b"})
	inOrder := newMulti(t, client, []string{path + "/c", path + "/d"}, multilock.InOrder())
	listed := of(t, newMutex(t, client, path+"/e"), newMutex(t, client, path+"/f"))
	for name, test := range map[string]struct{ lock, rival bounded }{
		"New":     {together, together},
		"InOrder": {inOrder, inOrder},
		"Of":      {listed, listed},
	} {
		t.Run(name, func(t *testing.T) {
			failure := errors.New("of the function")
			var within context.Context
			var held *recipes.Hold
			err := test.lock.Do(testzk.Context(t), func(ctx context.Context, hold *recipes.Hold) error {
				within, held = ctx, hold
				require.NoError(t, hold.Err())
				_, err := test.rival.AcquireWithin(testzk.Context(t), time.Millisecond)
				require.ErrorIs(t, err, recipes.ErrNotAcquired, "the lock is held")
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.NoError(t, ctx.Err())
				return failure
			})
			require.ErrorIs(t, err, failure)
			require.ErrorIs(t, context.Cause(within), recipes.ErrNotHeld)
			require.ErrorIs(t, held.Err(), recipes.ErrNotHeld)
			hold, err := test.rival.AcquireWithin(testzk.Context(t), time.Hour)
			require.NoError(t, err, "the lock is released")
			require.NoError(t, hold.Err())
			require.NoError(t, hold.Release())
		})
	}
}
