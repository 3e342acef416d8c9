package inspect_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/barrier"
	"github.com/docent-zk/docent/recipes/condition"
	"github.com/docent-zk/docent/recipes/counter"
	"github.com/docent-zk/docent/recipes/striped"
	"github.com/docent-zk/docent/zktest"
)

// The recipes that keep more than Curator's nodes, or that Curator does not have.
func TestWalkShowsTheRecipesThatOnlyDocentHas(t *testing.T) {
	c, root := testzk.Connected(t, testzk.Connect()), testzk.Path(t)
	ctx := testzk.Context(t)

	gate, err := barrier.New(c, root+"/barrier")
	require.NoError(t, err)
	require.NoError(t, gate.Set(ctx))
	double, err := barrier.NewDouble(c, root+"/double", 2)
	require.NoError(t, err)
	during(t, func(ctx context.Context) error { _, err := double.Enter(ctx); return err })
	cyclic, err := barrier.NewCyclic(c, root+"/cyclic", 2)
	require.NoError(t, err)
	during(t, func(ctx context.Context) error { _, err := cyclic.Await(ctx); return err })
	latch, err := barrier.NewCountDown(c, root+"/latch", 2)
	require.NoError(t, err)
	require.NoError(t, latch.CountDown(ctx))

	mu := newMutex(t, c, root+"/mutex")
	full, err := condition.New(mu, root+"/full")
	require.NoError(t, err)
	during(t, func(ctx context.Context) error {
		hold, err := mu.Acquire(ctx)
		if err != nil {
			return err
		}
		hold, err = full.Wait(ctx, hold)
		return errors.Join(err, hold.Release())
	})
	locks, err := striped.New(c, root+"/striped", 4)
	require.NoError(t, err)
	testlock.Held(t, locks.For("a key"))

	children := map[string]int{"double": 1, "cyclic": 1, "latch": 1, "full": 1}
	for name, n := range children {
		testzk.Eventually(t, func() bool {
			names, _, err := c.Children(ctx, root+"/"+name)
			return err == nil && len(names) == n
		}, name)
	}
	testzk.Empty(t, root+"/mutex") // a waiter of a condition releases the lock after it has made its node
	testzk.Everywhere(t)
	require.Equal(t, []string{
		"/barrier barrier? closed curator",
		"/cyclic cyclic-barrier waited-for docent 0+1 of 2 = 0",
		"/double double-barrier? waited-for curator 0+1",
		"/full condition waited-for docent 0+1",
		"/latch count-down closed docent of 2 = 1",
		"/striped striped docent 1+0 = 4",
		"/striped/4/2 mutex held curator 1+0",
	}, lines(walk(t, c, root), root))
}

// Not on real servers, because the client does not keep its node for long.
func TestWalkShowsACounterThatIsUpdated(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		c := client(t, srv, "a")
		orders, err := counter.NewAtomic(c, "/orders")
		require.NoError(t, err)
		_, err = orders.Add(t.Context(), 7)
		require.NoError(t, err)
		require.Equal(t, []string{"/orders atomic docent 1+0 = 7"}, lines(walk(t, c, "/orders"), ""))
	})
}

// during runs a call that waits, until the end of the test.
func during(t *testing.T, call func(context.Context) error) {
	ctx, cancel := context.WithCancel(testzk.Context(t))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = call(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}
