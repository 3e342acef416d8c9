package discovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/ctxerr"
)

// Registry has the instances of all services below one path. It is safe for concurrent use. It
// keeps nothing that must be closed. Curator: ServiceDiscovery.
type Registry struct {
	client *framework.Client // nil in the zero value
	base   string
	log    *zap.Logger
}

// New returns a Registry of the services below base. It makes no request. It returns an error for a
// nil or unusable client and for an invalid path.
func New(client *framework.Client, base string) (*Registry, error) {
	if err := bridge.Of(client).Validate(); err != nil {
		return nil, fmt.Errorf("new registry: %w", err)
	}
	if err := framework.CheckPath(base); err != nil {
		return nil, fmt.Errorf("new registry: %w", err)
	}
	if base == "/" {
		base = ""
	}
	log := client.Logger().Named("discovery").With(zap.String("path", base))
	return &Registry{client: client, base: base, log: log}, nil
}

// check returns an error for a zero Registry.
func (r *Registry) check() error {
	if r.client == nil {
		return fmt.Errorf("%w: discovery.Registry", framework.ErrZeroValue)
	}
	return nil
}

// checkContext returns an error for a context that is nil or has ended.
func checkContext(ctx context.Context) error {
	switch {
	case ctx == nil:
		return framework.ErrNilContext
	case ctx.Err() != nil:
		return ctxerr.Of(ctx)
	}
	return nil
}

// folder returns the path of a service. It returns an error for an invalid name.
func (r *Registry) folder(name string) (string, error) {
	if err := r.check(); err != nil {
		return "", err
	}
	if err := checkName("name", name); err != nil {
		return "", err
	}
	return r.base + "/" + name, nil
}

// Names returns the names of all services, sorted. A service whose last instance was unregistered
// is listed until the servers delete its node. Names fails when ctx ends, and as
// [framework.Client.Children] does. A base path that does not exist is no error. Curator:
// queryForNames.
func (r *Registry) Names(ctx context.Context) ([]string, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	return r.list(ctx, cmp.Or(r.base, "/"))
}

// list returns the children of a node, sorted; none if it does not exist.
func (r *Registry) list(ctx context.Context, path string) ([]string, error) {
	if err := checkContext(ctx); err != nil {
		return nil, err
	}
	names, _, err := r.client.Children(ctx, path)
	if ctxerr.Answered(ctx, err, zk.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	return names, nil
}

// Instance returns one instance. The error matches zk.ErrNoNode if there is no such instance, and
// ErrUnreadable if its data is not an instance. Instance fails when ctx ends, and as
// [framework.Client.Get] does. It does not find a DynamicSequential instance, whose node has
// another name. Curator: queryForInstance.
func (r *Registry) Instance(ctx context.Context, name, id string) (*Instance, error) {
	folder, err := r.folder(name)
	if err != nil {
		return nil, err
	}
	if err := checkName("ID", id); err != nil {
		return nil, err
	}
	return r.read(ctx, folder+"/"+id)
}

func (r *Registry) read(ctx context.Context, path string) (*Instance, error) {
	if err := checkContext(ctx); err != nil {
		return nil, err
	}
	data, _, err := r.client.Get(ctx, path)
	if err != nil {
		return nil, err
	}
	return decode(path, data)
}

// maxReads is how many nodes Instances reads at the same time.
const maxReads = 16

// Instances reads all instances of a service, also the disabled ones, in the order of the names of
// their nodes. Nodes that are not instances are left out and logged: [Registry.Instance] says why.
// A service that does not exist has no instances. Instances fails when ctx ends, and as
// [framework.Client.Get] does: with the first error of a read, which ends the others. A program
// that needs the instances more than once uses [Registry.View]. Curator: queryForInstances.
func (r *Registry) Instances(ctx context.Context, name string) ([]*Instance, error) {
	folder, err := r.folder(name)
	if err != nil {
		return nil, err
	}
	ids, err := r.list(ctx, folder)
	var all []*Instance
	if err == nil {
		all, err = r.readAll(ctx, folder, ids)
	}
	if err != nil {
		return nil, fmt.Errorf("instances of %s: %w", name, err)
	}
	return slices.DeleteFunc(all, func(i *Instance) bool { return i == nil }), nil
}

// readAll reads nodes in folder. An instance is nil if it is not there. The first error ends the
// other reads.
func (r *Registry) readAll(ctx context.Context, folder string, ids []string) ([]*Instance, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	all := make([]*Instance, len(ids))
	var first error
	var failed sync.Once
	var reading sync.WaitGroup
	free := make(chan struct{}, maxReads)
	for n, id := range ids {
		free <- struct{}{}
		reading.Go(func() {
			defer func() { <-free }()
			var err error
			if all[n], err = r.readIfThere(ctx, folder+"/"+id); err != nil {
				failed.Do(func() { first = err; cancel() })
			}
		})
	}
	reading.Wait()
	return all, first
}

// readIfThere returns nil if there is no instance at path.
func (r *Registry) readIfThere(ctx context.Context, path string) (*Instance, error) {
	i, err := r.read(ctx, path)
	switch {
	case errors.Is(err, ErrUnreadable):
		r.log.Warn("a node is not an instance: left out", zap.Error(err))
		return nil, nil
	case ctxerr.Answered(ctx, err, zk.ErrNoNode):
		return nil, nil
	}
	return i, err
}
