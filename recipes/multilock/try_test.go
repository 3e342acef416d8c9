package multilock_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

type recordedLock struct {
	acquire, try func(context.Context) (*recipes.Hold, error)
}

func (l *recordedLock) Acquire(ctx context.Context) (*recipes.Hold, error)    { return l.acquire(ctx) }
func (l *recordedLock) TryAcquire(ctx context.Context) (*recipes.Hold, error) { return l.try(ctx) }

// One of the locks is lost while the others are tried. No other client wants any of them.
func TestRepeatedTryDoesNotExcludeItself(t *testing.T) {
	sim.Run(t, 30, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		c := simClient(t, srv, "c", 4*time.Second)
		a, b, d := newMutex(t, c, "/a"), newMutex(t, c, "/b"), newMutex(t, c, "/d")
		lost := false
		last := &recordedLock{d.Acquire, func(ctx context.Context) (*recipes.Hold, error) {
			if !lost {
				lost = true
				nodes, err := srv.Children("/a")
				require.NoError(t, err)
				require.NoError(t, srv.Delete("/a/"+nodes[0]))
				time.Sleep(500 * time.Millisecond) // the duration of the try
			}
			return d.TryAcquire(ctx)
		}}
		m := combined(t, b, a, last)
		hold, err := m.TryAcquire(t.Context())
		require.True(t, lost)
		require.NoError(t, err)
		require.NoError(t, hold.Release())
	})
}
