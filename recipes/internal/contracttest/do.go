package contracttest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
)

// Bounded is a lock with the methods that call recipes.Do and recipes.AcquireWithin.
type Bounded interface {
	Lock
	Do(ctx context.Context, fn func(ctx context.Context, hold *recipes.Hold) error) error
	AcquireWithin(ctx context.Context, d time.Duration) (*recipes.Hold, error)
}

// Do tests that lock is held while the function of its Do runs, and released afterwards. rival
// excludes lock, and may be the same.
func Do(t *testing.T, lock, rival Bounded) {
	t.Helper()
	failure := errors.New("of the function")
	var within context.Context
	var held *recipes.Hold
	err := lock.Do(testzk.Context(t), func(ctx context.Context, hold *recipes.Hold) error {
		within, held = ctx, hold
		require.NoError(t, hold.Err())
		_, err := rival.AcquireWithin(testzk.Context(t), 0)
		require.ErrorIs(t, err, recipes.ErrNotAcquired, "the lock is held")
		require.NoError(t, ctx.Err())
		return failure
	})
	require.ErrorIs(t, err, failure)
	require.ErrorIs(t, context.Cause(within), recipes.ErrNotHeld)
	require.ErrorIs(t, held.Err(), recipes.ErrNotHeld)
	hold, err := rival.AcquireWithin(testzk.Context(t), time.Hour)
	require.NoError(t, err, "the lock is released")
	require.NoError(t, hold.Err())
	require.NoError(t, hold.Release())
}
