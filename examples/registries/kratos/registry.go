// Package kratosdocent registers the programs of go-kratos in ZooKeeper, and finds them.
//
//	registry, err := kratosdocent.New(client, "/services")
//	...
//	app := kratos.New(kratos.Name("orders"), kratos.Server(server), kratos.Registrar(registry))
//
// A client takes the same registry: grpc.WithDiscovery(registry), and the endpoint
// "discovery:///orders".
package kratosdocent

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/url"
	"strconv"

	"github.com/go-kratos/kratos/v2/registry"

	"github.com/docent-zk/docent/examples/registries/internal/instances"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/discovery"
)

var (
	_ registry.Registrar = (*Registry)(nil)
	_ registry.Discovery = (*Registry)(nil)
)

// Registry is a registry.Registrar and a registry.Discovery. It is safe for concurrent use. It keeps
// nothing but the instances that were registered, which end with the client.
type Registry struct {
	registry *discovery.Registry
	own      *instances.Set
}

// New returns a Registry of the services below base. It makes no request. It returns an error for a nil
// client and for an invalid path.
func New(client *framework.Client, base string) (*Registry, error) {
	r, err := discovery.New(client, base)
	if err != nil {
		return nil, err
	}
	return &Registry{r, instances.NewSet(r)}, nil
}

// payload is what discovery.Instance does not have.
type payload struct {
	Version   string            `json:"version,omitempty"`
	Metadata  map[string]string `json:"metadata,omitempty"`
	Endpoints []string          `json:"endpoints,omitempty"`
}

// Register registers an instance and waits until the servers have it. It stays registered through lost
// connections and sessions. Register replaces an instance that this Registry has registered. It fails
// when ctx ends, for an instance without an ID, and with discovery.ErrIDInUse; then the instance is not
// registered.
func (r *Registry) Register(ctx context.Context, service *registry.ServiceInstance) error {
	if service == nil || service.ID == "" {
		return errors.New("kratosdocent: an instance without an ID")
	}
	instance, err := encode(service)
	if err != nil {
		return err
	}
	return r.own.Put(ctx, instance)
}

// Deregister deregisters an instance that was registered by this Registry. It waits for the answer of the
// servers for the session timeout at most. The end of ctx does not end it: kratos deregisters when the
// context of the program has ended.
func (r *Registry) Deregister(_ context.Context, service *registry.ServiceInstance) error {
	return r.own.Remove(service.Name, service.ID)
}

// GetService reads the instances of a service. A service that does not exist has none.
func (r *Registry) GetService(ctx context.Context, name string) ([]*registry.ServiceInstance, error) {
	list, err := r.registry.Instances(ctx, name)
	if err != nil {
		return nil, err
	}
	return decode(list), nil
}

// Watch follows the instances of a service until ctx ends or Stop is called. While the connection is
// lost it keeps the instances that it has.
func (r *Registry) Watch(ctx context.Context, name string) (registry.Watcher, error) {
	view, err := r.registry.View(name)
	if err != nil {
		return nil, err
	}
	return newWatcher(ctx, view), nil
}

// encode sets the address to that of the first endpoint, for programs that know no endpoints.
func encode(service *registry.ServiceInstance) (discovery.Instance, error) {
	data, err := json.Marshal(payload{service.Version, service.Metadata, service.Endpoints})
	instance := discovery.Instance{Name: service.Name, ID: service.ID, Payload: data}
	if err != nil || len(service.Endpoints) == 0 {
		return instance, err
	}
	endpoint, err := url.Parse(service.Endpoints[0])
	if err != nil {
		return instance, err
	}
	host, port, err := net.SplitHostPort(endpoint.Host)
	if err != nil {
		return instance, err
	}
	instance.Address = host
	instance.Port, err = strconv.Atoi(port)
	return instance, err
}

// decode leaves out disabled instances. An instance of another program may have no endpoints: then its
// address is one, over HTTP.
func decode(list []*discovery.Instance) []*registry.ServiceInstance {
	services := make([]*registry.ServiceInstance, 0, len(list))
	for _, i := range list {
		if i.Disabled {
			continue
		}
		var p payload
		if json.Unmarshal(i.Payload, &p) != nil || len(p.Endpoints) == 0 {
			p.Endpoints = []string{"http://" + i.HostPort()}
		}
		services = append(services, &registry.ServiceInstance{
			ID: i.ID, Name: i.Name, Version: p.Version, Metadata: p.Metadata, Endpoints: p.Endpoints,
		})
	}
	return services
}
