package microdocent

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go-micro.dev/v5/registry"
	"go-micro.dev/v5/server"

	"github.com/docent-zk/docent/examples/registries/internal/instances"
	"github.com/docent-zk/docent/examples/registries/internal/registrytest"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/leaks"
	"github.com/docent-zk/docent/recipes/discovery"
	"github.com/docent-zk/docent/zktest"
)

func TestMain(m *testing.M) { leaks.Main(m) }

const base = "/services"

func newRegistry(t testing.TB, server *zktest.Server) *Registry {
	r, err := New(registrytest.Client(t, server), base, registry.Timeout(time.Minute))
	require.NoError(t, err)
	return r
}

// service returns a service with one node.
func service(name, version, id string) *registry.Service {
	node := &registry.Node{Id: id, Address: "10.0.0.1:8080", Metadata: map[string]string{"protocol": "mucp"}}
	return &registry.Service{
		Name: name, Version: version, Metadata: map[string]string{"owner": "shop"},
		Endpoints: []*registry.Endpoint{{Name: "Orders.Add", Request: &registry.Value{Name: "Order"}}},
		Nodes:     []*registry.Node{node},
	}
}

func watch(t testing.TB, r *Registry, opts ...registry.WatchOption) registry.Watcher {
	w, err := r.Watch(opts...)
	require.NoError(t, err)
	t.Cleanup(w.Stop)
	return w
}

// requireNext waits for a result about the only node of a service.
func requireNext(t testing.TB, w registry.Watcher, action string, want *registry.Service) {
	t.Helper()
	got, err := w.Next()
	require.NoError(t, err)
	require.Equal(t, &registry.Result{Action: action, Service: want}, got)
}

func TestNodesAreFoundUntilTheyAreDeregistered(t *testing.T) {
	srv := zktest.Start(t)
	program, client := newRegistry(t, srv), newRegistry(t, srv)
	w := watch(t, client, registry.WatchService("orders"))
	one, two, newer := service("orders", "v1", "1"), service("orders", "v1", "2"), service("orders", "v2", "3")
	_, err := client.GetService("orders")
	require.ErrorIs(t, err, registry.ErrNotFound)

	for _, s := range []*registry.Service{one, two, newer} {
		require.NoError(t, program.Register(s))
		requireNext(t, w, "create", s)
	}
	got, err := client.GetService("orders")
	require.NoError(t, err)
	both := service("orders", "v1", "1")
	both.Nodes = append(both.Nodes, two.Nodes...)
	require.Equal(t, []*registry.Service{both, newer}, got)
	names, err := client.ListServices()
	require.NoError(t, err)
	require.Equal(t, []*registry.Service{{Name: "orders"}}, names)

	for _, s := range []*registry.Service{one, newer, two} {
		require.NoError(t, program.Deregister(s))
		requireNext(t, w, "delete", s)
	}
	_, err = client.GetService("orders")
	require.ErrorIs(t, err, registry.ErrNotFound)
	require.ErrorIs(t, program.Deregister(one), instances.ErrNotRegistered)
}

func TestAllServicesAreWatched(t *testing.T) {
	srv := zktest.Start(t)
	program, client := newRegistry(t, srv), newRegistry(t, srv)
	orders, bills := service("orders", "v1", "1"), service("bills", "v1", "1")
	require.NoError(t, program.Register(orders))
	w := watch(t, client)
	requireNext(t, w, "create", orders)
	require.NoError(t, program.Register(bills))
	requireNext(t, w, "create", bills)
	changed := service("bills", "v2", "1")
	require.NoError(t, program.Register(changed))
	requireNext(t, w, "update", changed)
	require.NoError(t, program.Deregister(bills))
	requireNext(t, w, "delete", changed)
}

func TestNodeOfALostSessionIsRegisteredAgain(t *testing.T) {
	srv := zktest.Start(t)
	program, client := newRegistry(t, srv), newRegistry(t, srv)
	one := service("orders", "v1", "1")
	require.NoError(t, program.Register(one))
	registrytest.Expire(t, srv, base+"/orders/1")
	got, err := client.GetService("orders")
	require.NoError(t, err)
	require.Equal(t, []*registry.Service{one}, got)
	require.NoError(t, program.Deregister(one), "it is still the program's")
	require.False(t, srv.Exists(base+"/orders/1"))
}

func TestNodeThatCannotBeRegisteredIsNot(t *testing.T) {
	srv := zktest.Start(t)
	program := newRegistry(t, srv)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	one := service("orders", "v1", "1")
	require.ErrorIs(t, program.Register(one, registry.RegisterContext(ended)), context.Canceled)
	require.False(t, srv.Exists(base+"/orders/1"))
	for _, bad := range []*registry.Service{
		{Name: "orders"}, service("orders", "v1", ""), service("", "v1", "1"),
		{Name: "orders", Nodes: []*registry.Node{{Id: "1", Address: "host:port"}}},
	} {
		require.Error(t, program.Register(bad))
	}
}

func TestWatcherEnds(t *testing.T) {
	client := registrytest.Client(t, zktest.Start(t))
	r, err := New(client, base)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	for _, end := range []func(registry.Watcher){
		func(w registry.Watcher) { w.Stop() },
		func(registry.Watcher) { cancel() },
	} {
		w, err := r.Watch(registry.WatchContext(ctx))
		require.NoError(t, err)
		end(w)
		_, err = w.Next()
		require.ErrorIs(t, err, registry.ErrWatcherStopped)
		w.Stop()
	}
	w := watch(t, r)
	require.NoError(t, client.Close())
	_, err = w.Next()
	require.ErrorIs(t, err, framework.ErrClosed)
	_, err = r.Watch()
	require.ErrorIs(t, err, framework.ErrClosed)
}

// Programs in Java register instances with an address, and disable them.
func TestInstancesOfOtherPrograms(t *testing.T) {
	srv := zktest.Start(t)
	r := newRegistry(t, srv)
	w := watch(t, r)
	self, err := r.registry.Register(discovery.Instance{Name: "orders", ID: "java", Address: "10.0.0.3", Port: 80})
	require.NoError(t, err)
	java := &registry.Service{Name: "orders", Nodes: []*registry.Node{{Id: "java", Address: "10.0.0.3:80"}}}
	requireNext(t, w, "create", java)
	disabled := self.Instance()
	disabled.Disabled = true
	require.NoError(t, self.SetInstance(disabled))
	requireNext(t, w, "delete", java)
	_, err = r.GetService("orders")
	require.ErrorIs(t, err, registry.ErrNotFound)
}

// A server of go-micro is registered while it runs.
func TestServerOfGoMicro(t *testing.T) {
	srv := zktest.Start(t)
	r := newRegistry(t, srv)
	w := watch(t, r, registry.WatchService("orders"))
	s := server.NewRPCServer(server.Name("orders"), server.Id("1"), server.Address("127.0.0.1:0"), server.Registry(r))
	require.NoError(t, s.Start())
	created, err := w.Next()
	require.NoError(t, err)
	require.Equal(t, "create", created.Action)
	require.Equal(t, "orders-1", created.Service.Nodes[0].Id)
	require.NoError(t, s.Stop())
	requireNext(t, w, "delete", created.Service)
}
