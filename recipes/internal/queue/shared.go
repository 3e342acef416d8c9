package queue

import (
	"context"
	"sync"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/ctxerr"
)

// sessionState is what the waiters of one session share: lists of queues, and watches on their own
// nodes. A queue is identified by its Queue.Key: two with the same directory and kinds are one.
type sessionState struct {
	mu sync.Mutex // nothing waits while it is held
	// underWay has the queues of which a list is under way, by key.
	underWay map[any]*listUnderWay
	// watched has the waiters with a watch on their own nodes, by the key of the queue and the number
	// of the node. One is removed when its watch fires, also for new data. waiter.recordOwn adds it again
	// if it still waits.
	watched map[any]map[int32]watchedWaiter
}

// listUnderWay says that a list of a queue was sent and is not answered yet.
type listUnderWay struct {
	next *listing // to send after the answer; nil: no waiter has requested another one
}

// listing is one list of a directory. All waiters that requested it share it.
type listing struct {
	rules    Rules         // of the queue
	done     chan struct{} // closed when children and err are set
	children []string
	err      error

	sort  sync.Once
	order order
}

// requestList requests a list of the queue and does not wait for it. While one is under way in
// the session, all callers share the next list. That one is sent after all of them have called
// requestList, so it shows the nodes of all creates that were sent before a call.
func (w *waiter) requestList() *listing {
	state, key := w.shared, w.queue.key
	list := &listing{rules: w.queue.rules, done: make(chan struct{})}
	state.mu.Lock()
	if running := state.underWay[key]; running != nil {
		defer state.mu.Unlock()
		if running.next == nil {
			running.next = list
		}
		return running.next
	}
	if state.underWay == nil {
		state.underWay = map[any]*listUnderWay{}
	}
	state.underWay[key] = &listUnderWay{}
	state.mu.Unlock()
	state.startList(w.session, w.queue, list)
	return list
}

// startList sends the request, and that of the next list when the answer has arrived.
func (state *sessionState) startList(s *framework.Session, q *Queue, list *listing) {
	bridge.OfSession(s).StartChildren(q.path, func(children []string, err error) {
		list.children, list.err = children, err
		close(list.done)
		state.mu.Lock()
		next := state.underWay[q.key].next
		if next != nil {
			state.underWay[q.key] = &listUnderWay{} // next is under way from now on
		} else {
			delete(state.underWay, q.key)
		}
		state.mu.Unlock()
		if next != nil {
			state.startList(s, q, next)
		}
	})
}

// wait waits for the answer, as long as ctx and the session last.
func (l *listing) wait(ctx context.Context, s *framework.Session) error {
	select {
	case <-l.done:
		return l.err
	case <-ctx.Done():
		return ctxerr.Of(ctx)
	case <-s.Done():
		return s.Err()
	}
}

// hasSameSessionWaiter reports whether a waiter of the session is registered for the same queue.
func (w *waiter) hasSameSessionWaiter() bool {
	w.shared.mu.Lock()
	defer w.shared.mu.Unlock()
	return len(w.shared.watched[w.queue.key]) > 0
}

// sameSessionWaiter returns the waiter of the session that is registered with the number.
func (w *waiter) sameSessionWaiter(seq int32) (watchedWaiter, bool) {
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
	state, queue, added := w.shared, w.queue.key, watchedWaiter{w, w.ownWatch}
	if state.add(queue, added) {
		bridge.OfWatch(added.watch).Then(func() { state.remove(queue, added) })
	}
}

// add adds a waiter. It reports false if the waiter with this watch was there.
func (state *sessionState) add(queue any, w watchedWaiter) bool {
	state.mu.Lock()
	defer state.mu.Unlock()
	if state.watched == nil {
		state.watched = map[any]map[int32]watchedWaiter{}
	}
	if state.watched[queue] == nil {
		state.watched[queue] = map[int32]watchedWaiter{}
	}
	previous := state.watched[queue][w.Seq]
	state.watched[queue][w.Seq] = w
	return previous.watch != w.watch
}

// remove removes the waiter with this watch.
func (state *sessionState) remove(queue any, w watchedWaiter) {
	state.mu.Lock()
	defer state.mu.Unlock()
	all := state.watched[queue]
	if all[w.Seq].watch == w.watch {
		delete(all, w.Seq)
	}
	if len(all) == 0 {
		delete(state.watched, queue)
	}
}
