package queue

import (
	"context"
	"sync"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/ctxerr"
)

// shared is what the waiters of one session share: lists of queues, and watches on their own nodes.
// Queues have the keys of Queue.Key: two with the same directory and conflicting kinds count as one.
type shared struct {
	mu sync.Mutex // nothing waits while it is held
	// lists has each queue of which a list is under way. The value is the next list; nil: no waiter
	// has requested another one.
	lists map[any]*listing
	// watched has the waiters with a watch on their own nodes, by number. One is removed when its watch
	// fires: its node is deleted or the session has ended.
	watched map[any]map[int32]watchedWaiter
}

// listing is one list of a directory. All waiters that requested it share it.
type listing struct {
	done     chan struct{} // closed when children and err are set
	children []string
	err      error

	sort  sync.Once
	order order
}

// requestList requests a list of the queue and does not wait for it. While one is under way in
// the session, all callers share the next list. That one is sent after all of them have called
// requestList, so it shows the nodes of all creates sent before.
func (w *waiter) requestList() *listing {
	shared, queue := w.shared, w.queue.key
	shared.mu.Lock()
	asked, running := shared.lists[queue]
	if asked == nil {
		asked = &listing{done: make(chan struct{})}
	}
	switch {
	case running:
		shared.lists[queue] = asked
	case shared.lists == nil:
		shared.lists = map[any]*listing{queue: nil}
	default:
		shared.lists[queue] = nil
	}
	shared.mu.Unlock()
	if !running {
		shared.startList(w.session, w.queue, asked)
	}
	return asked
}

// startList sends the request, and that of the next list when the answer has arrived.
func (x *shared) startList(s *framework.Session, q *Queue, asked *listing) {
	bridge.OfSession(s).StartChildren(q.path, func(children []string, err error) {
		asked.children, asked.err = children, err
		close(asked.done)
		x.mu.Lock()
		next := x.lists[q.key]
		if next == nil {
			delete(x.lists, q.key)
		} else {
			x.lists[q.key] = nil
		}
		x.mu.Unlock()
		if next != nil {
			x.startList(s, q, next)
		}
	})
}

// wait waits for the answer, as long as ctx and the session last.
func (x *listing) wait(ctx context.Context, s *framework.Session) error {
	select {
	case <-x.done:
		return x.err
	case <-ctx.Done():
		return ctxerr.Of(ctx)
	case <-s.Done():
		return s.Err()
	}
}

// hasLocalWaiter reports whether a waiter of the session is registered for the same queue.
func (w *waiter) hasLocalWaiter() bool {
	w.shared.mu.Lock()
	defer w.shared.mu.Unlock()
	return len(w.shared.watched[w.queue.key]) > 0
}

// localWaiter returns the waiter of the session that is registered with the number.
func (w *waiter) localWaiter(seq int32) (watchedWaiter, bool) {
	w.shared.mu.Lock()
	defer w.shared.mu.Unlock()
	other, ok := w.shared.watched[w.queue.key][seq]
	return other, ok
}

// register makes w and its watch known to later waiters of the session, until the watch fires.
func (w *waiter) register() {
	if !w.numbersTell(w.Seq) {
		return
	}
	shared, queue, added := w.shared, w.queue.key, watchedWaiter{w, w.ownWatch}
	if shared.add(queue, added) {
		bridge.OfWatch(added.watch).Then(func() { shared.remove(queue, added) })
	}
}

// add adds a waiter. It reports false if the waiter with this watch was there.
func (x *shared) add(queue any, w watchedWaiter) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.watched == nil {
		x.watched = map[any]map[int32]watchedWaiter{}
	}
	if x.watched[queue] == nil {
		x.watched[queue] = map[int32]watchedWaiter{}
	}
	previous := x.watched[queue][w.Seq]
	x.watched[queue][w.Seq] = w
	return previous.watch != w.watch
}

// remove removes the waiter with this watch.
func (x *shared) remove(queue any, w watchedWaiter) {
	x.mu.Lock()
	defer x.mu.Unlock()
	all := x.watched[queue]
	if all[w.Seq].watch == w.watch {
		delete(all, w.Seq)
	}
	if len(all) == 0 {
		delete(x.watched, queue)
	}
}
