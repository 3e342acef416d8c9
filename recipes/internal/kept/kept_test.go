package kept_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/internal/kept"
	"github.com/docent-zk/docent/recipes/persistent"
)

func TestErrorsAreThoseOfTheirPackage(t *testing.T) {
	ours := kept.Errors{
		Closed: errors.New("group: closed"), Occupied: errors.New("group: in use"),
		Pending: errors.New("group: pending"),
	}
	require.NoError(t, ours.Of(nil))
	require.Equal(t, framework.ErrClosed, ours.Of(framework.ErrClosed))
	for theirs, want := range map[error]error{
		persistent.ErrClosed: ours.Closed, persistent.ErrOccupied: ours.Occupied, persistent.ErrPending: ours.Pending,
	} {
		require.Equal(t, want, ours.Of(theirs))
		wrapped := ours.Of(fmt.Errorf("set /a: %w", theirs))
		require.ErrorIs(t, wrapped, want)
		require.ErrorIs(t, wrapped, theirs)
		require.NotContains(t, wrapped.Error(), "persistent")
	}
}
