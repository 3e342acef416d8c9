package multilock_test

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
	"github.com/docent-zk/docent/recipes/multilock"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// kinds returns multi-locks of mutexes on paths, made in different ways.
func kinds(t testing.TB, c *framework.Client, paths []string) map[string]*multilock.MultiLock {
	t.Helper()
	var locks []recipes.Locker
	for _, path := range paths {
		locks = append(locks, newMutex(t, c, path))
	}
	return map[string]*multilock.MultiLock{
		"together": newMulti(t, c, paths),
		"in order": newMulti(t, c, paths, multilock.WithPathOrder()),
		"of":       combined(t, locks...),
	}
}

func TestDeletionOfOneNodeDeletesTheOthers(t *testing.T) {
	paths := named(t, 3)
	for name, m := range kinds(t, own(t), paths) {
		for i := range paths {
			hold := acquire(t, m)
			work := hold.Context(context.Background())
			node := hold.Paths()[i]
			remove(t, node)
			testzk.Closes(t, hold.Done(), "the hold does not report its end")
			require.ErrorContains(t, hold.Err(), node, name)
			testlock.LostTo(t, hold, work, recipes.ErrNodeDeleted)
			free(t, paths...)
		}
	}
}

func TestDeletionOfOneNodeEndsTheWholeAtOnce(t *testing.T) {
	paths := []string{"/a", "/b", "/c"}
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		for name, m := range kinds(t, simClient(t, srv, "c", 4*time.Second), paths) {
			for i := range paths {
				hold := acquire(t, m)
				ended := hold.Done() // makes the client watch the nodes
				time.Sleep(time.Second)
				require.NoError(t, srv.Delete(hold.Paths()[i]))
				removed := time.Now()
				<-ended
				require.Less(t, time.Since(removed), time.Second, name)
				require.ErrorIs(t, hold.Release(), recipes.ErrNodeDeleted)
				time.Sleep(time.Second) // the other nodes are deleted
			}
		}
	}, zktest.WithSessionTimeouts(time.Second, time.Minute))
}

// The deletion has not been reported when Release is called.
func TestReleaseReportsAnUnnoticedDeletion(t *testing.T) {
	paths := named(t, 3)
	observer := testzk.Observer(t)
	for name, m := range kinds(t, own(t), paths) {
		hold := acquire(t, m)
		require.NoError(t, observer.Delete(hold.Paths()[1], -1))
		require.ErrorIs(t, hold.Release(), recipes.ErrNodeDeleted, name)
		require.ErrorIs(t, hold.Release(), recipes.ErrNotHeld, name)
		free(t, paths...)
	}
}

func TestGuardAppliesNothingWhileAnyNodeIsMissing(t *testing.T) {
	paths := named(t, 3)
	c := own(t)
	observer := testzk.Observer(t)
	data := testzk.Path(t)
	_, err := c.Create(testzk.Context(t), data, []byte("before"), framework.Parents())
	require.NoError(t, err)
	for name, m := range kinds(t, c, paths) {
		for i := range paths {
			hold := acquire(t, m)
			results, err := hold.Guard(testzk.Context(t), framework.SetOp(data, []byte("held"), -1))
			require.NoError(t, err, name)
			require.Len(t, results, 1, "the results are those of the caller's operations")
			require.NotNil(t, results[0].Stat)

			require.NoError(t, observer.Delete(hold.Paths()[i], -1))
			_, err = hold.Guard(testzk.Context(t), framework.SetOp(data, []byte("late"), -1))
			require.ErrorIs(t, err, recipes.ErrNodeDeleted, name)
			require.Equal(t, framework.NotApplied, framework.OutcomeOf(err), name)
			require.ErrorIs(t, hold.Err(), recipes.ErrNodeDeleted, name)
			got, _, err := c.Get(testzk.Context(t), data)
			require.NoError(t, err)
			require.Equal(t, "held", string(got), name)
			require.ErrorIs(t, hold.Release(), recipes.ErrNodeDeleted)
			free(t, paths...)
		}
	}
}

func TestFailureOfAGuardedOperationIsNoLoss(t *testing.T) {
	paths := named(t, 3)
	for name, m := range kinds(t, own(t), paths) {
		hold := acquire(t, m)
		_, err := hold.Guard(testzk.Context(t), framework.CheckOp(paths[0]+"/missing", -1))
		require.ErrorContains(t, err, paths[0]+"/missing", name)
		require.NotErrorIs(t, err, recipes.ErrNodeDeleted, name)
		_, err = hold.Guard(testzk.Context(t), nil)
		require.ErrorContains(t, err, "operation 0 is nil", name)
		require.NoError(t, hold.Release(), name)
	}
}

func TestLossOfTheSessionEndsTheWhole(t *testing.T) {
	for _, kind := range []string{"together", "in order", "of"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p := testzk.Proxy(t)
			paths := named(t, 2)
			hold := acquire(t, kinds(t, testzk.Connected(t, p.Addr(), testzk.Mortal()), paths)[kind])
			work := hold.Context(context.Background())
			next := testlock.Start(t, newMulti(t, own(t), paths).Acquire)
			p.Blackhole(true)
			after := next.Won(t)
			require.ErrorIs(t, hold.Err(), framework.ErrSessionLost, "another client has the locks")
			testlock.LostTo(t, hold, work, framework.ErrSessionLost)
			require.NoError(t, after.Release())
		})
	}
}

func TestInterruptionEndsTheWholeUnderTheStrictPolicy(t *testing.T) {
	p := testzk.Proxy(t)
	paths := named(t, 2)
	c := testzk.Connected(t, p.Addr(), framework.WithLossPolicy(framework.Strict))
	hold := acquire(t, newMulti(t, c, paths))
	work := hold.Context(context.Background())
	p.DropConnections()
	testlock.LostTo(t, hold, work, framework.ErrSuspended)
	free(t, paths...)
}

func TestRevocationOfAnyPartReachesTheHolder(t *testing.T) {
	paths := named(t, 3)
	c, asker := own(t), own(t)
	for name, m := range kinds(t, c, paths) {
		for i := range paths {
			hold := acquire(t, m)
			require.NoError(t, recipes.Revoke(testzk.Context(t), asker, recipes.Participant{Node: hold.Paths()[i]}))
			testzk.Closes(t, hold.Revoked(), name+": the holder is not revoked")
			require.NoError(t, hold.Err(), "a revocation is no loss")
			require.NoError(t, hold.Release())
		}
	}
	free(t, paths...)
}

func TestRevocationOfAWaiterReachesItsHold(t *testing.T) {
	paths := named(t, 2)
	c, other := own(t), own(t)
	for name, m := range kinds(t, c, paths) {
		busy := acquire(t, newMutex(t, other, paths[1]))
		waiter := testlock.Start(t, m.Acquire)
		queued(t, other, paths[1], 2)
		node := queued(t, other, paths[0], 1)[0].Node // already the first node of its queue
		require.NoError(t, recipes.Revoke(testzk.Context(t), other, recipes.Participant{Node: node}))
		require.NoError(t, busy.Release())
		hold := waiter.Won(t)
		testzk.Closes(t, hold.Revoked(), name+": the holder is not revoked")
		require.NoError(t, hold.Release())
	}
	free(t, paths...)
}
