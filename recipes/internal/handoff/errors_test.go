package handoff_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/zktest"
)

// The lock may be free: nothing shows another holder or waiter.
func TestWaiterOfASilentServerIsBehindNoOther(t *testing.T) {
	withHandoff(t, generous, func(t *testing.T, h *handoffFixture) {
		require.NoError(t, acquire(t, h.lock).Release())
		h.Pause()
		defer h.Resume(zktest.ExpireFirst)
		_, err := h.lock.AcquireWithin(testzk.Context(t), time.Second)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, recipes.ErrNotAcquired)
	})
}
