package multilock_test

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
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

const (
	contenders   = 4
	turns        = 4 // each contender gets its locks so often
	simTimeout   = 4 * time.Second
	faultsInARun = 8
)

var simPaths = []string{"/a", "/b", "/c"}

// Contenders acquire different sets of the locks in different orders. Faults of connections and
// sessions leave one holder of each lock at a time and growing tokens. Every contender gets its
// locks, and no node is left.
func TestSimulatedContenders(t *testing.T) {
	sim.Run(t, 50, simulate)
}

func simulate(t *testing.T, srv *zktest.Server, random *rand.Rand) {
	resource := &resource{t: t, expelled: map[string]int64{}, uses: map[string]use{}}
	var measured testzk.Metrics
	var running sync.WaitGroup
	for i := range contenders {
		c := &contender{t: t, resource: resource, name: fmt.Sprintf("c%d", i)}
		c.random = rand.New(rand.NewPCG(random.Uint64(), 0))
		c.connect(srv, &measured)
		running.Go(c.run)
	}
	for range faultsInARun {
		time.Sleep(time.Duration(random.Int64N(int64(2 * time.Second))))
		if c := srv.Client(fmt.Sprintf("c%d", random.IntN(contenders))); random.IntN(8) == 0 {
			resource.expel(srv, c)
		} else {
			harm(srv, c, random)
		}
	}
	running.Wait()
	time.Sleep(2 * simTimeout) // background work that is still pending after this would never end
	for _, path := range simPaths {
		children, err := srv.Children(path)
		require.NoError(t, err)
		require.Empty(t, children, path)
	}
	require.Empty(t, measured.Levels())
}

// One node of a waiter is deleted when a holder ahead of its other node releases. So the waiter
// handles both events at once.
func TestNodesAreDeletedWhileTheyAreExamined(t *testing.T) {
	sim.Run(t, 20, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		connect := func(name string) *framework.Client {
			return testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client(name).DialContext))
		}
		other, waiting := connect("other"), connect("waiter")
		first, second := acquire(t, newMutex(t, other, "/a")), acquire(t, newMutex(t, other, "/b"))
		next := start(t, newMutex(t, other, "/a"))
		time.Sleep(time.Second)
		waiter := start(t, newMulti(t, waiting, []string{"/a", "/b"}))
		time.Sleep(time.Second)
		queue := queued(t, other, "/b", 2)
		require.NoError(t, srv.Delete(queue[1].Node))
		require.NoError(t, first.Release())
		time.Sleep(time.Second)
		require.NoError(t, errors.Join(second.Release(), next.won(t).Release()))
		require.NoError(t, waiter.won(t).Release())
	})
}

// harm applies a random fault to a client. Its effect ends before a session would expire.
func harm(srv *zktest.Server, c *zktest.Client, random *rand.Rand) {
	ops := []fault.Op{
		fault.OpMulti, fault.OpMulti, fault.OpDelete, fault.OpGetChildren2, fault.OpGetData,
		fault.OpSync, fault.AnyOp,
	}
	match := fault.Match{Client: c.Name(), Op: ops[random.IntN(len(ops))]}
	switch random.IntN(8) {
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
		time.AfterFunc(time.Duration(random.Int64N(int64(2*simTimeout))), c.Heal)
	case 6:
		c.HoldEvents()
		time.AfterFunc(time.Duration(random.Int64N(int64(simTimeout))), c.ReleaseEvents)
	case 7:
		deleteWaiter(srv, random)
	}
}

// deleteWaiter deletes the last node of a queue, as an operator might.
func deleteWaiter(srv *zktest.Server, random *rand.Rand) {
	path := simPaths[random.IntN(len(simPaths))]
	if queue, err := srv.Children(path); err == nil && len(queue) > 1 {
		last := queue[0]
		for _, name := range queue {
			if name[len(name)-10:] > last[len(last)-10:] {
				last = name
			}
		}
		_ = srv.Delete(path + "/" + last)
	}
}

type contender struct {
	t        *testing.T
	resource *resource
	name     string
	random   *rand.Rand
	client   *framework.Client
}

func (c *contender) connect(srv *zktest.Server, metrics metrics.Metrics) {
	client, err := framework.New(srv.MemAddr(),
		framework.WithDialer(srv.Client(c.name).DialContext),
		framework.WithSessionTimeout(simTimeout),
		framework.WithMetrics(metrics),
		framework.WithRandom(rand.New(rand.NewPCG(c.random.Uint64(), 1)).Int64N),
		framework.WithRetry(retry.Forever(100*time.Millisecond)))
	require.NoError(c.t, err)
	c.t.Cleanup(func() { require.NoError(c.t, client.Close()) })
	c.client = client
}

// want returns some of the locks in random order, and a lock of them made in one of the possible
// ways.
func (c *contender) want() (paths []string, lock recipes.Locker) {
	for _, i := range c.random.Perm(len(simPaths))[:1+c.random.IntN(len(simPaths))] {
		paths = append(paths, simPaths[i])
	}
	if len(paths) == 1 && c.random.IntN(2) == 0 {
		return paths, newMutex(c.t, c.client, paths[0])
	}
	return paths, newMulti(c.t, c.client, paths)
}

func (c *contender) run() {
	for done := 0; done < turns; {
		paths, lock := c.want()
		hold, err := lock.Acquire(context.Background())
		if err != nil {
			continue
		}
		c.resource.use(c.name, paths, hold)
		select {
		case <-time.After(time.Duration(c.random.Int64N(int64(time.Second)))):
		case <-hold.Done():
		}
		c.resource.leave(paths, hold)
		_ = hold.Release()
		done++
	}
}

// resource is the state that the locks protect.
type resource struct {
	t        *testing.T
	mu       sync.Mutex
	uses     map[string]use
	expelled map[string]int64 // the last transaction in which the test expired the client's sessions
}

// use is the last use of a path.
type use struct {
	owner string
	hold  *recipes.Hold // nil after its release
	token int64
}

// expel expires all sessions of a client. The client cannot know it at once, so its holds do not
// count from then on.
func (g *resource) expel(srv *zktest.Server, c *zktest.Client) {
	for _, s := range c.Sessions() {
		_ = s.Expire()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	last := srv.Trace().Tail(1).Entries
	g.expelled[c.Name()] = last[0].Zxid
}

// valid reports whether a hold is valid and its session was not expired by the test.
func (g *resource) valid(s use) bool {
	return s.hold != nil && s.hold.Err() == nil && s.token > g.expelled[s.owner]
}

func (g *resource) use(owner string, paths []string, h *recipes.Hold) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, path := range paths {
		now, before := use{owner, h, h.Tokens()[i]}, g.uses[path]
		if !g.valid(now) {
			continue
		}
		if g.valid(before) {
			g.t.Errorf("%s: token %d of %s while %s holds with %d", path, now.token, owner, before.owner, before.token)
		}
		if now.token <= before.token {
			g.t.Errorf("%s: token %d after %d", path, now.token, before.token)
		}
		g.uses[path] = now
	}
}

func (g *resource) leave(paths []string, h *recipes.Hold) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, path := range paths {
		if s := g.uses[path]; s.hold == h {
			g.uses[path] = use{token: s.token}
		}
	}
}
