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
	"github.com/docent-zk/docent/zktest/sim"
)

const (
	candidates   = 3
	simTimeout   = 4 * time.Second
	faultsInARun = 8
	electionPath = "/service/leader"
	// patience is how long after the end of all faults somebody leads again.
	patience = simTimeout + 2*time.Second
)

// Whatever happens to connections, sessions, nodes and servers: never two valid terms at a time, a larger token with each, a leader within
// the session timeout and two seconds after each time that everything is well again, everybody's turn comes, and nothing is left behind.
func TestSimulatedElections(t *testing.T) { sim.Run(t, 100, simulate(standElection)) }

func TestSimulatedLatches(t *testing.T) { sim.Run(t, 100, simulate(standLatch)) }

// simulate is the scenario for candidates that stand until ctx ends.
func simulate(stand func(ctx context.Context, c *candidate)) sim.Scenario {
	return func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		ctx, cancel := context.WithCancel(t.Context())
		office := &office{t: t, srv: srv, void: map[string]bool{}, led: map[string]int{}}
		var measured testzk.Metrics
		var running sync.WaitGroup
		down := random.IntN(4) == 0 // at the beginning
		if down {
			srv.Stop()
		}
		for i := range candidates {
			c := &candidate{t: t, office: office, name: fmt.Sprintf("c%d", i), random: rand.New(rand.NewPCG(random.Uint64(), 0))}
			c.kazoo = i == 0
			c.connect(srv, &measured)
			running.Go(func() { stand(ctx, c) })
		}
		if down {
			time.Sleep(time.Duration(random.Int64N(int64(4 * simTimeout))))
			require.NoError(t, srv.Start())
		}
		for range faultsInARun {
			office.electsWithin(patience)
			for range 1 + random.IntN(3) {
				time.Sleep(time.Duration(random.Int64N(int64(2 * time.Second))))
				harm(srv, office, random)
			}
			srv.ResetFaults()
		}
		office.electsWithin(patience)
		office.everybodysTurn(candidates)
		cancel()
		running.Wait()
		time.Sleep(2 * simTimeout)
		require.NotContains(t, srv.Tree(), "_c_", "a node is left")
		require.Empty(t, measured.Levels())
	}
}

// harm does one thing to a candidate, its node, the parents, or the server.
func harm(srv *zktest.Server, o *office, random *rand.Rand) {
	c := srv.Client(fmt.Sprintf("c%d", random.IntN(candidates)))
	ops := []zktest.Op{zktest.OpCreate, zktest.OpMulti, zktest.OpDelete, zktest.OpGetData, zktest.OpGetChildren2, zktest.OpSync, zktest.AnyOp}
	match := zktest.Match{Client: c.Name(), Op: ops[random.IntN(len(ops))]}
	switch random.IntN(11) {
	case 0:
		c.Drop()
	case 1:
		c.Reset()
	case 2:
		srv.On(match, zktest.DropBefore())
	case 3:
		srv.On(match, zktest.DropAfter())
	case 4:
		srv.On(match, zktest.Delay(time.Duration(random.Int64N(int64(simTimeout)))))
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
		if line := o.line(); len(line) > 0 {
			o.takeAway(func() { require.NoError(o.t, srv.Delete(electionPath+"/"+line[random.IntN(len(line))])) })
		}
	case 9:
		o.takeAway(func() {
			for _, node := range o.line() {
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

// office is what one candidate at a time may have.
type office struct {
	t   *testing.T
	srv *zktest.Server

	mu    sync.Mutex
	term  *leader.Term
	token int64
	void  map[string]bool // the nodes that were taken away out of the blue: nobody can know before being told
	led   map[string]int  // terms, by candidate
}

// line is the nodes in line, in an order that does not depend on chance.
func (o *office) line() []string {
	line, _ := o.srv.Children(electionPath)
	slices.SortFunc(line, func(a, b string) int { return strings.Compare(a[len(a)-10:], b[len(b)-10:]) })
	return line
}

// takeAway makes nodes go that belong to somebody, and transaction ids start anew if they do.
func (o *office) takeAway(action func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := o.line()
	action()
	after := o.line()
	for _, node := range before {
		o.void[node] = o.void[node] || !slices.Contains(after, node)
	}
	if !o.srv.Exists("/service") {
		o.token = 0 // perhaps
	}
}

// valid says whether a term should be valid, and believes so. It needs mu.
func (o *office) valid(t *leader.Term) bool {
	return t.Err() == nil && !o.void[path.Base(t.Path())]
}

func (o *office) enter(name string, t *leader.Term) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.valid(t) {
		return
	}
	if o.valid(o.term) {
		o.t.Errorf("%s leads with %d while somebody else does with %d", name, t.Token(), o.term.Token())
	}
	if t.Token() <= o.token {
		o.t.Errorf("token %d after %d", t.Token(), o.token)
	}
	o.term, o.token = t, t.Token()
	o.led[name]++
}

// electsWithin waits until somebody leads.
func (o *office) electsWithin(limit time.Duration) {
	o.eventually(limit, "nobody leads", func() bool { return o.valid(o.term) })
}

// everybodysTurn waits until all of so many candidates have led.
func (o *office) everybodysTurn(n int) {
	o.eventually(time.Minute, "somebody never leads", func() bool { return len(o.led) == n })
}

func (o *office) eventually(limit time.Duration, failure string, cond func() bool) {
	o.t.Helper()
	met := func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return cond()
	}
	for end := time.Now().Add(limit); !met(); time.Sleep(10 * time.Millisecond) {
		require.True(o.t, time.Now().Before(end), "%s after %v; terms: %v; line: %v", failure, limit, o.led, o.line())
	}
}

type candidate struct {
	t      *testing.T
	office *office
	name   string
	random *rand.Rand
	client *framework.Client
	kazoo  bool // it has kazoo's names, where there are any, which makes no difference
}

func (c *candidate) connect(srv *zktest.Server, measured metrics.Metrics) {
	persistence := []retry.Policy{retry.Never(), retry.Times(20, 100*time.Millisecond)} // to give up is not to be out of the race
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

// lead works for a while, and ends in one of the ways there are.
func (c *candidate) lead(ctx context.Context, t *leader.Term) error {
	c.office.enter(c.name, t)
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

func standElection(ctx context.Context, c *candidate) {
	e, err := leader.New(c.client, electionPath, map[bool][]leader.Option{true: {leader.WithKazooNames()}}[c.kazoo]...)
	require.NoError(c.t, err)
	alone := make(chan struct{}, 1)
	err = e.Run(ctx, func(ctx context.Context, t *leader.Term) error {
		select {
		case alone <- struct{}{}:
		default:
			c.t.Error("lead overlaps with itself")
		}
		defer func() { <-alone }()
		return c.lead(ctx, t)
	})
	if !errors.Is(err, context.Canceled) {
		c.t.Errorf("%s is out of the race: %v", c.name, err)
	}
}

func standLatch(ctx context.Context, c *candidate) {
	l, err := leader.NewLatch(c.client, electionPath)
	require.NoError(c.t, err)
	require.NoError(c.t, l.Start(ctx))
	for {
		t, err := l.Await(ctx)
		if err != nil {
			if ctx.Err() == nil {
				c.t.Errorf("%s is out of the race: %v", c.name, err)
			}
			break
		}
		_ = c.lead(t.Context(ctx), t)
		_ = t.Resign()
	}
	_ = l.Close()
}
