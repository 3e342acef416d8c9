package leader_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/framework/metrics"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/leader"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

const (
	candidates   = 3
	simTimeout   = 4 * time.Second
	faultsInARun = 8
	electionPath = "/service/leader"
	// patience bounds the time from the end of all faults until a candidate leads.
	patience = simTimeout + 2*time.Second
)

// Faults of connections, sessions, nodes and servers leave at most one valid term at a time and
// growing tokens. After each end of the faults a candidate leads within the session timeout and two
// seconds. Every candidate leads at some time, and no node is left.
func TestSimulatedElections(t *testing.T) { simulate(t, electionCandidate) }

func TestSimulatedLatches(t *testing.T) { simulate(t, latchCandidate) }

// simulate runs the scenario. stand runs a candidate until ctx ends.
func simulate(t *testing.T, stand func(ctx context.Context, c *candidate)) {
	aim := testlock.NewAim(t, fault.OpCreate, fault.OpMulti, fault.OpDelete, fault.OpGetData, fault.OpGetChildren2,
		fault.OpSync, fault.OpSetWatches, fault.OpConnect, fault.AnyOp)
	sim.Run(t, 100, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		ctx, cancel := context.WithCancel(t.Context())
		leadership := &leadership{t: t, srv: srv, model: testlock.NewModel(t, srv), led: map[string]int{}}
		faults := aim.Faults(t, srv, random, simTimeout)
		var measured testzk.Metrics
		var running sync.WaitGroup
		down := random.IntN(4) == 0 // when the candidates start
		if down {
			srv.Stop()
		}
		for i := range candidates {
			r := rand.New(rand.NewPCG(random.Uint64(), 0))
			c := &candidate{t: t, leadership: leadership, name: fmt.Sprintf("c%d", i), random: r}
			c.kazoo = i == 0
			c.connect(srv, &measured)
			running.Go(func() { stand(ctx, c) })
		}
		if down {
			time.Sleep(time.Duration(random.Int64N(int64(4 * simTimeout))))
			require.NoError(t, srv.Start())
		}
		for range faultsInARun {
			leadership.electsWithin(patience)
			for range 1 + random.IntN(3) {
				time.Sleep(time.Duration(random.Int64N(int64(2 * time.Second))))
				leadership.harm(faults, random)
			}
			srv.ResetFaults()
		}
		leadership.electsWithin(patience)
		leadership.allLead(candidates)
		cancel()
		running.Wait()
		time.Sleep(2 * simTimeout)
		require.NotContains(t, srv.Tree(), "_c_", "a node is left")
		require.Empty(t, measured.Levels())
	})
}

// harm applies a random fault to a candidate, its node, the parents or the server, and waits for
// the end of the fault.
func (o *leadership) harm(faults *testlock.Faults, random *rand.Rand) {
	c := o.srv.Client(fmt.Sprintf("c%d", random.IntN(candidates)))
	switch random.IntN(11) {
	case 0:
		o.model.Expire(c)
	case 1:
		o.model.DeleteNode(random, electionPath)
	case 2:
		o.model.ChangeNode(random, electionPath)
	case 3:
		top := []string{electionPath, "/service"}[random.IntN(2)]
		o.model.Take(func() { _ = o.srv.Delete(top) }) // and all nodes below it; fails if there are none
	case 4:
		o.srv.Stop()
		time.Sleep(time.Duration(random.Int64N(int64(2 * simTimeout))))
		if random.IntN(3) == 0 {
			o.model.Take(func() { require.NoError(o.t, o.srv.Wipe()) })
			o.model.Forget() // the transaction ids start again
		}
		require.NoError(o.t, o.srv.Start())
	default:
		time.Sleep(faults.Strike(c))
	}
}

// leadership is the state that one candidate at a time may own.
type leadership struct {
	t     *testing.T
	srv   *zktest.Server
	model *testlock.Model

	mu  sync.Mutex
	led map[string]int // number of terms by candidate
}

func (o *leadership) enter(name string, t *leader.Term) {
	use := testlock.Use{Nodes: []string{t.Path()}, Token: t.Token(), Err: t.Err}
	if o.model.Begin(use) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.led[name]++
	}
}

// electsWithin waits until a candidate leads.
func (o *leadership) electsWithin(limit time.Duration) {
	o.eventually(limit, "no candidate leads", func() bool { return o.model.Valids() > 0 })
}

// allLead waits until n candidates have led.
func (o *leadership) allLead(n int) {
	o.eventually(time.Minute, "a candidate never leads", func() bool { return len(o.led) == n })
}

func (o *leadership) eventually(limit time.Duration, failure string, cond func() bool) {
	o.t.Helper()
	met := func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return cond()
	}
	for end := time.Now().Add(limit); !met(); time.Sleep(10 * time.Millisecond) {
		require.True(o.t, time.Now().Before(end), "%s after %v; terms: %v; queue: %v",
			failure, limit, o.led, o.model.Nodes(electionPath))
	}
}

type candidate struct {
	t          *testing.T
	leadership *leadership
	name       string
	random     *rand.Rand
	client     *framework.Client
	kazoo      bool // it uses kazoo's names if it is an Election
}

func (c *candidate) connect(srv *zktest.Server, measured metrics.Metrics) {
	// A client that gives up its retries must stay a candidate.
	persistence := []retry.Policy{retry.Never(), retry.Times(20, 100*time.Millisecond)}
	c.client = testlock.Client(c.t, srv.Client(c.name), srv.MemAddr(), c.random, simTimeout,
		framework.WithRetry(persistence[c.random.IntN(len(persistence))]), framework.WithMetrics(measured))
}

// lead works for a while and ends in a random way.
func (c *candidate) lead(ctx context.Context, t *leader.Term) error {
	c.leadership.enter(c.name, t)
	select {
	case <-time.After(time.Duration(c.random.Int64N(int64(time.Second)))):
	case <-ctx.Done():
		time.Sleep(time.Duration(c.random.Int64N(int64(100 * time.Millisecond))))
		return context.Cause(ctx)
	}
	switch c.random.IntN(4) {
	case 0:
		return errors.New("failed")
	case 1:
		_ = t.Resign()
	}
	return nil
}

func electionCandidate(ctx context.Context, c *candidate) {
	e, err := leader.New(c.client, electionPath, map[bool][]leader.Option{true: {leader.WithKazooNames()}}[c.kazoo]...)
	require.NoError(c.t, err)
	alone := make(chan struct{}, 1)
	err = e.Run(ctx, func(ctx context.Context, t *leader.Term) error {
		select {
		case alone <- struct{}{}:
		default:
			c.t.Error("calls of lead overlap")
		}
		defer func() { <-alone }()
		return c.lead(ctx, t)
	})
	if !errors.Is(err, context.Canceled) {
		c.t.Errorf("%s is no candidate any more: %v", c.name, err)
	}
}

func latchCandidate(ctx context.Context, c *candidate) {
	l, err := leader.NewLatch(c.client, electionPath)
	require.NoError(c.t, err)
	require.NoError(c.t, l.Start(ctx))
	for {
		t, err := l.Await(ctx)
		if err != nil {
			if ctx.Err() == nil {
				c.t.Errorf("%s is no candidate any more: %v", c.name, err)
			}
			break
		}
		_ = c.lead(t.Context(ctx), t)
		_ = t.Resign()
	}
	_ = l.Close()
}
