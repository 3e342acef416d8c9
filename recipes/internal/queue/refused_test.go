package queue_test

import (
	"math/rand/v2"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/internal/queue"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// A waiter that must not list the queue any more does not know what is ahead of it.
func TestWaiterIsNotGrantedByAListThatIsRefused(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		acquire := func(client string) <-chan result {
			c := connected(t, srv, client)
			got := acquiring(testzk.Context(t), queue.Single(c, "test", "/lock", queue.Exclusive, nil), waits)
			settle()
			return got
		}
		holder := <-acquire("holder")
		require.NoError(t, holder.err)
		next, last := acquire("next"), acquire("last")
		require.Empty(t, next)
		require.Empty(t, last)
		// The last waiter watches the holder, and lists the queue when that has left.
		refused := srv.On(fault.Match{Client: "last", Op: fault.OpGetChildren2}, fault.Fail(zktest.NoAuth))
		require.NoError(t, holder.hold.Release())
		second := <-next
		require.NoError(t, second.err)
		third := <-last
		require.Equal(t, 1, refused.Hits())
		require.ErrorIs(t, third.err, zk.ErrNoAuth)
		require.Nil(t, third.hold)
		require.NoError(t, second.hold.Err())
		require.NoError(t, second.hold.Release())
	})
}
