package kratosdocent

import (
	"context"

	"github.com/go-kratos/kratos/v2/registry"

	"github.com/docent-zk/docent/recipes/discovery"
)

// watcher is a registry.Watcher.
type watcher struct {
	ctx     context.Context
	cancel  context.CancelFunc
	view    *discovery.View
	changed chan struct{} // has an element if the view has changed since the last Next
}

func newWatcher(ctx context.Context, view *discovery.View) *watcher {
	w := &watcher{view: view, changed: make(chan struct{}, 1)}
	w.ctx, w.cancel = context.WithCancel(ctx)
	context.AfterFunc(w.ctx, view.Close)
	ready := false
	view.Listen(func(e discovery.Event) {
		switch {
		case e.Kind == discovery.Stale:
		case e.Kind == discovery.Ready && !ready:
			ready = true
			if len(view.Instances()) > 0 {
				w.notify()
			}
		case e.Kind != discovery.Ready && ready:
			w.notify()
		}
	})
	return w
}

func (w *watcher) notify() {
	select {
	case w.changed <- struct{}{}:
	default: // Next has not seen the last change yet, and will see both
	}
}

// Next waits for the first instances, and then for changes. It fails when the context of Watch ends, with
// context.Canceled after Stop, and with framework.ErrClosed when the client is closed.
func (w *watcher) Next() ([]*registry.ServiceInstance, error) {
	if err := w.ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case <-w.changed:
		return decode(w.view.Instances()), nil
	case <-w.ctx.Done():
		return nil, w.ctx.Err()
	case <-w.view.Done():
		if err := w.ctx.Err(); err != nil {
			return nil, err // the view was closed for that
		}
		return nil, w.view.Err()
	}
}

// Stop ends the watcher.
func (w *watcher) Stop() error {
	w.cancel()
	w.view.Close()
	return nil
}
