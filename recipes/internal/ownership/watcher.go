package ownership

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
)

const (
	// watchAfter is how long a hold lasts before its node is watched. Most holds end before, and
	// save the request.
	watchAfter = 100 * time.Millisecond
	// watchAgain is the pause after a failed attempt to watch.
	watchAgain = time.Second
)

// nodeWatcher watches a lock node: it ends the ownership when the node is deleted, and notes
// requests to release it. It has a goroutine only while it reads the node.
type nodeWatcher struct {
	nodes  *nodes
	index  int // among them
	mu     sync.Mutex
	state  watcherState
	timer  *time.Timer        // of the next read; nil: there is none
	cancel context.CancelFunc // of the read under way
}

type watcherState int

const (
	idle     watcherState = iota // until the timer, or wake
	reading                      // the node
	watching                     // until the watch fires
	stopped                      // the ownership has ended
)

// start watches the node, by watch if there is one.
func (w *nodeWatcher) start(watch *framework.Watch) {
	w.mu.Lock()
	switch {
	case w.state != idle:
	case watch != nil:
		w.state = watching
	default:
		w.timer = time.AfterFunc(watchAfter, w.wake)
	}
	w.mu.Unlock()
	if watch != nil {
		bridge.OfWatch(watch).Then(w.fired)
	}
}

// fired is called when the watch has fired. It must not wait for anything.
func (w *nodeWatcher) fired() {
	w.mu.Lock()
	if w.state == watching {
		w.state = idle
	}
	w.mu.Unlock()
	w.wake()
}

// wake starts to read the node, unless it is being read or watched.
func (w *nodeWatcher) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state != idle {
		return
	}
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	if !bridge.OfSession(w.nodes.Session).Go(func() { w.read(ctx) }) {
		cancel()
		return // the ownership ends with the session
	}
	w.state, w.cancel = reading, cancel
}

// stopLocked ends the watcher. It needs mu of the ownership.
func (w *nodeWatcher) stopLocked() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state = stopped
	if w.timer != nil {
		w.timer.Stop()
	}
	if w.cancel != nil {
		w.cancel()
	}
	w.timer, w.cancel = nil, nil
}

// read reads the node with a watch, and acts on what it finds.
func (w *nodeWatcher) read(ctx context.Context) {
	n := w.nodes
	ctx, stop := n.Lifetime.Bound(ctx)
	defer stop()
	node := n.Nodes[w.index].Path
	data, stat, watch, err := n.Session.GetW(ctx, node)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		n.owner.lose(&nodeDeletedError{node: node})
		return
	case err != nil:
		w.next(func() { w.state, w.timer = idle, time.AfterFunc(watchAgain, w.wake) })
		return
	case stat.EphemeralOwner != n.Session.ID():
		n.owner.lose(&nodeDeletedError{node: node, owner: stat.EphemeralOwner})
		return
	}
	if isRevoked(data) {
		n.owner.request()
	}
	w.next(func() { w.state = watching })
	bridge.OfWatch(watch).Then(w.fired)
}

// next sets what follows a read, unless the watcher has been stopped.
func (w *nodeWatcher) next(set func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state != reading {
		return
	}
	w.cancel()
	w.cancel = nil
	set()
}
