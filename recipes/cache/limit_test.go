package cache_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/recipes/cache"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// Nodes take the place of others, again and again, and never exceed the limit. The cache never ends,
// although it learns of new nodes before it learns that others are gone.
func TestSimulatedLimit(t *testing.T) {
	const nodes = 6 // below the root, but for a moment
	sim.Run(t, 40, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		client := simClient(t, srv, random, "c0", srv.MemAddr())
		if random.IntN(2) == 0 {
			forgetAllWatches(srv)
		}
		for i := range nodes {
			require.NoError(t, srv.Load(map[string]string{fmt.Sprintf("/a/%d/%d", i%2, i): ""}))
		}
		c, err := cache.New(client, "/a", cache.WithLimit(3+nodes, 0))
		require.NoError(t, err)
		t.Cleanup(c.Close)
		own := rand.New(rand.NewPCG(random.Uint64(), 0))
		var busy sync.WaitGroup
		busy.Go(func() {
			for next := nodes; next < 20*nodes; next++ {
				for range own.IntN(3) {
					gone := next - nodes
					_ = srv.Set(fmt.Sprintf("/a/%d/%d", gone%2, gone), nil)
				}
				gone := next - nodes
				require.NoError(t, srv.Delete(fmt.Sprintf("/a/%d/%d", gone%2, gone)))
				require.NoError(t, srv.Create(fmt.Sprintf("/a/%d/%d", next%2, next), nil))
				if own.IntN(3) == 0 {
					time.Sleep(time.Duration(own.Int64N(int64(simTimeout / 4))))
				}
			}
		})
		testlock.DisturbEnsemble(srv, random, 1, simFaults, simTimeout)
		busy.Wait()
		srv.ResetFaults()
		time.Sleep(3 * simTimeout)
		require.NoError(t, c.Err(), "the tree never had more nodes")
		require.Len(t, content(c), 3+nodes)
	})
}

// A filter ends the goroutine of the cache, as a failing test does.
func TestCacheWhoseGoroutineWasEndedSaysSo(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		client := simClient(t, srv, random, "c0", srv.MemAddr())
		_, err := client.Create(t.Context(), "/a/b", nil, framework.Parents())
		require.NoError(t, err)
		c, err := cache.New(client, "/a", cache.WithFilter(func(string) bool { runtime.Goexit(); return true }))
		require.NoError(t, err)
		<-c.Done()
		require.ErrorContains(t, c.Err(), "code of the program")
		require.ErrorIs(t, c.WaitReady(t.Context()), c.Err())
	})
}
