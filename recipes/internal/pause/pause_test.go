package pause_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/recipes/internal/pause"
)

func TestPausesGrowUpToASecond(t *testing.T) {
	for before, want := range []time.Duration{
		50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond,
		800 * time.Millisecond, time.Second, time.Second,
	} {
		require.Equal(t, want, pause.After(before))
	}
	require.Equal(t, time.Second, pause.After(1<<40))
}

func TestPauseEndsEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		require.NoError(t, pause.For(t.Context(), nil, time.Second))
		require.Equal(t, time.Second, time.Since(begun))
		stop := make(chan struct{})
		close(stop)
		require.NoError(t, pause.For(t.Context(), stop, time.Hour))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, pause.For(ctx, nil, time.Hour), context.DeadlineExceeded)
		require.Equal(t, 2*time.Second, time.Since(begun))
	})
}
