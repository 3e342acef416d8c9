package multilock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/recipes"
)

// A lock of another implementation returns a hold that has ended, or an empty one.
func TestEndedHoldOfAForeignLockIsAnError(t *testing.T) {
	mu := newMutex(t, own(t), named(t, 1)[0])
	over := acquire(t, mu)
	require.NoError(t, over.Release())
	for name, h := range map[string]*recipes.Hold{"zero": {}, "nil": nil, "released": over} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			l := &recordedLock{acquire: func(context.Context) (*recipes.Hold, error) { calls++; return h, nil }}
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			require.NotPanics(t, func() {
				_, err := combined(t, l).Acquire(ctx)
				t.Log(err)
			})
			require.Less(t, calls, 100)
		})
	}
}
