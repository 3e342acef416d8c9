package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/discovery"
	"github.com/docent-zk/docent/recipes/group"
	"github.com/docent-zk/docent/recipes/inspect"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/recipes/semaphore"
)

// showGroup has Ann see how Bob joins and leaves.
func showGroup(ctx context.Context, t *tour) (err error) {
	ann, err := group.Join(ctx, t.ann, "/tour/workers", "ann", nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ann.Close()) }()
	t.call("Ann", `group.Join(ctx, client, path, "ann", nil)`, "is a member")
	bob, err := group.Join(ctx, t.bob, "/tour/workers", "bob", []byte("v2"))
	if err != nil {
		return err
	}
	t.call("Bob", `group.Join(ctx, client, path, "bob", "v2")`, "is a member")
	for change, err := range group.Observe(ctx, t.ann, "/tour/workers") {
		if err != nil {
			return err
		}
		t.call("Ann", "range group.Observe(ctx, client, path)", "%v %s", change.Kind, change.Member.ID)
		switch {
		case change.Kind == group.Removed:
			return nil
		case change.Member.ID == "bob":
			if err := bob.Close(); err != nil {
				return err
			}
			t.call("Bob", "membership.Close()", "has left")
		}
	}
	return context.Cause(ctx)
}

// showDiscovery has Bob find the instances of a service.
func showDiscovery(ctx context.Context, t *tour) (err error) {
	registry, err := discovery.New(t.ann, "/tour/services")
	if err != nil {
		return err
	}
	one, err := t.register(ctx, registry, "one", 8081)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, one.Close()) }()
	two, err := t.register(ctx, registry, "two", 8082)
	if err != nil {
		return err
	}
	return errors.Join(t.pick(ctx, two), two.Close())
}

func (t *tour) register(
	ctx context.Context, registry *discovery.Registry, id string, port int,
) (*discovery.Registration, error) {
	self, err := registry.Register(discovery.Instance{Name: "orders", ID: id, Address: "10.0.0.1", Port: port})
	if err != nil {
		return nil, err
	}
	if err := self.WaitReady(ctx); err != nil {
		return nil, errors.Join(err, self.Close())
	}
	t.call("Ann", fmt.Sprintf("registry.Register(orders %s)", id), "registered, port %d", port)
	return self, nil
}

// pick picks instances before and after one of them is disabled.
func (t *tour) pick(ctx context.Context, two *discovery.Registration) error {
	registry, err := discovery.New(t.bob, "/tour/services")
	if err != nil {
		return err
	}
	orders, err := registry.View("orders")
	if err != nil {
		return err
	}
	defer orders.Close()
	if err := orders.WaitReady(ctx); err != nil {
		return err
	}
	provider, err := discovery.NewProvider(orders)
	if err != nil {
		return err
	}
	t.call("Bob", "provider.Instances()", "%d", len(provider.Instances()))
	changed := make(chan discovery.Event, 10)
	defer orders.Listen(func(e discovery.Event) { changed <- e })()

	disabled := two.Instance()
	disabled.Disabled = true
	if err := two.SetInstance(disabled); err != nil {
		return err
	}
	t.call("Ann", "two.SetInstance(disabled)", "before the program stops")
	if err := waitDisabled(ctx, changed); err != nil {
		return err
	}
	instance, err := provider.Pick(ctx)
	if err != nil {
		return err
	}
	t.call("Bob", "provider.Pick(ctx)", "%s, the only one that is left", instance.HostPort())
	return nil
}

func waitDisabled(ctx context.Context, events <-chan discovery.Event) error {
	for {
		select {
		case e := <-events:
			if e.Kind == discovery.Changed && e.New.Disabled {
				return nil
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// showInspect lists a lock and a semaphore as an operator would.
func showInspect(ctx context.Context, t *tour) error {
	lock, err := mutex.New(t.ann, "/tour/report")
	if err != nil {
		return err
	}
	hold, err := t.hold(ctx, "Ann", "hold := lock.Acquire(ctx)", lock)
	if err != nil {
		return err
	}
	other, err := mutex.New(t.bob, "/tour/report")
	if err != nil {
		return err
	}
	t.call("Bob", "lock.Acquire(ctx)", "waits")
	waiter := start(t, func() (*recipes.Hold, error) { return other.Acquire(ctx) })
	if err := waitQueue(ctx, other, 2); err != nil {
		return err
	}
	permits, err := semaphore.New(t.bob, "/tour/uploads", 2)
	if err != nil {
		return err
	}
	permit, err := t.hold(ctx, "Bob", "uploads.Acquire(ctx)", permits)
	if err != nil {
		return err
	}
	if err := t.walk(ctx); err != nil {
		return err
	}
	if err := errors.Join(hold.Release(), permit.Release()); err != nil {
		return err
	}
	next, err := waiter.result()
	if err != nil {
		return err
	}
	return next.Release()
}

// walk prints the objects below the path of the tour.
func (t *tour) walk(ctx context.Context) error {
	for object, err := range inspect.Walk(ctx, t.ann, "/tour") {
		if err != nil {
			return err
		}
		t.call("Ann", `inspect.Walk(ctx, client, "/tour")`, "%s: %s, holders %d, waiters %d",
			object.Path, object.Kind, object.Holders, object.Waiters)
	}
	return nil
}
