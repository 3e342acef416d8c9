package mutex_test

import (
	"context"
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
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

const (
	contenders   = 3
	turns        = 4 // each contender gets the lock so often
	simTimeout   = 4 * time.Second
	faultsInARun = 8
)

// Faults of connections and sessions leave one holder at a time and growing tokens. Every contender
// gets the lock, and no node is left.
func TestSimulatedContenders(t *testing.T) {
	sim.Repeat(t, 100, simulate)
}

func simulate(t *testing.T, srv *zktest.Server, random *rand.Rand) {
	resource := &resource{t: t, expelled: map[string]int64{}}
	var measured testzk.Metrics
	var running sync.WaitGroup
	for i, opts := range [contenders][]mutex.Option{{mutex.WithKazooNames()}} { // different names exclude each other
		c := &contender{t: t, resource: resource, metrics: &measured, name: fmt.Sprintf("c%d", i)}
		c.random = rand.New(rand.NewPCG(random.Uint64(), 0))
		c.connect(srv, opts...)
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
	require.Equal(t, "/lock container\n", srv.Tree())
	require.Empty(t, measured.Levels())
}

// harm applies a random fault to a client. Its effect ends before a session would expire.
func harm(srv *zktest.Server, c *zktest.Client, random *rand.Rand) {
	ops := []fault.Op{fault.OpCreate, fault.OpDelete, fault.OpGetChildren2, fault.OpSync, fault.AnyOp}
	match := fault.Match{Client: c.Name(), Op: ops[random.IntN(len(ops))]}
	switch random.IntN(7) {
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
	}
}

type contender struct {
	t        *testing.T
	resource *resource
	metrics  metrics.Metrics
	name     string
	random   *rand.Rand
	lock     *mutex.Mutex
}

func (c *contender) connect(srv *zktest.Server, opts ...mutex.Option) {
	client, err := framework.New(srv.MemAddr(),
		framework.WithDialer(srv.Client(c.name).DialContext),
		framework.WithSessionTimeout(simTimeout),
		framework.WithMetrics(c.metrics),
		framework.WithRandom(rand.New(rand.NewPCG(c.random.Uint64(), 1)).Int64N),
		framework.WithRetry(retry.Forever(100*time.Millisecond)))
	require.NoError(c.t, err)
	c.t.Cleanup(func() { require.NoError(c.t, client.Close()) })
	c.lock, err = mutex.New(client, "/lock", opts...)
	require.NoError(c.t, err)
}

func (c *contender) run() {
	for done := 0; done < turns; {
		hold, err := c.lock.Acquire(context.Background())
		if err != nil {
			continue
		}
		c.resource.use(c.name, hold)
		select {
		case <-time.After(time.Duration(c.random.Int64N(int64(time.Second)))):
		case <-hold.Done():
		}
		c.resource.leave(hold)
		_ = hold.Release()
		done++
	}
}

// resource is the state that the lock protects.
type resource struct {
	t        *testing.T
	mu       sync.Mutex
	holder   *recipes.Hold
	owner    string // client of holder
	token    int64
	expelled map[string]int64 // the last transaction in which the test expired the client's sessions
}

// expel expires all sessions of a client. The client cannot know it at once, so its holds do not
// count from then on.
func (r *resource) expel(srv *zktest.Server, c *zktest.Client) {
	for _, s := range c.Sessions() {
		_ = s.Expire()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	last := srv.Trace().Tail(1).Entries
	r.expelled[c.Name()] = last[0].Zxid
}

// holds reports whether a hold is valid and its session was not expired by the test.
func (r *resource) holds(owner string, h *recipes.Hold) bool {
	return h != nil && h.Err() == nil && h.Token() > r.expelled[owner]
}

func (r *resource) use(owner string, h *recipes.Hold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.holds(owner, h) {
		return
	}
	if r.holds(r.owner, r.holder) {
		r.t.Errorf("token %d of %s while %s holds with %d", h.Token(), owner, r.owner, r.holder.Token())
	}
	if h.Token() <= r.token {
		r.t.Errorf("token %d after %d", h.Token(), r.token)
	}
	r.holder, r.owner, r.token = h, owner, h.Token()
}

func (r *resource) leave(h *recipes.Hold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.holder == h {
		r.holder = nil
	}
}
