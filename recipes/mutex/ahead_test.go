package mutex_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
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

// What is in the way is in the text of the error, so an operator can find the holder.
func TestErrorsNameTheNodeAhead(t *testing.T) {
	for name, opts := range map[string][]mutex.Option{
		"a node each": nil, "shared nodes": {mutex.WithLocalHandoff(generous)},
		"kept nodes": {keeping(generous, time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
				var all []*mutex.Mutex
				for _, name := range []string{"a", "b", "c"} {
					all = append(all, newMutex(t, dialled(t, srv, name), "/locks/a", opts...))
				}
				const refused = "acquire /locks/a: recipes: not acquired: "
				held := acquire(t, all[0])
				_, err := all[1].TryAcquire(testzk.Context(t))
				require.ErrorIs(t, err, recipes.ErrNotAcquired)
				require.EqualError(t, err, refused+"behind "+held.Path())
				_, err = all[0].TryAcquire(testzk.Context(t))
				require.EqualError(t, err, refused+"behind "+held.Path())

				second := testlock.Start(t, all[1].Acquire)
				node := queued(t, all[0], 2)[1].Node
				third := testlock.Start(t, all[2].Acquire)
				queued(t, all[0], 3)
				time.Sleep(time.Second)
				ends(t, third, refused+"behind "+node+": context canceled")
				ends(t, second, refused+"behind "+held.Path()+": context canceled")
				queued(t, all[0], 1) // a call that was cancelled does not wait until its node is deleted

				own := testlock.Start(t, all[0].Acquire)
				time.Sleep(time.Second)
				if opts != nil {
					ends(t, own, refused+"held by this client: context canceled")
				} else {
					ends(t, own, refused+"behind "+held.Path()+": context canceled")
				}
				require.NoError(t, held.Release())
			})
		})
	}
}

// An acquire that has not seen any other node does not name one.
func TestErrorsBeforeTheQueueIsKnownNameNoNode(t *testing.T) {
	c, err := framework.New("127.0.0.1:1")
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	_, err = newMutex(t, c, "/locks/a").AcquireWithin(testzk.Context(t), time.Millisecond)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, recipes.ErrNotAcquired)
	require.NotContains(t, err.Error(), "behind")
}
