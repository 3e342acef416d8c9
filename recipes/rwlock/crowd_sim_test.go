package rwlock_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/recipes/rwlock"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

const (
	crowdMembers = 6 // of each client
	crowdTurns   = 3
)

// Two clients have many members each, so waiters of one client are next to each other. Each member has
// a lock value of its own: some are made through a namespace, and some use kazoo's names.
func TestSimulatedCrowdsOfTwoClients(t *testing.T) {
	aim := testlock.NewAim(t, fault.OpCreate, fault.OpMulti, fault.OpDelete, fault.OpGetChildren2, fault.OpGetData,
		fault.OpSetWatches, fault.OpConnect, fault.AnyOp)
	sim.Run(t, 100, func(t *testing.T, srv *zktest.Server, random *rand.Rand) { crowds(t, srv, random, aim) })
}

func crowds(t *testing.T, srv *zktest.Server, random *rand.Rand, aim *testlock.Aim) {
	model, faults := testlock.NewModel(t, srv), aim.Faults(t, srv, random, simTimeout)
	require.NoError(t, srv.Create("/crowd", nil))
	require.NoError(t, srv.Create("/crowd/lock", nil))
	if random.IntN(4) == 0 { // the sequence numbers are near or at their end
		require.NoError(t, srv.SetSequence("/crowd/lock", math.MaxInt32-random.Int32N(40)))
	}
	servers := srv.MemAddr()
	for range random.IntN(3) { // a client that reconnects may go back to a server that it came from
		servers += "," + srv.Follower(time.Duration(random.Int64N(int64(time.Second)))).MemAddr()
	}
	names := []string{"c0", "c1"}
	var running sync.WaitGroup
	for _, name := range names {
		client := testlock.Client(t, srv.Client(name), servers, random, simTimeout,
			framework.WithLossPolicy(framework.LossPolicy(random.IntN(2))))
		for j := range crowdMembers {
			a := &member{t: t, model: model, name: fmt.Sprintf("%s.%d", name, j), turns: crowdTurns}
			a.lock, a.under = crowdLock(t, client, random)
			a.random = rand.New(rand.NewPCG(random.Uint64(), 0))
			running.Go(a.run)
		}
	}
	for range random.IntN(2 * faultsInARun) {
		time.Sleep(time.Duration(random.Int64N(int64(2 * time.Second))))
		faults.Harm(srv.Client(names[random.IntN(len(names))]), model, "/crowd/lock")
	}
	running.Wait()
	time.Sleep(2 * simTimeout) // background work that is still pending after this would never end
	left, err := srv.Children("/crowd/lock")
	require.NoError(t, err)
	require.Empty(t, left)
}

// crowdLock returns another value of the lock, and the namespace that its paths are in.
func crowdLock(t *testing.T, client *framework.Client, random *rand.Rand) (lock *rwlock.RWLock, under string) {
	t.Helper()
	var opts []rwlock.Option
	if random.IntN(4) == 0 {
		opts = append(opts, rwlock.WithKazooNames())
	}
	if random.IntN(2) == 0 {
		return newLock(t, client.Namespace("crowd"), "/lock", opts...), "/crowd"
	}
	return newLock(t, client, "/crowd/lock", opts...), ""
}
