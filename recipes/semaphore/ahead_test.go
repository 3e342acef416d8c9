package semaphore_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// ends ends a wait, and checks the text of its error.
func ends(t *testing.T, a *testlock.Attempt, want string) {
	t.Helper()
	require.True(t, a.Waiting())
	a.Cancel()
	_, err := a.Wait()
	require.ErrorIs(t, err, recipes.ErrNotAcquired)
	require.EqualError(t, err, want)
}

// What is in the way is in the text of the error: the permits, or the waiter ahead.
func TestErrorsSayWhatIsInTheWay(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		s := newSemaphore(t, client(t, srv, "c"), "/sem", 3)
		other := newSemaphore(t, client(t, srv, "other"), "/sem", 3)
		held := acquire(t, s, 2)
		const want = "acquire /sem: recipes: not acquired: "
		_, err := other.TryAcquireN(t.Context(), 2)
		require.EqualError(t, err, want+"2 of 3 permits are taken")
		first := start(t, other, 2)
		node := crowd(t, s, 2, 1)[2].Node
		second := start(t, s, 1)
		crowd(t, s, 2, 2)
		time.Sleep(time.Second)
		_, err = s.TryAcquireN(t.Context(), 1)
		require.EqualError(t, err, want+"behind "+node)
		ends(t, second, want+"behind "+node+": context canceled")
		ends(t, first, want+"2 of 3 permits are taken: context canceled")
		release(t, held)
	})
}
