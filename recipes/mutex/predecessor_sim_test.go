package mutex_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// Waiters of one client know their predecessors in the queue. Whatever happens, and if waiters give
// up, the result is that of separate clients.
func TestSimulatedLocalPredecessors(t *testing.T) {
	sim.Run(t, 50, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		const clients, each = 2, 4
		resource := &resource{t: t, expelled: map[string]int64{}}
		var measured testzk.Metrics
		var running sync.WaitGroup
		for i := range clients {
			first := contender{t: t, resource: resource, metrics: &measured, name: fmt.Sprintf("c%d", i)}
			first.random = rand.New(rand.NewPCG(random.Uint64(), 0))
			first.connect(srv)
			for range each {
				c := first
				c.random = rand.New(rand.NewPCG(random.Uint64(), 2))
				running.Go(c.runImpatiently)
			}
		}
		for range faultsInARun {
			time.Sleep(time.Duration(random.Int64N(int64(2 * time.Second))))
			if c := srv.Client(fmt.Sprintf("c%d", random.IntN(clients))); random.IntN(8) == 0 {
				resource.expel(srv, c)
			} else {
				harm(srv, c, random)
			}
		}
		running.Wait()
		time.Sleep(2 * simTimeout)
		require.Equal(t, "/lock container\n", srv.Tree())
		require.Empty(t, measured.Levels())
	})
}

// runImpatiently acquires the lock a number of times and gives up at times.
func (c *contender) runImpatiently() {
	for done := 0; done < turns; {
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(c.random.Int64N(int64(10*time.Second))))
		hold, err := c.lock.Acquire(ctx)
		cancel()
		if err != nil {
			continue
		}
		c.resource.use(c.name, hold)
		select {
		case <-time.After(time.Duration(c.random.Int64N(int64(300 * time.Millisecond)))):
		case <-hold.Done():
		}
		c.resource.leave(hold)
		_ = hold.Release()
		done++
	}
}
