package rwlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/rwlock"
)

// bounded is a lock with the methods that call recipes.Do and recipes.AcquireWithin.
type bounded interface {
	recipes.Locker
	Do(ctx context.Context, fn func(ctx context.Context, hold *recipes.Hold) error) error
	AcquireWithin(ctx context.Context, d time.Duration) (*recipes.Hold, error)
}

func TestDoHoldsTheLockWhileTheFunctionRuns(t *testing.T) {
	rw := newLock(t, testzk.Connected(t, testzk.Connect()), testzk.Path(t))
	for name, test := range map[string]struct{ lock, rival bounded }{
		"read":  {rw.Read(), rw.Write()},
		"write": {rw.Write(), rw.Read()},
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

func TestPath(t *testing.T) {
	rw := newLock(t, testzk.Connected(t, testzk.Connect()), "/locks/a")
	require.Equal(t, "/locks/a", rw.Read().Path())
	require.Equal(t, "/locks/a", rw.Write().Path())
	require.Empty(t, new(rwlock.Side).Path())
	require.Empty(t, (*rwlock.Side)(nil).Path())
}
