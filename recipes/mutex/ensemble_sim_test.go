package mutex_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// patience is much longer than all uses of the lock take on undisturbed servers.
const patience = 2 * time.Minute

// Faults between the servers of an ensemble and on the clients' connections leave one holder at a
// time and growing tokens. Every contender gets the lock, although it gives up at times. No node is
// left.
func TestSimulatedEnsemble(t *testing.T) {
	for name, followers := range map[string]int{"two": 1, "three": 2} {
		t.Run(name, func(t *testing.T) {
			sim.Run(t, 200, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
				simulateEnsemble(t, srv, random, followers)
			})
		})
	}
}

func simulateEnsemble(t *testing.T, srv *zktest.Server, random *rand.Rand, followers int) {
	all := sim.Ensemble(srv, random, followers)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	model := testlock.NewModel(t, srv)
	var running sync.WaitGroup
	for i := range contenders {
		addrs := all
		if random.IntN(3) == 0 {
			each := strings.Split(all, ",")
			addrs = each[random.IntN(len(each))]
		}
		c := &contender{t: t, model: model, name: fmt.Sprintf("c%d", i)}
		c.random = rand.New(rand.NewPCG(random.Uint64(), 0))
		c.connect(srv, addrs, simTimeout)
		c.lock = newMutex(t, c.client, "/lock")
		running.Go(func() { c.runUntilServed(ctx) })
	}
	testlock.DisturbEnsemble(srv, random, contenders, 4*faultsInARun, simTimeout)
	time.AfterFunc(patience, stop)
	running.Wait()
	time.Sleep(2 * simTimeout)
	require.Equal(t, "/lock container\n", srv.Tree())
}

// runUntilServed acquires the lock a number of times. Other acquires give up early.
func (c *contender) runUntilServed(all context.Context) {
	for done := 0; done < 3*turns; {
		if all.Err() != nil {
			c.t.Errorf("%s has got the lock %d of %d times: nothing releases it", c.name, done, 3*turns)
			return
		}
		ctx, cancel := context.WithCancel(all)
		if c.random.IntN(2) == 0 {
			ctx, cancel = context.WithTimeout(ctx, c.upTo(time.Second))
		}
		hold, err := c.lock.Acquire(ctx)
		cancel()
		if err != nil {
			continue
		}
		c.useFor(hold, c.upTo(500*time.Millisecond))
		done++
	}
}
