package testlock

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// Ensemble is a simulation of clients that contend for a lock on an ensemble.
type Ensemble struct {
	Clients int
	Turns   int // how often each client gets the lock
	Faults  int
	Timeout time.Duration // of sessions
}

// patience is much longer than all uses of the lock take on undisturbed servers.
const patience = 2 * time.Minute

// Run makes faults between the servers and on the clients' connections. Each client, named c0, c1 and
// so on, must get the lock, although it gives up at times. join returns how a client acquires the lock,
// and how it uses a hold for a time.
func (e Ensemble) Run(
	t *testing.T, srv *zktest.Server, random *rand.Rand, followers int,
	join func(name, servers string, random *rand.Rand) (Acquire, func(*recipes.Hold, time.Duration)),
) {
	all := sim.Ensemble(srv, random, followers)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var running sync.WaitGroup
	for i := range e.Clients {
		servers := all
		if random.IntN(3) == 0 {
			each := strings.Split(all, ",")
			servers = each[random.IntN(len(each))]
		}
		own := rand.New(rand.NewPCG(random.Uint64(), 0))
		name := fmt.Sprintf("c%d", i)
		acquire, use := join(name, servers, own)
		running.Go(func() {
			if served := e.contend(ctx, own, acquire, use); served < e.Turns {
				t.Errorf("%s has got the lock %d of %d times: nothing releases it", name, served, e.Turns)
			}
		})
	}
	DisturbEnsemble(srv, random, e.Clients, e.Faults, e.Timeout)
	time.AfterFunc(patience, stop)
	running.Wait()
	time.Sleep(2 * e.Timeout)
}

// contend acquires the lock a number of times. Other acquires give up early. It returns how often it
// got the lock until all ended.
func (e Ensemble) contend(
	all context.Context, random *rand.Rand, acquire Acquire, use func(*recipes.Hold, time.Duration),
) (served int) {
	for served < e.Turns && all.Err() == nil {
		ctx, cancel := context.WithCancel(all)
		if random.IntN(2) == 0 {
			ctx, cancel = context.WithTimeout(ctx, time.Duration(random.Int64N(int64(time.Second))))
		}
		hold, err := acquire(ctx)
		cancel()
		if err != nil {
			continue
		}
		use(hold, time.Duration(random.Int64N(int64(500*time.Millisecond))))
		served++
	}
	return served
}

// DisturbEnsemble makes random faults between the servers of an ensemble, and on the connections of
// the clients c0, c1 and so on. Afterwards the servers and the connections are undisturbed.
func DisturbEnsemble(srv *zktest.Server, random *rand.Rand, clients, faults int, sessionTimeout time.Duration) {
	for range faults {
		time.Sleep(time.Duration(random.Int64N(int64(sessionTimeout / 8))))
		c := srv.Client(fmt.Sprintf("c%d", random.IntN(clients)))
		switch random.IntN(8) {
		case 0, 1, 2:
			c.Drop()
		case 3:
			c.CutReplies()
			time.AfterFunc(time.Duration(random.Int64N(int64(sessionTimeout))), c.Heal)
		case 4:
			members := srv.Members()
			bound := sessionTimeout/3 + time.Duration(random.Int64N(int64(sessionTimeout-sessionTimeout/3)))
			members[random.IntN(len(members))].SetSessionTimeouts(time.Second, bound)
		default:
			sim.Disturb(srv, random, sessionTimeout/2)
		}
	}
	sim.Calm(srv)
	srv.ResetFaults()
}
