package discovery_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/recipes/discovery"
	"github.com/docent-zk/docent/recipes/persistent"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

const (
	simTimeout = 4 * time.Second
	simClients = 3
	simEach    = 2 // instances of a client
	simFaults  = 12
	simUses    = 6 // of an instance
	// quiet is long enough for everything that the faults have caused.
	quiet = 3*simTimeout + 5*time.Second
)

// Networks flap, sessions are lost, servers restart, and instances are updated, unregistered and
// registered again, perhaps with another type. When that is over, each view has exactly the
// instances that are registered, with their last data. The events of a view lead to its content.
func TestSimulatedInstances(t *testing.T) {
	sim.Run(t, 100, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		connect := sim.Ensemble(srv, random, random.IntN(3))
		w := &world{t: t, views: map[*discovery.View]*content{}}
		for c := range simClients {
			w.addClient(srv, random, fmt.Sprintf("c%d", c), connect)
		}
		for range 2 {
			w.disturb(srv, random)
			time.Sleep(quiet)
			w.check()
		}
	})
}

// world is all instances and views.
type world struct {
	t     *testing.T
	all   []*simInstance
	views map[*discovery.View]*content
}

// simInstance is an instance that is registered again and again.
type simInstance struct {
	registry *discovery.Registry
	instance discovery.Instance
	self     *discovery.Registration // nil: not registered
}

var simTypes = []discovery.Type{discovery.Dynamic, discovery.Dynamic, discovery.Static, discovery.DynamicSequential}

func (w *world) addClient(srv *zktest.Server, random *rand.Rand, name, connect string) {
	c := testlock.Client(w.t, srv.Client(name), connect, random, simTimeout,
		framework.WithRetry(retry.Times(20, 100*time.Millisecond)))
	r := newRegistry(w.t, c, "/services")
	for n := range simEach {
		w.all = append(w.all, &simInstance{registry: r, instance: orders(fmt.Sprint(name, n))})
	}
	v, err := r.View("orders")
	require.NoError(w.t, err)
	w.t.Cleanup(v.Close)
	w.views[v] = &content{t: w.t, of: map[*discovery.Instance]bool{}}
	v.Listen(w.views[v].apply)
}

// disturb makes faults while the instances are used.
func (w *world) disturb(srv *zktest.Server, random *rand.Rand) {
	var using sync.WaitGroup
	for _, i := range w.all {
		random := rand.New(rand.NewPCG(random.Uint64(), 2))
		using.Go(func() { i.use(w.t, random) })
	}
	srv.On(fault.Match{Op: fault.OpDelete, Times: random.IntN(30)}, fault.Fail(zktest.Throttled))
	testlock.DisturbEnsemble(srv, random, simClients, simFaults/2, simTimeout)
	for _, s := range srv.Client(fmt.Sprintf("c%d", random.IntN(simClients))).Sessions() {
		_ = s.Expire()
	}
	bad := fmt.Sprint("/services/orders/bad", random.IntN(3))
	_ = srv.Create(bad, []byte("10.0.0.3")) // fails if there are no parents
	testlock.DisturbEnsemble(srv, random, simClients, simFaults/2, simTimeout)
	using.Wait()
}

// use registers, updates and unregisters an instance.
func (s *simInstance) use(t *testing.T, random *rand.Rand) {
	for range simUses {
		time.Sleep(time.Duration(random.Int64N(int64(simTimeout / 2))))
		switch {
		case s.self == nil:
			s.instance.Payload = fmt.Append(nil, random.Uint32())
			s.instance.Type = simTypes[random.IntN(len(simTypes))]
			self, err := s.registry.Register(s.instance, persistent.WithOccupiedTimeout(persistent.NoLimit))
			if err != nil {
				t.Errorf("register %v: %v", &s.instance, err)
				return
			}
			s.self = self
		case random.IntN(3) == 0:
			if err := s.self.Close(); err != nil && !errors.Is(err, discovery.ErrPending) {
				t.Errorf("close %v: %v", &s.instance, err)
			}
			s.self = nil
		default:
			i := s.self.Instance()
			i.Payload, i.Disabled = fmt.Append(nil, random.Uint32()), random.IntN(2) == 0
			if err := s.self.SetInstance(i); err != nil {
				t.Errorf("update %v: %v", &s.instance, err)
			}
		}
	}
}

// check checks all views when nothing has happened for some time.
func (w *world) check() {
	want := []string{}
	for _, s := range w.all {
		if s.self != nil {
			require.NoError(w.t, s.self.Err())
			require.NotEmpty(w.t, s.self.Path())
			want = append(want, describe(w.t, s.self.Instance()))
		}
	}
	slices.Sort(want)
	for v, events := range w.views {
		require.NoError(w.t, v.WaitReady(w.t.Context()))
		synctest.Wait()
		require.Equal(w.t, want, describeAll(w.t, v.Instances()))
		require.Equal(w.t, want, events.describe())
		for path, err := range v.Unreadable() {
			require.ErrorIs(w.t, err, discovery.ErrUnreadable, path)
		}
		_, stale := v.StaleSince()
		require.False(w.t, stale)
	}
	read, err := w.all[0].registry.Instances(w.t.Context(), "orders")
	require.NoError(w.t, err)
	require.Equal(w.t, want, describeAll(w.t, read))
}

func describe(t *testing.T, i discovery.Instance) string {
	text, err := i.MarshalJSON()
	require.NoError(t, err)
	return string(text)
}

func describeAll(t *testing.T, all []*discovery.Instance) []string {
	list := []string{}
	for _, i := range all {
		list = append(list, describe(t, *i))
	}
	slices.Sort(list)
	return list
}

// content is what the events of a view lead to.
type content struct {
	t  *testing.T
	mu sync.Mutex
	of map[*discovery.Instance]bool
}

func (c *content) apply(e discovery.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.Old != nil {
		if !c.of[e.Old] {
			c.t.Errorf("%v of an instance that no event has shown: %v", e.Kind, e.Old)
		}
		delete(c.of, e.Old)
	}
	if e.New != nil {
		c.of[e.New] = true
	}
}

func (c *content) describe() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*discovery.Instance
	for i := range c.of {
		all = append(all, i)
	}
	return describeAll(c.t, all)
}
