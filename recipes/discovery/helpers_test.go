package discovery_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/discovery"
	"github.com/docent-zk/docent/recipes/persistent"
)

func newRegistry(t testing.TB, c *framework.Client, base string) *discovery.Registry {
	t.Helper()
	r, err := discovery.New(c, base)
	require.NoError(t, err)
	return r
}

// orders returns an instance of the service orders.
func orders(id string) discovery.Instance {
	return discovery.Instance{Name: "orders", ID: id, Address: "10.0.0.3", Port: 8080}
}

// register registers an instance until the test ends, and waits until it is registered.
func register(
	t testing.TB, r *discovery.Registry, i discovery.Instance, opts ...persistent.Option,
) *discovery.Registration {
	t.Helper()
	self, err := r.Register(i, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = self.Close() })
	require.NoError(t, self.WaitReady(testzk.Context(t)))
	return self
}

// watch returns a view of the service orders that is ready.
func watch(t testing.TB, r *discovery.Registry) *discovery.View {
	t.Helper()
	v, err := r.View("orders")
	require.NoError(t, err)
	t.Cleanup(v.Close)
	require.NoError(t, v.WaitReady(testzk.Context(t)))
	return v
}

func newProvider(t testing.TB, v *discovery.View, opts ...discovery.Option) *discovery.Provider {
	t.Helper()
	p, err := discovery.NewProvider(v, opts...)
	require.NoError(t, err)
	return p
}

func ids(all []*discovery.Instance) []string {
	list := []string{}
	for _, i := range all {
		list = append(list, i.ID)
	}
	slices.Sort(list)
	return list
}

// shows waits until the view has instances with these IDs, in any order.
func shows(t testing.TB, v *discovery.View, want ...string) {
	t.Helper()
	done := func() bool { return slices.Equal(ids(v.Instances()), want) }
	testzk.Eventually(t, done, "the view does not show %q", want)
}

// recorder records the events of a view.
type recorder struct {
	mu  sync.Mutex
	all []string
}

func (r *recorder) add(e discovery.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := e.Kind.String()
	if e.Old != nil {
		text += " old " + e.Old.ID + string(e.Old.Payload)
	}
	if e.New != nil {
		text += " new " + e.New.ID + string(e.New.Payload)
	}
	r.all = append(r.all, text)
}

func (r *recorder) events() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all)
}

// The helpers of all recipes.
var (
	virtually = testlock.Virtually
	client    = testlock.Named
	settle    = testlock.Rest
	outage    = testlock.Outage
)
