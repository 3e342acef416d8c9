package conn

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// In virtual time neither clock is ahead of the other by more than it was, whatever delays the test.
func TestSuspensionsAreReadWhenTheWallClockShowsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		readings, suspended := 0, time.Duration(0)
		c := suspensionClock{total: func() time.Duration { readings++; return suspended }}
		use := func() time.Duration { return c.now().suspended }
		require.Zero(t, use())
		require.Zero(t, use())
		require.Equal(t, 1, readings, "nothing has changed")

		// As if the wall clock had advanced, and the monotonic clock had not.
		suspended = time.Minute
		c.last.Load().ahead -= suspended
		require.Equal(t, time.Minute, use())
		require.Equal(t, time.Minute, use())
		require.Equal(t, 2, readings)

		c.last.Load().ahead += time.Hour // the wall clock is set back
		require.Equal(t, time.Minute, use())
		require.Equal(t, time.Minute, use())
		require.Equal(t, 3, readings)

		c.last.Load().ahead -= suspensionNoise / 2
		require.Equal(t, time.Minute, use())
		require.Equal(t, 3, readings)
	})
}

func BenchmarkNow(b *testing.B) {
	for b.Loop() {
		_ = Now()
	}
}
