package leader_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/framework/metrics"
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

// Faults of connections, sessions, nodes and servers leave at most one validLocked term at a time and
// growing tokens. After each end of the faults a candidate leads within the session timeout and two
// seconds. Every candidate leads at some time, and no node is left.
func TestSimulatedElections(t *testing.T) { sim.Run(t, 100, simulate(electionCandidate)) }

func TestSimulatedLatches(t *testing.T) { sim.Run(t, 100, simulate(latchCandidate)) }

// simulate returns the scenario. stand runs a candidate until ctx ends.
func simulate(stand func(ctx context.Context, c *candidate)) sim.Scenario {
	return func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		ctx, cancel := context.WithCancel(t.Context())
		leadership := &leadership{t: t, srv: srv, void: map[string]bool{}, led: map[string]int{}}
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
				harm(srv, leadership, random)
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
	}
}

// harm applies a random fault to a candidate, its node, the parents or the server.
func harm(srv *zktest.Server, o *leadership, random *rand.Rand) {
	c := srv.Client(fmt.Sprintf("c%d", random.IntN(candidates)))
	ops := []fault.Op{
		fault.OpCreate, fault.OpMulti, fault.OpDelete, fault.OpGetData, fault.OpGetChildren2,
		fault.OpSync, fault.AnyOp,
	}
	match := fault.Match{Client: c.Name(), Op: ops[random.IntN(len(ops))]}
	switch random.IntN(11) {
	case 0:
		c.Drop()
	case 1:
		c.Reset()
	case 2:
		srv.On(match, fault.DropBefore())
	case 3:
		srv.On(match, fault.DropAfter())
	case 4:
		srv.On(match, fault.Delay(time.Duration(random.Int64N(int64(simTimeout)))))
	case 5:
		c.Cut()
		time.Sleep(time.Duration(random.Int64N(int64(2 * simTimeout))))
		c.Heal()
	case 6:
		c.HoldEvents()
	case 7:
		o.takeAway(func() {
			for _, s := range c.Sessions() {
				_ = s.Expire()
			}
		})
	case 8:
		if queue := o.queue(); len(queue) > 0 {
			o.takeAway(func() { require.NoError(o.t, srv.Delete(electionPath+"/"+queue[random.IntN(len(queue))])) })
		}
	case 9:
		o.takeAway(func() {
			for _, node := range o.queue() {
				require.NoError(o.t, srv.Delete(electionPath+"/"+node))
			}
			_ = srv.Delete([]string{electionPath, "/service"}[random.IntN(2)])
		})
	case 10:
		srv.Stop()
		time.Sleep(time.Duration(random.Int64N(int64(2 * simTimeout))))
		if random.IntN(3) == 0 {
			o.takeAway(func() { require.NoError(o.t, srv.Wipe()) })
		}
		require.NoError(o.t, srv.Start())
	}
}

// leadership is the state that one candidate at a time may own.
type leadership struct {
	t   *testing.T
	srv *zktest.Server

	mu    sync.Mutex
	term  *leader.Term
	token int64
	void  map[string]bool // nodes that the test deleted: their clients cannot know it at once
	led   map[string]int  // number of terms by candidate
}

// queue returns the names of the queue's nodes in a reproducible order.
func (o *leadership) queue() []string {
	queue, _ := o.srv.Children(electionPath)
	slices.SortFunc(queue, func(a, b string) int { return strings.Compare(a[len(a)-10:], b[len(b)-10:]) })
	return queue
}

// takeAway calls action, which deletes nodes, and marks these nodes. If action may have reset the
// transaction ids, tokens may start again.
func (o *leadership) takeAway(action func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := o.queue()
	action()
	after := o.queue()
	for _, node := range before {
		o.void[node] = o.void[node] || !slices.Contains(after, node)
	}
	if !o.srv.Exists("/service") {
		o.token = 0 // the ids may have been reset
	}
}

// validLocked reports whether a term is validLocked and the test has not deleted its node.
func (o *leadership) validLocked(t *leader.Term) bool {
	return t.Err() == nil && !o.void[path.Base(t.Path())]
}

func (o *leadership) enter(name string, t *leader.Term) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.validLocked(t) {
		return
	}
	if o.validLocked(o.term) {
		o.t.Errorf("%s leads with %d while another candidate leads with %d", name, t.Token(), o.term.Token())
	}
	if t.Token() <= o.token {
		o.t.Errorf("token %d after %d", t.Token(), o.token)
	}
	o.term, o.token = t, t.Token()
	o.led[name]++
}

// electsWithin waits until a candidate leads.
func (o *leadership) electsWithin(limit time.Duration) {
	o.eventually(limit, "no candidate leads", func() bool { return o.validLocked(o.term) })
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
		require.True(o.t, time.Now().Before(end), "%s after %v; terms: %v; queue: %v", failure, limit, o.led, o.queue())
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
	var err error
	c.client, err = framework.New(srv.MemAddr(),
		framework.WithRetry(persistence[c.random.IntN(len(persistence))]),
		framework.WithDialer(srv.Client(c.name).DialContext),
		framework.WithSessionTimeout(simTimeout),
		framework.WithMetrics(measured),
		framework.WithRandom(rand.New(rand.NewPCG(c.random.Uint64(), 1)).Int64N))
	require.NoError(c.t, err)
	c.t.Cleanup(func() { require.NoError(c.t, c.client.Close()) })
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
