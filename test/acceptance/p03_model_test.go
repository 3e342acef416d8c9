package acceptance_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

const (
	p03Contenders = 3
	p03Turns      = 3 // holds of each contender
	p03Faults     = 8 // of one schedule
)

// Three contenders take turns in random schedules, 300 here and 10,000 in "make seeds". Meanwhile
// sessions expire, connections drop, lock nodes are deleted, and requests, replies and events are
// lost or late. There are never two valid holds, tokens grow, each contender gets all its turns,
// and no node is left.
func TestP03_OneValidHoldInRandomSchedules(t *testing.T) {
	onlyInProcess(t, virtual)
	t.Parallel()
	aim := testlock.NewAim(t, fault.OpCreate, fault.OpGetChildren2, fault.OpGetData, fault.OpDelete, fault.OpMulti,
		fault.OpSync, fault.OpSetWatches, fault.OpConnect, fault.AnyOp)
	sim.Run(t, 300, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		p03Schedule(t, srv, random, aim)
	}) // make seeds runs all 10,000
}

func p03Schedule(t *testing.T, srv *zktest.Server, random *rand.Rand, aim *testlock.Aim) {
	model, faults := testlock.NewModel(t, srv), aim.Faults(t, srv, random, bubbleTimeout)
	var running sync.WaitGroup
	for i := range p03Contenders {
		name := fmt.Sprintf("c%d", i)
		source := rand.New(rand.NewPCG(random.Uint64(), uint64(i)))
		c := bubbleNew(t, srv, srv.MemAddr(), name, framework.WithRandom(source.Int64N))
		mu := bubbleMutex(t, c, "/lock")
		pauses := rand.New(rand.NewPCG(random.Uint64(), uint64(i)))
		running.Go(func() { p03Contend(t, model, name, mu, pauses) })
	}
	for range p03Faults {
		time.Sleep(time.Duration(random.Int64N(int64(3 * time.Second))))
		faults.Harm(srv.Client(fmt.Sprintf("c%d", random.IntN(p03Contenders))), model, "/lock")
	}
	running.Wait()
	// Late requests can no longer arrive.
	time.Sleep(2 * bubbleTimeout)
	// The server may have reaped the parent.
	require.Contains(t, []string{"", "/lock container\n"}, srv.Tree())
}

func p03Contend(t *testing.T, model *testlock.Model, name string, mu *mutex.Mutex, random *rand.Rand) {
	for range p03Turns {
		hold, err := mu.Acquire(t.Context())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		model.Begin(testlock.UseOf(hold))
		select {
		case <-time.After(testlock.HoldTime(random, bubbleTimeout)):
		case <-hold.Done():
		}
		_ = hold.Release()
	}
}
