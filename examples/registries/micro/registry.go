// Package microdocent registers the programs of go-micro in ZooKeeper, and finds them.
//
//	registry, err := microdocent.New(client, "/services")
//	...
//	service := micro.NewService(micro.Name("orders"), micro.Registry(registry))
package microdocent

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"strconv"

	"go-micro.dev/v5/registry"

	"github.com/docent-zk/docent/examples/registries/internal/instances"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/discovery"
)

var _ registry.Registry = (*Registry)(nil)

// Registry is a registry.Registry. The options of connections, such as registry.Addrs, have no effect:
// the client has its own. It is safe for concurrent use, but for Init.
type Registry struct {
	client   *framework.Client
	base     string
	registry *discovery.Registry
	own      *instances.Set
	options  registry.Options
}

// New returns a Registry of the services below base. It makes no request. It returns an error for a nil
// client and for an invalid path.
func New(client *framework.Client, base string, opts ...registry.Option) (*Registry, error) {
	r, err := discovery.New(client, base)
	if err != nil {
		return nil, err
	}
	return &Registry{client, base, r, instances.NewSet(r), *registry.NewOptions(opts...)}, nil
}

// Init changes the options.
func (r *Registry) Init(opts ...registry.Option) error {
	for _, o := range opts {
		o(&r.options)
	}
	return nil
}

// Options returns the options.
func (r *Registry) Options() registry.Options { return r.options }

// String returns the name of this registry.
func (r *Registry) String() string { return "docent" }

// context returns the context of a call: that of its options if there is one, for the time of
// registry.Timeout.
func (r *Registry) context(given context.Context) (context.Context, context.CancelFunc) {
	if given == nil {
		given = context.Background()
	}
	if r.options.Timeout > 0 {
		return context.WithTimeout(given, r.options.Timeout)
	}
	return context.WithCancel(given)
}

// Register registers the nodes of a service and waits until the servers have them. They stay registered
// through lost connections and sessions until Deregister, so registry.RegisterTTL has no effect. Register
// replaces nodes that this Registry has registered, and writes none that has not changed. A node that
// cannot be registered is an error. Those before it stay registered.
func (r *Registry) Register(service *registry.Service, opts ...registry.RegisterOption) error {
	if len(service.Nodes) == 0 {
		return errors.New("microdocent: a service without nodes")
	}
	var options registry.RegisterOptions
	for _, o := range opts {
		o(&options)
	}
	ctx, cancel := r.context(options.Context)
	defer cancel()
	for _, node := range service.Nodes {
		instance, err := encode(service, node)
		if err != nil {
			return err
		}
		if err := r.own.Put(ctx, instance); err != nil {
			return err
		}
	}
	return nil
}

// Deregister deregisters nodes that were registered by this Registry. For each it waits for the answer of
// the servers for the session timeout at most.
func (r *Registry) Deregister(service *registry.Service, _ ...registry.DeregisterOption) error {
	var errs []error
	for _, node := range service.Nodes {
		errs = append(errs, r.own.Remove(service.Name, node.Id))
	}
	return errors.Join(errs...)
}

// GetService reads the nodes of a service: a Service for each version. It fails with registry.ErrNotFound
// if there are none.
func (r *Registry) GetService(name string, opts ...registry.GetOption) ([]*registry.Service, error) {
	var options registry.GetOptions
	for _, o := range opts {
		o(&options)
	}
	ctx, cancel := r.context(options.Context)
	defer cancel()
	list, err := r.registry.Instances(ctx, name)
	if err != nil {
		return nil, err
	}
	services := byVersion(list)
	if len(services) == 0 {
		return nil, registry.ErrNotFound
	}
	return services, nil
}

// ListServices returns the names of all services, also of some that had instances a short time ago.
func (r *Registry) ListServices(opts ...registry.ListOption) ([]*registry.Service, error) {
	var options registry.ListOptions
	for _, o := range opts {
		o(&options)
	}
	ctx, cancel := r.context(options.Context)
	defer cancel()
	names, err := r.registry.Names(ctx)
	if err != nil {
		return nil, err
	}
	services := make([]*registry.Service, len(names))
	for i, name := range names {
		services[i] = &registry.Service{Name: name}
	}
	return services, nil
}

// payload is what discovery.Instance does not have.
type payload struct {
	Version   string               `json:"version,omitempty"`
	Metadata  map[string]string    `json:"metadata,omitempty"`
	Endpoints []*registry.Endpoint `json:"endpoints,omitempty"`
	Node      *registry.Node       `json:"node,omitempty"`
}

// encode returns the instance of one node.
func encode(service *registry.Service, node *registry.Node) (discovery.Instance, error) {
	instance := discovery.Instance{Name: service.Name, ID: node.Id, Address: node.Address}
	if node.Id == "" {
		return instance, errors.New("microdocent: a node without an ID")
	}
	if host, port, err := net.SplitHostPort(node.Address); err == nil {
		instance.Address = host
		if instance.Port, err = strconv.Atoi(port); err != nil {
			return instance, err
		}
	}
	data, err := json.Marshal(payload{service.Version, service.Metadata, service.Endpoints, node})
	instance.Payload = data
	return instance, err
}

// decode returns the service of one instance. An instance of another program has an address only.
func decode(i *discovery.Instance) *registry.Service {
	var p payload
	if json.Unmarshal(i.Payload, &p) != nil || p.Node == nil {
		p = payload{Node: &registry.Node{Id: i.ID, Address: i.HostPort()}}
	}
	return &registry.Service{
		Name: i.Name, Version: p.Version, Metadata: p.Metadata, Endpoints: p.Endpoints, Nodes: []*registry.Node{p.Node},
	}
}

// byVersion joins the nodes of each version. It leaves out disabled instances.
func byVersion(list []*discovery.Instance) (services []*registry.Service) {
	versions := map[string]*registry.Service{}
	for _, i := range list {
		if i.Disabled {
			continue
		}
		one := decode(i)
		if all := versions[one.Version]; all != nil {
			all.Nodes = append(all.Nodes, one.Nodes...)
			continue
		}
		versions[one.Version] = one
		services = append(services, one)
	}
	return services
}
