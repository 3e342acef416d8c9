package persistent_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/persistent"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

const (
	simTimeout = 4 * time.Second
	simClients = 3
	simRounds  = 4
	simFaults  = 4 // of a round
	dir        = "/services/orders"
	shared     = dir + "/shared"
	// theirs is the data of a node of another program. Nothing here may change or delete it.
	theirs = "theirs"
	// quiet is long enough for everything that the faults have caused.
	quiet = 3*simTimeout + 5*time.Second
)

// Networks flap, sessions are lost, other clients delete and overwrite nodes, and nodes are closed
// and made again. When that is over, each node that is kept is there once, with its last data, and
// no closed node is. A node of another program is never touched. The Nodes of one path may have
// different modes, one after another.
func TestSimulatedNodes(t *testing.T) {
	aim := testlock.NewAim(t, fault.OpCreate, fault.OpSetData, fault.OpDelete, fault.OpGetData, fault.OpExists,
		fault.OpSetWatches, fault.OpConnect, fault.AnyOp)
	sim.Run(t, 100, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		connect := srv.MemAddr()
		if random.IntN(2) == 0 {
			connect = sim.Ensemble(srv, random, 2)
		}
		var measured testzk.Metrics
		w := &world{t: t, srv: srv, random: random, nodes: map[string]*simNode{}}
		w.faults = aim.Faults(t, srv, random, simTimeout)
		for i := range simClients {
			w.connect(fmt.Sprintf("c%d", i), connect, &measured)
		}
		for range simRounds {
			w.disturb()
			time.Sleep(quiet)
			w.check()
		}
		for _, name := range w.names() {
			_ = w.nodes[name].Close()
		}
		time.Sleep(quiet)
		require.Empty(t, nodes(srv))
		require.Empty(t, measured.Levels())
	})
}

// world is the nodes of all clients.
type world struct {
	t      *testing.T
	srv    *zktest.Server
	random *rand.Rand
	faults *testlock.Faults

	mu    sync.Mutex
	nodes map[string]*simNode
	count int
}

// simNode is a Node that one client keeps, and makes again.
type simNode struct {
	*persistent.Node
	client *framework.Client
	link   string
	path   string
	mode   string // a key of modes
	varies bool   // each Node has another mode
	text   string
	closed bool
	cancel context.CancelFunc // of the context of Start
}

// simModes are the modes of the nodes of a client. The first ones have a fixed path.
var simModes = []string{"ephemeral", "container", "persistent", "ttl", "protected", "sequential"}

const fixedModes = 4

func (w *world) connect(name, connect string, measured *testzk.Metrics) {
	policies := []retry.Policy{retry.Never(), retry.Times(20, 100*time.Millisecond)}
	c, err := framework.New(connect,
		framework.WithRetry(policies[w.random.IntN(len(policies))]),
		framework.WithDialer(w.srv.Client(name).DialContext),
		framework.WithSessionTimeout(simTimeout),
		framework.WithMetrics(measured),
		framework.WithRandom(rand.New(rand.NewPCG(w.random.Uint64(), 1)).Int64N))
	require.NoError(w.t, err)
	w.t.Cleanup(func() { require.NoError(w.t, c.Close()) })
	for _, n := range []*simNode{
		{path: dir + "/" + name, mode: simModes[w.random.IntN(len(simModes))]},
		{path: dir + "/" + name + "-ephemeral", mode: "ephemeral"},
		{path: dir + "/" + name + "-varies", varies: true},
		{path: shared, mode: "ephemeral"}, // of all clients: one has it, the others wait
	} {
		n.client, n.link = c, name
		w.nodes[name+" "+n.path] = n
		w.start(n, w.random)
	}
}

// kind returns what Server.Tree says of the mode.
func (n *simNode) kind() string {
	switch n.mode {
	case "persistent":
		return ""
	case "container":
		return " container"
	case "ttl":
		return fmt.Sprintf(" ttl %dms", ttl.Milliseconds())
	}
	return " ephemeral of " + n.link
}

func (w *world) names() (names []string) {
	for name := range w.nodes {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (w *world) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count++
	return fmt.Sprint("data ", w.count)
}

func (w *world) start(n *simNode, random *rand.Rand) {
	var err error
	n.text, n.closed = w.text(), false
	if n.varies {
		n.mode = simModes[random.IntN(fixedModes)]
	}
	opts := append(slices.Clone(modes[n.mode]), persistent.WithOccupiedTimeout(persistent.NoLimit))
	n.Node, err = persistent.New(n.client, n.path, []byte(n.text), opts...)
	require.NoError(w.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	w.t.Cleanup(cancel)
	n.cancel = cancel
	require.NoError(w.t, n.Start(ctx))
}

// disturb makes faults, and uses the nodes meanwhile.
func (w *world) disturb() {
	var using sync.WaitGroup
	for _, name := range w.names() {
		random := rand.New(rand.NewPCG(w.random.Uint64(), 0))
		using.Go(func() { w.use(w.nodes[name], random) })
	}
	for range simFaults {
		time.Sleep(time.Duration(w.random.Int64N(int64(2 * time.Second))))
		w.harm()
	}
	using.Wait()
	sim.Calm(w.srv)
	w.srv.ResetFaults()
}

// use sets the data of a node, closes it and makes it again.
func (w *world) use(n *simNode, random *rand.Rand) {
	for range 4 {
		time.Sleep(time.Duration(random.Int64N(int64(3 * time.Second))))
		switch random.IntN(4) {
		case 0:
			if n.closed {
				continue
			}
			n.closed = true
			if random.IntN(2) == 0 {
				if n.cancel(); random.IntN(2) == 0 {
					w.start(n, random)
				}
				continue
			}
			if err := n.Close(); err != nil && !errors.Is(err, persistent.ErrPending) {
				w.t.Errorf("close %s: %v", n.path, err)
			}
		case 1:
			if n.closed {
				w.start(n, random)
			}
		default:
			if !n.closed {
				n.text = w.text()
				if err := n.SetData([]byte(n.text)); err != nil {
					w.t.Errorf("set %s: %v", n.path, err)
				}
			}
		}
	}
}

// harm makes a random fault.
func (w *world) harm() {
	srv, random := w.srv, w.random
	c := srv.Client(fmt.Sprintf("c%d", random.IntN(simClients)))
	switch random.IntN(13) {
	case 0:
		for _, s := range c.Sessions() {
			_ = s.Expire()
		}
	case 1:
		if all := nodes(srv); len(all) > 0 {
			_ = srv.Delete(all[random.IntN(len(all))])
		}
	case 2:
		if all := nodes(srv); len(all) > 0 {
			_ = srv.Set(all[random.IntN(len(all))], []byte("nonsense"))
		}
	case 3:
		sim.Disturb(srv, random, simTimeout)
	case 4:
		w.intrude(c, time.Duration(random.Int64N(int64(2*simTimeout))))
	case 5:
		refused := fault.Match{Op: fault.OpDelete, Client: c.Name(), Times: 1 + random.IntN(10)}
		srv.On(refused, fault.Fail(zktest.Throttled))
	default:
		w.faults.Strike(c)
	}
}

// intrude makes a node of another program at a path of a client whose session has just expired.
func (w *world) intrude(c *zktest.Client, length time.Duration) {
	for _, s := range c.Sessions() {
		_ = s.Expire()
	}
	at := dir + "/" + c.Name() + "-ephemeral"
	if w.srv.Create(at, []byte(theirs)) != nil {
		return // there are no parents
	}
	time.Sleep(length)
	require.Equal(w.t, theirs, content(w.t, w.srv, at))
	require.NoError(w.t, w.srv.Delete(at))
}

// check checks all nodes when nothing has happened for some time.
func (w *world) check() {
	var want []string
	sharers := 0
	for _, name := range w.names() {
		n := w.nodes[name]
		if n.closed {
			require.ErrorIs(w.t, n.Err(), persistent.ErrClosed)
			require.NoError(w.t, n.Close())
			continue
		}
		require.NoError(w.t, n.Err())
		if n.path == shared {
			if sharers++; n.Path() == "" {
				continue
			}
		}
		require.NoError(w.t, n.WaitReady(testzk.Context(w.t)))
		require.Contains(w.t, w.srv.Tree(), fmt.Sprintf("\n%s %q%s\n", n.Path(), n.text, n.kind()))
		want = append(want, n.Path())
	}
	slices.Sort(want)
	got := nodes(w.srv)
	slices.Sort(got)
	require.Equal(w.t, want, got)
	require.Equal(w.t, sharers > 0, slices.Contains(got, shared))
}
