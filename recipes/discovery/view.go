package discovery

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/internal/listen"
	"github.com/docent-zk/docent/internal/signal"
	"github.com/docent-zk/docent/recipes/cache"
	"github.com/docent-zk/docent/recipes/internal/kind"
)

// View is the list of the instances of one service, in memory and current. It is safe for
// concurrent use. Curator: ServiceCache.
type View struct {
	name  string
	log   *zap.Logger
	cache *cache.Cache
	first chan struct{} // closed when the view has been ready

	mu         sync.Mutex // held while an event is queued for the listeners, so that they get all in order
	instances  map[string]*Instance
	unreadable map[string]error
	list       []*Instance   // the values of instances in the order of the paths; nil: not made yet
	ready      chan struct{} // closed while the view is current
	stale      time.Time     // since when; zero: the view is current, or was never ready
	listeners  listen.Listeners[Event]
}

// Kind is the kind of an Event.
type Kind int

// The kinds of events.
const (
	// Added means that New is in the view.
	Added Kind = iota + 1
	// Changed means that New is in the place of Old.
	Changed
	// Removed means that Old is no longer in the view.
	Removed
	// Ready means that the view is current.
	Ready
	// Stale means that the connection was lost. The view keeps what it has. Ready follows.
	Stale
)

// String returns the kind in lower case.
func (k Kind) String() string { return kind.Text(int(k), int(Stale)) }

// Event is one difference between two contents of a View, or a change of its state.
type Event struct {
	Kind Kind
	Old  *Instance // of Changed and Removed
	New  *Instance // of Added and Changed
	// Since is set with Stale: since when the view may be out of date. It is what StaleSince
	// returns.
	Since time.Time
}

// String returns the kind, and the instance if there is one.
func (e Event) String() string {
	switch {
	case e.New != nil:
		return e.Kind.String() + " " + e.New.String()
	case e.Old != nil:
		return e.Kind.String() + " " + e.Old.String()
	}
	return e.Kind.String()
}

// View returns a View of the instances of a service, and starts to read in the background. The
// service need not exist. View makes no request itself. It returns an error for an invalid name,
// and framework.ErrClosed if the client is closed. The view works through lost connections and
// sessions until Close is called or the client is closed. Close must be called in any case.
func (r *Registry) View(name string) (*View, error) {
	folder, err := r.folder(name)
	if err != nil {
		return nil, err
	}
	v := &View{
		name: name, log: r.log.With(zap.String("service", name)), first: make(chan struct{}),
		instances: map[string]*Instance{}, unreadable: map[string]error{}, ready: make(chan struct{}),
	}
	v.cache, err = cache.New(r.client, folder, cache.WithDepth(1), cache.WithListener(func(e cache.Event) {
		if e.Path() == folder {
			v.putFolder(folder, e.New)
			return
		}
		v.apply(e)
	}))
	if err != nil {
		return nil, fmt.Errorf("view the instances of %s: %w", name, err)
	}
	return v, nil
}

// errZeroView is the error of a zero View.
var errZeroView = fmt.Errorf("%w: discovery.View", framework.ErrZeroValue)

// made reports whether Registry.View has made the view.
func (v *View) made() bool { return v.cache != nil }

// Close ends the view and waits, for at most two seconds, until the listeners have handled all
// events. The content stays readable. Close may be called from a listener, and more than once.
func (v *View) Close() {
	if !v.made() {
		return
	}
	v.cache.Close()
	v.listeners.Close(listen.Wait)
}

// Done returns a channel that is closed when the view has ended.
func (v *View) Done() <-chan struct{} {
	if !v.made() {
		return signal.Closed
	}
	return v.cache.Done()
}

// Err returns nil until Done is closed. Then it returns ErrClosed after Close, and
// framework.ErrClosed after the end of the client.
func (v *View) Err() error {
	if !v.made() {
		return errZeroView
	}
	err := v.cache.Err()
	if errors.Is(err, cache.ErrClosed) {
		return ErrClosed
	}
	return err
}

// Name returns the name of the service.
func (v *View) Name() string { return v.name }

// WaitReady waits until the view is current. It returns nil then, the error of Err if the view ends
// or has ended, and the error of ctx if that ends first.
func (v *View) WaitReady(ctx context.Context) error {
	if !v.made() {
		return errZeroView
	}
	if err := checkContext(ctx); err != nil {
		return err
	}
	if v.Err() != nil {
		return v.hasEnded()
	}
	v.mu.Lock()
	ready := v.ready
	v.mu.Unlock()
	return v.wait(ctx, ready)
}

// wait waits until ready is closed.
func (v *View) wait(ctx context.Context, ready <-chan struct{}) error {
	if err := checkContext(ctx); err != nil {
		return err
	}
	select {
	case <-ready:
		return nil
	default:
	}
	select {
	case <-ready:
		return nil
	case <-v.cache.Done():
		return v.hasEnded()
	case <-ctx.Done():
		return fmt.Errorf("wait for the instances of %s: %w", v.name, ctxerr.Of(ctx))
	}
}

// hasEnded returns the error of a wait for a view that has ended.
func (v *View) hasEnded() error {
	return fmt.Errorf("wait for the instances of %s: %w", v.name, v.Err())
}

// StaleSince reports whether the view is stale, and since when: since the connection was lost, or the
// view has ended. A stale view keeps what it has. A view that was never ready is not stale.
func (v *View) StaleSince() (since time.Time, stale bool) {
	if v.made() && v.cache.Err() != nil {
		return v.cache.StaleSince()
	}
	return v.staleSince()
}

// staleSince is StaleSince of a view that has not ended.
func (v *View) staleSince() (since time.Time, stale bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.stale, !v.stale.IsZero()
}

// Instances returns all instances in the view, also the disabled ones, in the order of the names of
// their nodes. It makes no request.
func (v *View) Instances() []*Instance { return slices.Clone(v.shared()) }

// shared returns the instances. The result is the same slice until the content changes.
func (v *View) shared() []*Instance {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.list == nil && v.made() {
		v.list = make([]*Instance, 0, len(v.instances))
		for _, path := range slices.Sorted(maps.Keys(v.instances)) {
			v.list = append(v.list, v.instances[path])
		}
	}
	return v.list
}

// Unreadable returns the nodes of the service that are not instances, by path, and why: the error
// matches ErrUnreadable, or zk.ErrNoAuth if the client may not read the node. If the client may not
// list the service, its own path is among them. Servers report no changes of nodes that a client may
// not read, so zk.ErrNoAuth may be out of date.
func (v *View) Unreadable() map[string]error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return maps.Clone(v.unreadable)
}

// Listen calls fn with each event, in order, in a goroutine of its own: a slow listener delays
// neither the view nor other listeners. Its events wait in memory, without a bound. When fn is
// called, the view is at least as new as the event. The first calls are Added for each instance
// that is in the view already, and Ready if it is current. After stop fn is not called again; stop
// does not wait for a running call. Listen panics if fn is nil. Curator: ServiceCacheListener.
func (v *View) Listen(fn func(Event)) (stop func()) {
	if fn == nil {
		panic("discovery: Listen: nil function")
	}
	if !v.made() {
		return func() {}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	var first []Event
	for _, path := range slices.Sorted(maps.Keys(v.instances)) {
		first = append(first, Event{Kind: Added, New: v.instances[path]})
	}
	select {
	case <-v.ready:
		first = append(first, Event{Kind: Ready})
	default:
	}
	return v.listeners.ListenFrom(first, fn)
}

// apply applies an event of the cache, one after the other.
func (v *View) apply(e cache.Event) {
	switch e.Kind {
	case cache.Ready:
		v.setReady()
	case cache.Stale:
		v.setStale(e.Since)
	default:
		v.put(e.Path(), e.New)
	}
}

func (v *View) setReady() {
	if since, stale := v.staleSince(); stale {
		v.log.Info("the instances are current again", zap.Time("stale since", since))
	} else {
		close(v.first)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.stale = time.Time{}
	close(v.ready)
	v.listeners.Tell(Event{Kind: Ready})
}

func (v *View) setStale(since time.Time) {
	v.log.Warn("the connection is lost: the instances may be out of date", zap.Int("instances", len(v.shared())))
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ready = make(chan struct{})
	v.stale = since
	v.listeners.Tell(Event{Kind: Stale, Since: since})
}

// put replaces the instance at path by what node is; nil means that there is none.
func (v *View) put(path string, node *cache.Node) {
	now, err := read(node)
	if err != nil {
		v.log.Warn("a node is not an instance: left out", zap.Error(err))
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	was := v.instances[path]
	v.list = nil
	replace(v.instances, path, now, now != nil)
	replace(v.unreadable, path, err, err != nil)
	switch {
	case was == nil && now != nil:
		v.listeners.Tell(Event{Kind: Added, New: now})
	case was != nil && now != nil:
		v.listeners.Tell(Event{Kind: Changed, Old: was, New: now})
	case was != nil:
		v.listeners.Tell(Event{Kind: Removed, Old: was})
	}
}

// putFolder notes whether the node of the service can be read and listed. node is nil if there is none.
func (v *View) putFolder(path string, node *cache.Node) {
	var err error
	if node != nil && node.Err != nil {
		err = fmt.Errorf("%s: %w", path, node.Err)
		v.log.Warn("the service cannot be listed: instances may be missing", zap.Error(err))
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	replace(v.unreadable, path, err, err != nil)
}

// replace replaces the value at path, or deletes it.
func replace[V any](all map[string]V, path string, value V, there bool) {
	if there {
		all[path] = value
	} else {
		delete(all, path)
	}
}

// read returns the instance that a node is, if there is one.
func read(node *cache.Node) (*Instance, error) {
	switch {
	case node == nil:
		return nil, nil
	case node.Err != nil:
		return nil, fmt.Errorf("%s: %w", node.Path, node.Err)
	}
	return decode(node.Path, node.Data)
}
