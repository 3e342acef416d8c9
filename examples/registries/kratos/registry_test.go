package kratosdocent

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"testing"

	kratos "github.com/go-kratos/kratos/v2"
	"github.com/go-kratos/kratos/v2/registry"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/examples/registries/internal/instances"
	"github.com/docent-zk/docent/examples/registries/internal/registrytest"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/leaks"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/discovery"
	"github.com/docent-zk/docent/zktest"
)

func TestMain(m *testing.M) { leaks.Main(m) }

const base = "/services"

func newRegistry(t testing.TB, server *zktest.Server) *Registry {
	r, err := New(registrytest.Client(t, server), base)
	require.NoError(t, err)
	return r
}

func orders(id string) *registry.ServiceInstance {
	return &registry.ServiceInstance{
		ID: id, Name: "orders", Version: "v1.2", Metadata: map[string]string{"zone": "a"},
		Endpoints: []string{"http://10.0.0.1:8080", "grpc://10.0.0.1:9090?isSecure=false"},
	}
}

// next waits for what a watcher reports, and returns the IDs.
func next(t testing.TB, w registry.Watcher) (ids []string) {
	list, err := w.Next()
	require.NoError(t, err)
	for _, i := range list {
		ids = append(ids, i.ID)
	}
	return ids
}

// comes waits until a watcher reports the state with these IDs. It may report the state before once more.
func comes(t testing.TB, w registry.Watcher, before, ids []string) {
	got := next(t, w)
	if slices.Equal(got, before) {
		got = next(t, w)
	}
	require.Equal(t, ids, got)
}

func watch(t testing.TB, r *Registry) registry.Watcher {
	w, err := r.Watch(registrytest.Context(t), "orders")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Stop()) })
	return w
}

func TestInstancesAreFoundUntilTheyAreDeregistered(t *testing.T) {
	server, ctx := zktest.Start(t), registrytest.Context(t)
	program, client := newRegistry(t, server), newRegistry(t, server)
	w := watch(t, client)

	require.NoError(t, program.Register(ctx, orders("1")))
	comes(t, w, nil, []string{"1"})
	list, err := client.GetService(ctx, "orders")
	require.NoError(t, err)
	require.Equal(t, []*registry.ServiceInstance{orders("1")}, list)
	require.Equal(t, []string{"1"}, next(t, watch(t, client)), "a watcher begins with what is there")

	require.NoError(t, program.Register(ctx, orders("2")))
	comes(t, w, []string{"1"}, []string{"1", "2"})
	require.NoError(t, program.Deregister(ctx, orders("1")))
	comes(t, w, []string{"1", "2"}, []string{"2"})
	require.ErrorIs(t, program.Deregister(ctx, orders("1")), instances.ErrNotRegistered)
	require.NoError(t, program.Deregister(ctx, orders("2")))
	comes(t, w, []string{"2"}, nil)
	list, err = client.GetService(ctx, "orders")
	require.NoError(t, err)
	require.Empty(t, list)
}

func TestInstanceOfALostSessionIsRegisteredAgain(t *testing.T) {
	server, ctx := zktest.Start(t), registrytest.Context(t)
	program, client := newRegistry(t, server), newRegistry(t, server)
	require.NoError(t, program.Register(ctx, orders("1")))
	w := watch(t, client)
	comes(t, w, nil, []string{"1"})

	registrytest.Expire(t, server, base+"/orders/1")
	for len(next(t, w)) == 0 { // between the two sessions
	}
	list, err := client.GetService(ctx, "orders")
	require.NoError(t, err)
	require.Equal(t, []*registry.ServiceInstance{orders("1")}, list)
	require.NoError(t, program.Deregister(ctx, orders("1")), "it is still the program's")
	require.False(t, server.Exists(base+"/orders/1"))
}

// Frameworks register again at intervals.
func TestRegisterAgainWritesOnlyChanges(t *testing.T) {
	server, ctx := zktest.Start(t), registrytest.Context(t)
	program := newRegistry(t, server)
	version := func() int32 {
		stat, err := server.Stat(base + "/orders/1")
		require.NoError(t, err)
		return stat.Version
	}
	require.NoError(t, program.Register(ctx, orders("1")))
	before := version()
	require.NoError(t, program.Register(ctx, orders("1")))
	require.Equal(t, before, version())
	changed := orders("1")
	changed.Metadata["zone"] = "b"
	require.NoError(t, program.Register(ctx, changed))
	require.Equal(t, before+1, version())
	list, err := program.GetService(ctx, "orders")
	require.NoError(t, err)
	require.Equal(t, []*registry.ServiceInstance{changed}, list)
}

func TestInstanceThatCannotBeRegisteredIsNot(t *testing.T) {
	server := zktest.Start(t)
	program := newRegistry(t, server)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, program.Register(ended, orders("1")), context.Canceled)
	require.False(t, server.Exists(base+"/orders/1"))
	require.ErrorIs(t, program.Deregister(t.Context(), orders("1")), instances.ErrNotRegistered)

	ctx := registrytest.Context(t)
	require.NoError(t, program.Register(ctx, orders("1")), "later it can")
	for _, bad := range []*registry.ServiceInstance{
		nil, {Name: "orders"}, {ID: "1"}, {ID: "1", Name: "a/b"},
		{ID: "1", Name: "orders", Endpoints: []string{"://"}},
		{ID: "1", Name: "orders", Endpoints: []string{"http://host"}},
	} {
		require.Error(t, program.Register(ctx, bad), "%v", bad)
	}
}

func TestWatcherEnds(t *testing.T) {
	server := zktest.Start(t)
	client := registrytest.Client(t, server)
	r, err := New(client, base)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(registrytest.Context(t))
	for _, end := range []func(registry.Watcher){
		func(w registry.Watcher) { require.NoError(t, w.Stop()) },
		func(registry.Watcher) { cancel() },
	} {
		w, err := r.Watch(ctx, "orders")
		require.NoError(t, err)
		end(w)
		_, err = w.Next()
		require.ErrorIs(t, err, context.Canceled)
	}
	w := watch(t, r)
	require.NoError(t, client.Close())
	_, err = w.Next()
	require.ErrorIs(t, err, framework.ErrClosed)
}

// Programs in Java register instances with an address, and disable them.
func TestInstancesOfOtherProgramsHaveAnEndpoint(t *testing.T) {
	server, ctx := zktest.Start(t), registrytest.Context(t)
	r := newRegistry(t, server)
	for _, i := range []discovery.Instance{
		{Name: "orders", ID: "java", Address: "10.0.0.3", Port: 80},
		{Name: "orders", ID: "off", Address: "10.0.0.3", Port: 81, Disabled: true},
	} {
		self, err := r.registry.Register(i)
		require.NoError(t, err)
		require.NoError(t, self.WaitReady(ctx))
	}
	list, err := r.GetService(ctx, "orders")
	require.NoError(t, err)
	java := registry.ServiceInstance{ID: "java", Name: "orders", Endpoints: []string{"http://10.0.0.3:80"}}
	require.Equal(t, []*registry.ServiceInstance{&java}, list)
}

// A program of kratos is registered while it runs.
func TestProgramOfKratos(t *testing.T) {
	server := zktest.Start(t)
	r := newRegistry(t, server)
	endpoint, err := url.Parse("http://10.0.0.1:8080")
	require.NoError(t, err)
	started := make(chan struct{})
	app := kratos.New(kratos.ID("1"), kratos.Name("orders"), kratos.Endpoint(endpoint), kratos.Registrar(r),
		kratos.AfterStart(func(context.Context) error { close(started); return nil })) // Register has returned
	ended := make(chan error, 1)
	go func() { ended <- app.Run() }()
	w := watch(t, r)
	comes(t, w, nil, []string{"1"})
	testzk.Closes(t, started, "the program does not start")
	require.NoError(t, app.Stop())
	comes(t, w, []string{"1"}, nil)
	if err := <-ended; !errors.Is(err, context.Canceled) {
		require.NoError(t, err)
	}
}
