package queue

import (
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/recipes/internal/locknode"
)

// Waiters of one session that are adjacent in one queue know each other. The later one need not
// list the queue, which may be long, nor read the predecessor, which has a watch already. It
// relies on the following:
//
//   - The nodes ahead of a node only become fewer, and no node is created between two others. So
//     once a waiter has reached the front, all nodes that were ever ahead of it are deleted. When
//     its own node is deleted, no node is ahead of the next one. If its node is deleted before it
//     has reached the front, the next waiter lists the queue.
//   - Only the client of a hold creates another node at its position (Lock.takePosition), by a
//     transaction that needs the node of the hold. It is recorded in the waiter before that
//     transaction is sent, if the waiter is registered (sessionState.notePositionTaken). A waiter
//     that was registered until its node was deleted so has the record, and the next waiter lists
//     the queue.
//   - The predecessor is the next node ahead. Either a list shows it, or its number is one
//     smaller: the servers give each node of one parent another number. The parent is the same,
//     and was not deleted and created again, if the watch on the predecessor is unbroken after the
//     create of the own node was answered (sameSessionPredecessor). The predecessor's node has
//     existed all that time.
//   - The predecessor's hold has ended: the client has asked for the deletion, or knows of the loss
//     (waiter.hasLeft). If another client has deleted the node, or the session has ended on the servers,
//     the event comes first, and the next waiter lists the queue. At the end of a session the servers
//     report the deletion of all its nodes one by one. Otherwise each waiter would be granted the lock
//     until the event of its own node.
//   - The predecessor is deleted when its own watch fires with zk.EventNodeDeleted. The servers
//     report all deletions in order, so if the own node had been deleted first, its watch would have
//     fired first. After a reconnect they report in no order. A watch from before the reconnect then
//     fires with zk.EventNotWatching (framework.Watch), and the queue is listed.
//
// None of this holds for a waiter that shares the front with nodes of its kind: when its node is
// deleted, the others may still be ahead of the next waiter.

// watchedWaiter is a waiter and the watch on its node. The node exists until the watch fires.
type watchedWaiter struct {
	*waiter
	watch *framework.Watch // on its own node; nil: there is no such waiter
}

// exclusive reports whether the own nodes conflict with all nodes of the queue.
func (r Rules) exclusive() bool { return len(r.Compatible) == 0 }

// numbersTell reports whether the numbers of w and of the node with number seq show which one is
// next.
func (w *waiter) numbersTell(seq int32) bool {
	return w.queue.rules.exclusive() && !w.AtCounterEnd() && !locknode.Node{Seq: seq}.AtCounterEnd()
}

// sameSessionPredecessor returns the waiter of the same session with number seq, if it is registered
// and its watch is unbroken.
func (w *waiter) sameSessionPredecessor(seq int32) (n watchedWaiter, ok bool) {
	if !w.numbersTell(seq) {
		return watchedWaiter{}, false
	}
	n, ok = w.sameSessionWaiter(seq)
	if !ok || !bridge.OfWatch(n.watch).Unbroken() {
		return watchedWaiter{}, false
	}
	return n, true
}

// sameSessionPredecessorByNumber returns what is ahead of a new waiter, if the node with the number
// before its own is of the same session.
func (w *waiter) sameSessionPredecessorByNumber() (nodesAhead, bool) {
	n, ok := w.sameSessionPredecessor(w.Seq - 1)
	if !ok {
		return nodesAhead{}, false
	}
	return nodesAhead{predecessor: n.Node, sameSession: n}, true
}

// linkSameSession sets ahead.sameSession if the predecessor is a waiter of the same session.
func (w *waiter) linkSameSession(ahead *nodesAhead) {
	if ahead.none() || ahead.numberIsShared() {
		return
	}
	if n, ok := w.sameSessionPredecessor(ahead.predecessor.Seq); ok && n.Name == ahead.predecessor.Name {
		ahead.sameSession = n
	}
}

// linkDeleted is linkSameSession after the deletion of the predecessor. The two waiters may have
// enqueued together, so that the predecessor was registered after the list that showed it.
func (w *waiter) linkDeleted(ahead *nodesAhead) {
	if ahead.numberIsShared() || !w.numbersTell(ahead.predecessor.Seq) {
		return
	}
	if n, ok := w.deletedWaiter(ahead.predecessor); ok {
		ahead.sameSession = n
	}
}
