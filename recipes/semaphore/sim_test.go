package semaphore_test

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
	"github.com/docent-zk/docent/recipes/semaphore"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

const (
	contenders   = 4
	turns        = 4 // each contender gets permits so often
	faultsInARun = 10
)

// Faults of connections, sessions and containers, and changes of the limit, leave the limit
// respected. No two holds share a slot, every contender gets permits, and no node is left.
func TestSimulatedContenders(t *testing.T) {
	aim := testlock.NewAim(t, fault.OpMulti, fault.OpCreate, fault.OpDelete, fault.OpGetChildren2, fault.OpGetData,
		fault.OpSync, fault.OpSetWatches, fault.OpConnect, fault.AnyOp)
	sim.Run(t, 50, func(t *testing.T, srv *zktest.Server, random *rand.Rand) { simulate(t, srv, random, aim) },
		zktest.WithConfig("znode.container.checkIntervalMs", "300"))
}

func simulate(t *testing.T, srv *zktest.Server, random *rand.Rand, aim *testlock.Aim) {
	require.NoError(t, srv.Create("/limit", number(3)))
	model, faults := testlock.NewModel(t, srv), aim.Faults(t, srv, random, simTimeout)
	model.Permits = 3
	setLimit := func(permits int) {
		model.SetLimit("", permits, func() int64 {
			require.NoError(t, srv.Set("/limit", number(permits)))
			stat, err := srv.Stat("/limit")
			require.NoError(t, err)
			return stat.Mzxid
		})
	}
	setLimit(2 + random.IntN(2))
	var measured testzk.Metrics
	var running sync.WaitGroup
	for i := range contenders {
		c := &contender{model: model, name: fmt.Sprintf("c%d", i), random: rand.New(rand.NewPCG(random.Uint64(), 0))}
		client := testlock.Client(t, srv.Client(c.name), srv.MemAddr(), random, simTimeout,
			framework.WithMetrics(&measured))
		c.semaphore = newSemaphore(t, client, "/sem", 3, semaphore.WithSlots(), semaphore.WithSharedLimit("/limit"))
		running.Go(c.run)
	}
	for range faultsInARun {
		time.Sleep(time.Duration(random.Int64N(int64(time.Second))))
		c := srv.Client(fmt.Sprintf("c%d", random.IntN(contenders)))
		if random.IntN(8) < 3 {
			setLimit(random.IntN(4))
		} else {
			faults.Harm(c, model, "/sem/leases", "/sem/locks")
		}
	}
	setLimit(2)
	running.Wait()
	requireEmpty(t, srv, "/sem")
	require.False(t, srv.Exists("/sem"), "%s", srv.Tree())
	require.Empty(t, measured.Levels())
}

type contender struct {
	model     *testlock.Model
	name      string
	random    *rand.Rand
	semaphore *semaphore.Semaphore
}

func (c *contender) run() {
	for done := 0; done < turns; {
		called := c.model.Now()
		hold, err := c.try()
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		c.useFor(hold, called, testlock.HoldTime(c.random, simTimeout))
		done++
	}
}

// useFor keeps a hold for a time, or until it has ended, and releases it. called is when its acquire
// began.
func (c *contender) useFor(hold *recipes.Hold, called int64, d time.Duration) {
	use := testlock.UseOf(hold)
	use.Called, use.Slots = called, semaphore.Slots(hold)
	c.model.Begin(use)
	select {
	case <-time.After(d):
	case <-hold.Done():
	}
	_ = hold.Release()
}

// try acquires one permit or two. Some calls do not wait, others wait for a short time only.
func (c *contender) try() (*recipes.Hold, error) {
	n := 1 + c.random.IntN(2)
	switch c.random.IntN(4) {
	case 0:
		return c.semaphore.TryAcquireN(context.Background(), n)
	case 1:
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(c.random.Int64N(int64(3*time.Second))))
		defer cancel()
		return c.semaphore.AcquireN(ctx, n)
	}
	return c.semaphore.AcquireN(context.Background(), n)
}
