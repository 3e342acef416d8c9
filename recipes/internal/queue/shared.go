package queue

import (
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/recipes/internal/locknode"
	"github.com/docent-zk/docent/recipes/internal/queuelist"
)

// sessionState is what the waiters of one session share: lists of queues, and watches on their own
// nodes. A queue is identified by its Queue.Key: two with the same directory and kinds are one.
type sessionState struct {
	lists queuelist.Lists

	mu sync.Mutex // nothing waits while it is held
	// watched has the waiters with a watch on their own nodes, by the key of the queue and the number
	// of the node. One is removed when its watch fires, also for new data. waiter.recordOwn adds it again
	// if it still waits.
	watched map[any]map[int32]watchedWaiter
	// removed has the waiter of each queue in watched that was removed last.
	removed map[any]watchedWaiter
}

// requestList requests a list of the queue and does not wait for it.
func (w *waiter) requestList() *queuelist.List {
	return w.shared.lists.Request(w.session, w.queue.dir)
}

// hasSameSessionWaiter reports whether a waiter of the session is registered for the same queue.
func (w *waiter) hasSameSessionWaiter() bool {
	w.shared.mu.Lock()
	defer w.shared.mu.Unlock()
	return len(w.shared.watched[w.queue.dir.Key]) > 0
}

// sameSessionWaiter returns the waiter of the session that is registered with the number.
func (w *waiter) sameSessionWaiter(seq int32) (watchedWaiter, bool) {
	w.shared.mu.Lock()
	defer w.shared.mu.Unlock()
	other, ok := w.shared.watched[w.queue.dir.Key][seq]
	return other, ok
}

// deletedWaiter returns the waiter of the session with node m, which was deleted just now. It was
// registered until then: its watch has fired for the deletion, and it is removed or about to be.
func (w *waiter) deletedWaiter(m locknode.Node) (watchedWaiter, bool) {
	w.shared.mu.Lock()
	defer w.shared.mu.Unlock()
	queue := w.queue.dir.Key
	for _, other := range []watchedWaiter{w.shared.removed[queue], w.shared.watched[queue][m.Seq]} {
		if other.watch != nil && other.Name == m.Name && other.watch.Event() == zk.EventNodeDeleted {
			return other, true
		}
	}
	return watchedWaiter{}, false
}

// notePositionTaken records in the waiter that holds with node m, if it is registered, that another
// node is about to be created at its position. queues are the keys of the queues that m may be in.
func (state *sessionState) notePositionTaken(queues []any, m locknode.Node) {
	state.mu.Lock()
	defer state.mu.Unlock()
	for _, queue := range queues {
		if holder, ok := state.watched[queue][m.Seq]; ok && holder.Name == m.Name {
			holder.positionTaken.Store(true)
		}
	}
}

// register makes w and its watch known to later waiters of the session, until the watch fires.
func (w *waiter) register() {
	if !w.numbersTell(w.Seq) {
		return
	}
	state, queue, added := w.shared, w.queue.dir.Key, watchedWaiter{w, w.ownWatch}
	if state.add(queue, added) {
		bridge.OfWatch(added.watch).Then(func() { state.remove(queue, added) })
	}
}

// add adds a waiter. It reports false if the waiter with this watch was there.
func (state *sessionState) add(queue any, w watchedWaiter) bool {
	state.mu.Lock()
	defer state.mu.Unlock()
	if state.watched == nil {
		state.watched, state.removed = map[any]map[int32]watchedWaiter{}, map[any]watchedWaiter{}
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
	if all[w.Seq].watch != w.watch {
		return
	}
	delete(all, w.Seq)
	state.removed[queue] = w
	if len(all) == 0 {
		delete(state.watched, queue)
		delete(state.removed, queue)
	}
}
