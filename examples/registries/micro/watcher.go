package microdocent

import (
	"context"
	"path"
	"sync"

	"go-micro.dev/v5/registry"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/cache"
	"github.com/docent-zk/docent/recipes/discovery"
)

// watcher is a registry.Watcher of one service or of all. A view of each service has its instances.
type watcher struct {
	of      *Registry
	ctx     context.Context
	cancel  context.CancelFunc
	results chan *registry.Result
	closed  chan struct{} // closed when close has returned

	names *cache.Cache // of the services; nil if one service is watched
	mu    sync.Mutex
	views map[string]*discovery.View // by the name of the service; nil after Stop
}

// Watch follows the nodes of the service that registry.WatchService names, or of all services, until Stop
// is called or the context of registry.WatchContext ends. The first results are those that are there
// already. While the connection is lost nothing is reported.
func (r *Registry) Watch(opts ...registry.WatchOption) (registry.Watcher, error) {
	options := registry.WatchOptions{Context: context.Background()}
	for _, o := range opts {
		o(&options)
	}
	w := &watcher{
		of: r, results: make(chan *registry.Result), closed: make(chan struct{}), views: map[string]*discovery.View{},
	}
	w.ctx, w.cancel = context.WithCancel(options.Context)
	context.AfterFunc(w.ctx, w.close)
	err := w.begin(options.Service)
	if err != nil {
		w.Stop()
		return nil, err
	}
	return w, nil
}

// begin watches a service, or all if there is no name.
func (w *watcher) begin(service string) error {
	if service == "" {
		return w.watchAll()
	}
	return w.watch(service)
}

// watch reports the instances of one service.
func (w *watcher) watch(name string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.views == nil || w.views[name] != nil {
		return nil // stopped, or watched already
	}
	view, err := w.of.registry.View(name) // makes no request
	if err != nil {
		return err
	}
	w.views[name] = view
	view.Listen(w.report)
	return nil
}

// watchAll follows the names of the services. The view of a service stays when its node is deleted: it
// may come back.
func (w *watcher) watchAll() error {
	names, err := cache.New(w.of.client, w.of.base, cache.WithDepth(1), cache.WithoutData(),
		cache.WithListener(func(e cache.Event) {
			if e.Kind == cache.Added && e.Path() != w.of.base {
				_ = w.watch(path.Base(e.Path())) // fails for a name that is none, or when the client is closed
			}
		}))
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.names = names
	stopped := w.views == nil
	w.mu.Unlock()
	if stopped {
		names.Close()
	}
	return nil
}

// actions are what go-micro calls the kinds of events.
var actions = map[discovery.Kind]string{
	discovery.Added:   registry.Create.String(),
	discovery.Changed: registry.Update.String(),
	discovery.Removed: registry.Delete.String(),
}

// report passes an event to Next. An instance that is disabled counts as deleted.
func (w *watcher) report(e discovery.Event) {
	action, ok := actions[e.Kind]
	if !ok {
		return // Ready or Stale
	}
	instance := e.New
	switch {
	case instance == nil:
		instance = e.Old
	case instance.Disabled:
		action = registry.Delete.String()
	}
	select {
	case w.results <- &registry.Result{Action: action, Service: decode(instance)}:
	case <-w.ctx.Done():
	}
}

// Next waits for the next change. It fails with registry.ErrWatcherStopped after Stop, and when the
// context of Watch has ended; and with framework.ErrClosed when the client is closed.
func (w *watcher) Next() (*registry.Result, error) {
	select {
	case r := <-w.results:
		return r, nil
	case <-w.ctx.Done():
		return nil, registry.ErrWatcherStopped
	case <-w.of.client.Done():
		return nil, framework.ErrClosed
	}
}

// Stop ends the watcher. It must be called, but for a watcher whose context has ended.
func (w *watcher) Stop() {
	w.cancel()
	<-w.closed
}

// close closes what Watch has opened.
func (w *watcher) close() {
	defer close(w.closed)
	w.mu.Lock()
	names, views := w.names, w.views
	w.views = nil
	w.mu.Unlock()
	if names != nil {
		names.Close()
	}
	for _, view := range views {
		view.Close()
	}
}
