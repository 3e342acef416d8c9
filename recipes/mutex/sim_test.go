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
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

const (
	contenders   = 3
	turns        = 4 // each contender gets the lock so often
	simTimeout   = 4 * time.Second
	faultsInARun = 8
)

// aim aims faults at the requests of acquires, of releases and of reconnects.
func aim(t *testing.T) *testlock.Aim {
	return testlock.NewAim(t, fault.OpCreate, fault.OpGetChildren2, fault.OpGetData, fault.OpDelete, fault.OpMulti,
		fault.OpSync, fault.OpSetWatches, fault.OpConnect, fault.AnyOp)
}

// Faults of connections and sessions leave one holder at a time and growing tokens. Every contender
// gets the lock, and no node is left.
func TestSimulatedContenders(t *testing.T) {
	aim := aim(t)
	sim.Repeat(t, 100, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		simulate(t, srv, random, aim)
	}, keepsParents)
}

// keepsParents makes a server keep empty containers for the whole of a run.
var keepsParents = zktest.WithConfig("znode.container.checkIntervalMs", "3600000")

func simulate(t *testing.T, srv *zktest.Server, random *rand.Rand, aim *testlock.Aim) {
	model := testlock.NewModel(t, srv)
	var measured testzk.Metrics
	var running sync.WaitGroup
	for i, opts := range [contenders][]mutex.Option{{mutex.WithKazooNames()}} { // different names exclude each other
		c := &contender{t: t, model: model, name: fmt.Sprintf("c%d", i)}
		c.random = rand.New(rand.NewPCG(random.Uint64(), 0))
		c.connect(srv, srv.MemAddr(), simTimeout, framework.WithMetrics(&measured))
		c.lock = newMutex(t, c.client, "/lock", opts...)
		running.Go(c.run)
	}
	harm(t, srv, random, aim, model, contenders)
	running.Wait()
	time.Sleep(2 * simTimeout) // background work that is still pending after this would never end
	require.Equal(t, "/lock container\n", srv.Tree())
	require.Empty(t, measured.Levels())
}

// harm makes the faults of one run, to the clients c0, c1 and so on.
func harm(t *testing.T, srv *zktest.Server, random *rand.Rand, aim *testlock.Aim, model *testlock.Model, clients int) {
	faults := aim.Faults(t, srv, random, simTimeout)
	for range faultsInARun {
		time.Sleep(time.Duration(random.Int64N(int64(2 * time.Second))))
		faults.Harm(srv.Client(fmt.Sprintf("c%d", random.IntN(clients))), model, "/lock")
	}
}

type contender struct {
	t      *testing.T
	model  *testlock.Model
	name   string
	random *rand.Rand
	client *framework.Client
	lock   *mutex.Mutex
}

// connect makes a client of servers.
func (c *contender) connect(srv *zktest.Server, servers string, timeout time.Duration, opts ...framework.Option) {
	c.client = testlock.Client(c.t, srv.Client(c.name), servers, c.random, timeout, opts...)
}

func (c *contender) run() {
	for done := 0; done < turns; {
		if hold, err := c.lock.Acquire(context.Background()); err == nil {
			c.useFor(hold, testlock.HoldTime(c.random, simTimeout))
			done++
		}
	}
}

func (c *contender) upTo(most time.Duration) time.Duration {
	return time.Duration(c.random.Int64N(int64(most)))
}

// useFor keeps a hold for a time, or until it has ended, and releases it.
func (c *contender) useFor(hold *recipes.Hold, d time.Duration) {
	c.model.Begin(testlock.UseOf(hold))
	select {
	case <-time.After(d):
	case <-hold.Done():
	}
	_ = hold.Release()
}
