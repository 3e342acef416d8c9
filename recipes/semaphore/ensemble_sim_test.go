package semaphore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// enough is much longer than all uses of the permits take on undisturbed servers.
const enough = 2 * time.Minute

// Faults between the servers of an ensemble and on the clients' connections leave the limit
// respected. Every contender gets permits, although it gives up at times. No node is left.
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
	r := newRoom(t, srv)
	r.limits = []limitAt{{permits: 2}}
	var running sync.WaitGroup
	for i := range contenders {
		addrs := all
		if random.IntN(3) == 0 {
			each := strings.Split(all, ",")
			addrs = each[random.IntN(len(each))]
		}
		c := &contender{room: r, name: fmt.Sprintf("c%d", i), random: rand.New(rand.NewPCG(random.Uint64(), 0))}
		client := testlock.Client(t, srv.Client(c.name), addrs, c.random, simTimeout)
		c.semaphore = newSemaphore(t, client, "/sem", 2)
		running.Go(func() { c.runUntilServed(ctx) })
	}
	testlock.DisturbEnsemble(srv, random, contenders, 4*faultsInARun, simTimeout)
	time.AfterFunc(enough, stop)
	running.Wait()
	time.Sleep(2 * simTimeout)
	requireEmpty(t, srv, "/sem")
}

// runUntilServed acquires permits a number of times. Other acquires give up early.
func (c *contender) runUntilServed(all context.Context) {
	for done := 0; done < 3*turns; {
		if all.Err() != nil {
			c.room.t.Errorf("%s has got permits %d of %d times: nothing releases them", c.name, done, 3*turns)
			return
		}
		ctx, cancel := context.WithCancel(all)
		if c.random.IntN(2) == 0 {
			ctx, cancel = context.WithTimeout(ctx, time.Duration(c.random.Int64N(int64(time.Second))))
		}
		hold, err := c.semaphore.AcquireN(ctx, 1+c.random.IntN(2))
		cancel()
		if err != nil {
			continue
		}
		c.useFor(hold, time.Duration(c.random.Int64N(int64(500*time.Millisecond))))
		done++
	}
}
