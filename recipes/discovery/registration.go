package discovery

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/internal/kept"
	"github.com/docent-zk/docent/recipes/internal/nodeshape"
	"github.com/docent-zk/docent/recipes/persistent"
)

var (
	// ErrClosed means that a Registration or a View is closed.
	ErrClosed = errors.New("discovery: closed")
	// ErrIDInUse means that another instance of the service has the ID.
	ErrIDInUse = errors.New("discovery: another instance has the ID")
	// ErrPending means that Close of a Registration has returned before the deletion of the node
	// was confirmed. The deletion continues in the background.
	ErrPending = errors.New("discovery: the deletion is not confirmed yet")
)

// ofNode returns the errors of this package for those of the node.
var ofNode = kept.Errors{Closed: ErrClosed, Occupied: ErrIDInUse, Pending: ErrPending}

// Registration keeps an instance registered, from Register to Close. It is safe for concurrent use.
type Registration struct {
	node *persistent.Node

	mu       sync.Mutex // held while data is given to node, so that the last SetInstance is written last
	instance Instance
}

// Register registers an instance of a service in the background, and returns at once, also when no
// server can be reached. WaitReady waits until the instance is registered. The instance stays
// registered through lost connections and sessions until Close is called or the client is closed.
// After a reconnect with the same session its node is not touched.
//
// An instance without an ID gets a random one. An ID that is in use is an error: at once ErrIDInUse
// if this client uses it, and otherwise at WaitReady and Err after twice the session timeout. An
// instance that a crashed process has left is gone by then, unless it is Static. opts are those of
// the instance's node, such as [persistent.WithTakeover], [persistent.WithOccupiedTimeout] and
// [persistent.WithACL].
//
// Register returns an error for an invalid instance; for options that set the mode or the name of
// the node, which the type and the ID of the instance set; framework.ErrTooLarge for a payload that
// is too large; and framework.ErrClosed if the client is closed. Curator: registerService, which on
// each reconnect deletes the instance and registers it again.
func (r *Registry) Register(instance Instance, opts ...persistent.Option) (*Registration, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	instance = instance.clone()
	if instance.ID == "" {
		instance.ID = rand.Text()
	}
	if instance.Registered.IsZero() {
		instance.Registered = time.Now()
	}
	data, err := encode(&instance)
	if err != nil {
		return nil, fmt.Errorf("register %v: %w", &instance, err)
	}
	if err := nodeshape.Refuse(opts); err != nil {
		return nil, fmt.Errorf("register %v: %w", &instance, err)
	}
	switch instance.Type {
	case DynamicSequential:
		opts = append([]persistent.Option{persistent.WithSequence()}, opts...)
	case Static, Permanent:
		opts = append([]persistent.Option{persistent.WithPersistence()}, opts...)
	}
	node, err := persistent.New(r.client, r.base+"/"+instance.Name+"/"+instance.ID, data, opts...)
	if err != nil {
		return nil, fmt.Errorf("register %v: %w", &instance, err)
	}
	if err := node.Start(context.Background()); err != nil {
		return nil, fmt.Errorf("register %v: %w", &instance, ofNode.Of(err))
	}
	return &Registration{node: node, instance: instance}, nil
}

// encode completes an instance, checks it and returns its JSON.
func encode(i *Instance) ([]byte, error) {
	if i.Type == "" {
		i.Type = Dynamic
	}
	i.Registered = i.Registered.UTC().Truncate(time.Millisecond)
	if err := i.check(); err != nil {
		return nil, err
	}
	return i.MarshalJSON()
}

// Instance returns a copy of the instance as of the last SetInstance.
func (r *Registration) Instance() Instance {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.instance.clone()
}

// errOther means that SetInstance was called with another name, ID or type.
var errOther = errors.New("name, ID and type of a registered instance cannot change")

// SetInstance replaces the instance, for example by a copy with another Payload or with Disabled
// set. It returns at once: the instance is written when there is a connection, and WaitReady waits
// for that. Name, ID and Type must be the same. Without Registered the time stays as it was.
// SetInstance fails with the error of Err if the instance is not kept any more, and with
// framework.ErrTooLarge if the payload is too large. After an error the instance is as it was.
// Curator: updateService.
func (r *Registration) SetInstance(instance Instance) error {
	if err := r.check(); err != nil {
		return err
	}
	instance = instance.clone()
	r.mu.Lock()
	defer r.mu.Unlock()
	if instance.Registered.IsZero() {
		instance.Registered = r.instance.Registered
	}
	data, err := encode(&instance)
	if err != nil {
		return fmt.Errorf("set %v: %w", &instance, err)
	}
	was := &r.instance
	if instance.Name != was.Name || instance.ID != was.ID || instance.Type != was.Type {
		return fmt.Errorf("set %v to %v: %w", was, &instance, errOther)
	}
	if err := r.node.SetData(data); err != nil {
		return ofNode.Of(err)
	}
	r.instance = instance
	return nil
}

// check returns an error for a zero Registration.
func (r *Registration) check() error {
	if r.node == nil {
		return fmt.Errorf("%w: discovery.Registration", framework.ErrZeroValue)
	}
	return nil
}

// kept returns the node of the instance, or a zero Node for a zero Registration.
func (r *Registration) kept() *persistent.Node {
	if r.node == nil {
		return &persistent.Node{}
	}
	return r.node
}

// WaitReady waits until the instance is registered as of the last SetInstance. It fails when ctx
// ends, and with the error of Err if the instance is not kept any more. It does not fail because no
// server can be reached. See [persistent.Node.WaitReady].
func (r *Registration) WaitReady(ctx context.Context) error {
	if err := r.check(); err != nil {
		return err
	}
	return ofNode.Of(r.node.WaitReady(ctx))
}

// Path returns the path of the instance's node while it is there, and "" while it is not.
func (r *Registration) Path() string { return r.kept().Path() }

// Done returns a channel that is closed when the instance is not kept any more: after Close, when
// the client is closed, and after an error that no retry can mend.
func (r *Registration) Done() <-chan struct{} { return r.kept().Done() }

// Err returns nil until Done is closed, and then the reason: ErrClosed after Close;
// framework.ErrClosed; ErrIDInUse if the ID is in use; or what the servers have answered.
func (r *Registration) Err() error {
	if err := r.check(); err != nil {
		return err
	}
	return ofNode.Of(r.node.Err())
}

// Close unregisters the instance and waits for that, at most for the session timeout. The result is
// that of [persistent.Node.Close]. A Static instance stays if the client is closed before its
// Registration. Curator: unregisterService.
func (r *Registration) Close() error {
	if err := r.check(); err != nil {
		return err
	}
	return ofNode.Of(r.node.Close())
}
