package mutex_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// Waiters of one client know their predecessors in the queue. Whatever happens, and if waiters give
// up, the result is that of separate clients.
func TestSimulatedPredecessorsOfOneSession(t *testing.T) {
	aim := aim(t)
	sim.Run(t, 50, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		const clients, each = 2, 4
		model := testlock.NewModel(t, srv)
		var measured testzk.Metrics
		var running sync.WaitGroup
		for i := range clients {
			first := contender{t: t, model: model, name: fmt.Sprintf("c%d", i)}
			first.random = rand.New(rand.NewPCG(random.Uint64(), 0))
			first.connect(srv, srv.MemAddr(), simTimeout, framework.WithMetrics(&measured))
			first.lock = newMutex(t, first.client, "/lock")
			for range each {
				c := first
				c.random = rand.New(rand.NewPCG(random.Uint64(), 2))
				running.Go(c.runImpatiently)
			}
		}
		harm(t, srv, random, aim, model, clients)
		running.Wait()
		time.Sleep(2 * simTimeout)
		require.Equal(t, "/lock container\n", srv.Tree())
		require.Empty(t, measured.Levels())
	}, keepsParents)
}

// runImpatiently acquires the lock a number of times and gives up at times.
func (c *contender) runImpatiently() {
	for done := 0; done < turns; {
		ctx, cancel := context.WithTimeout(context.Background(), c.upTo(10*time.Second))
		hold, err := c.lock.Acquire(ctx)
		cancel()
		if err == nil {
			c.useFor(hold, testlock.HoldTime(c.random, simTimeout))
			done++
		}
	}
}
