// Package instances is what the adapters share: the instances that a program has registered, as
// frameworks register them. They call Register again for an instance that is registered already, and
// name an instance to deregister it.
package instances

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/docent-zk/docent/recipes/discovery"
)

// ErrNotRegistered means that this program has not registered the instance.
var ErrNotRegistered = errors.New("registries: not registered")

// Set has the instances that a program has registered. It is safe for concurrent use.
type Set struct {
	registry *discovery.Registry

	mu  sync.Mutex
	all map[key]*discovery.Registration
}

type key struct{ name, id string }

// NewSet returns a Set without instances.
func NewSet(registry *discovery.Registry) *Set {
	return &Set{registry: registry, all: map[key]*discovery.Registration{}}
}

// Put registers an instance, or replaces it if it is registered, and waits until the servers have it. An
// instance that has not changed is not written: frameworks register at intervals, as a heartbeat.
// From then on it stays registered through lost sessions until Remove.
//
// Put fails when ctx ends, and with the errors of discovery.Registration.WaitReady. If the instance was
// not registered before, it is not registered then. Otherwise it is replaced when there is a connection.
func (s *Set) Put(ctx context.Context, instance discovery.Instance) error {
	r, added, err := s.put(instance)
	if err != nil {
		return err
	}
	if err := r.WaitReady(ctx); err != nil {
		if added {
			s.forget(r)
			err = errors.Join(err, r.Close())
		}
		return fmt.Errorf("register %s of %s: %w", instance.ID, instance.Name, err)
	}
	return nil
}

// put makes no request that it waits for.
func (s *Set) put(instance discovery.Instance) (r *discovery.Registration, added bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := key{instance.Name, instance.ID}
	if r := s.all[k]; r != nil && r.Err() == nil {
		return r, false, r.SetInstance(instance)
	}
	if r, err = s.registry.Register(instance); err != nil {
		return nil, false, err
	}
	s.all[k] = r
	return r, true, nil
}

// forget removes a registration, unless another one has its place.
func (s *Set) forget(r *discovery.Registration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := r.Instance()
	if k := (key{i.Name, i.ID}); s.all[k] == r {
		delete(s.all, k)
	}
}

// Remove deregisters an instance and waits for that, for the session timeout at most. It returns
// ErrNotRegistered for an instance that was not put, and the errors of discovery.Registration.Close.
func (s *Set) Remove(name, id string) error {
	s.mu.Lock()
	r := s.all[key{name, id}]
	delete(s.all, key{name, id})
	s.mu.Unlock()
	if r == nil {
		return fmt.Errorf("deregister %s of %s: %w", id, name, ErrNotRegistered)
	}
	return r.Close()
}
