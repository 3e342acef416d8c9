package queue

import (
	"sync"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
)

// Those of one session who stand in one line one behind the other know of each other. It saves the one behind to look who is ahead, and
// to be told: it need not read the line, which may be long, nor the node ahead, which that one watches already. Why it can rely on that:
//
//   - Who is ahead only becomes fewer, and nobody comes between two nodes. So once a place has been at the front, all who have ever been
//     ahead of it are gone, whatever has become of itself; and when it goes, nobody is ahead of who was next behind it. If it goes before,
//     the line has to be read.
//   - It was the next: a list says so, or its number is the one before, for the servers number the nodes of one parent, each with another
//     number. That it is the same parent, and not one that was deleted and made again, shows in its watch being unbroken when ours
//     is there: so its node is there too, and has been since before.
//   - It is gone: its own watch says so, in the order in which the servers tell of all that happens. If ours had gone before, our watch
//     would have fired before. After a reconnect they tell in no order, and the line has to be read.
//
// Where a node may leave another at its place, or one that does not stand in the way may put one there that does, none of that holds.

// neighbour is a place whose node is there as long as the watch has not fired.
type localPredecessor struct {
	*waiter
	watch *framework.Watch // its own; nil: there is no neighbour
}

// neighbours are all places that have a watch on their nodes, by line and session, and number. One leaves when its watch fires, as it
// does when the node goes, or the session is over. Two lines with the same rules of who is in the way are the same. One lock serves all:
// nothing waits under it.
var watchedWaiters = struct {
	mu  sync.Mutex
	all map[sessionKey]map[int32]localPredecessor
}{all: map[sessionKey]map[int32]localPredecessor{}}

// settled reports whether who is ahead of a place leaves nothing, and nobody else does.
func (r Rules) deletionIsFinal() bool { return !r.MayBeReplaced && len(r.Compatible) == 0 }

// tells reports whether numbers tell who is the next in our line, and that one's does.
func (w *waiter) numbersTell(seq int32) bool {
	return w.queue.rules.deletionIsFinal() && !w.atCounterEnd() && !queueNode{seq: seq}.atCounterEnd()
}

func (q *Queue) keyIn(s *framework.Session) sessionKey { return sessionKey{q.key, s.ID()} }

// accompanied reports whether a place of the session is known to be in the line.
func (q *Queue) hasLocalWaiter(s *framework.Session) bool {
	watchedWaiters.mu.Lock()
	defer watchedWaiters.mu.Unlock()
	return len(watchedWaiters.all[q.keyIn(s)]) > 0
}

// settle lets those behind us know of us, and of our watch.
func (w *waiter) register() {
	if !w.numbersTell(w.seq) {
		return
	}
	at, watch := w.queue.keyIn(w.session), w.ownWatch
	watchedWaiters.mu.Lock()
	known := watchedWaiters.all[at][w.seq].watch == watch
	if watchedWaiters.all[at] == nil {
		watchedWaiters.all[at] = map[int32]localPredecessor{}
	}
	watchedWaiters.all[at][w.seq] = localPredecessor{w, watch}
	watchedWaiters.mu.Unlock()
	if !known {
		bridge.OfWatch(watch).Then(func() { unregister(at, w.seq, watch) })
	}
}

func unregister(at sessionKey, seq int32, watch *framework.Watch) {
	watchedWaiters.mu.Lock()
	defer watchedWaiters.mu.Unlock()
	all := watchedWaiters.all[at]
	if all[seq].watch == watch {
		delete(all, seq)
	}
	if len(all) == 0 {
		delete(watchedWaiters.all, at)
	}
}

// neighbour is the place with a given number, if it is in line in our session, and we know if it goes.
func (w *waiter) localPredecessor(seq int32) (n localPredecessor, ok bool) {
	if !w.numbersTell(seq) {
		return localPredecessor{}, false
	}
	watchedWaiters.mu.Lock()
	n, ok = watchedWaiters.all[w.queue.keyIn(w.session)][seq]
	watchedWaiters.mu.Unlock()
	if !ok || !bridge.OfWatch(n.watch).Unbroken() {
		return localPredecessor{}, false
	}
	return n, true
}

// follow is the view of who has just come, and has a neighbour ahead.
func (w *waiter) localPredecessorByNumber() (predecessors, bool) {
	n, ok := w.localPredecessor(w.seq - 1)
	if !ok {
		return predecessors{}, false
	}
	return predecessors{predecessor: n.queueNode, local: n}, true
}

// meet notes in a view that the last of those ahead is a neighbour.
func (w *waiter) linkLocalPredecessor(ahead *predecessors) {
	if ahead.none() || ahead.grandPredecessor.name != "" && ahead.grandPredecessor.seq == ahead.predecessor.seq {
		return // with somebody else beside it, who must go too
	}
	if n, ok := w.localPredecessor(ahead.predecessor.seq); ok && n.name == ahead.predecessor.name {
		ahead.local = n
	}
}
