package queue

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/recipes/internal/enqueue"
	"github.com/docent-zk/docent/recipes/internal/locknode"
	"github.com/docent-zk/docent/recipes/internal/ownership"
	"github.com/docent-zk/docent/recipes/internal/queuelist"
)

// nodesAhead is what a waiter knows of the conflicting nodes ahead of its own: at most two of them.
type nodesAhead struct {
	predecessor      locknode.Node // the last conflicting node ahead; without a name: there is none
	grandPredecessor locknode.Node // the one before the predecessor; without a name: there is none
	// deletionGrants: the predecessor is the first of all nodes and the only conflicting one, and no
	// other node takes its position. Its deletion grants the lock.
	deletionGrants bool
	ofOwnSession   bool             // the predecessor may be a node of the own session
	watch          *framework.Watch // on the predecessor; nil: there is none yet
	sameSession    watchedWaiter    // the predecessor, if it is registered in the same session: its watch serves both
}

// none reports whether no conflicting node is ahead.
func (ahead nodesAhead) none() bool { return ahead.predecessor.Name == "" }

// hasSharedWatch reports whether a waiter of the same session watches the predecessor.
func (ahead nodesAhead) hasSharedWatch() bool { return ahead.sameSession.watch != nil }

// numberIsShared reports whether another node ahead has the number of the predecessor. That one must
// be deleted, too.
func (ahead nodesAhead) numberIsShared() bool {
	return ahead.grandPredecessor.Name != "" && ahead.grandPredecessor.Seq == ahead.predecessor.Seq
}

// add adds a node that is behind the predecessor. It becomes the predecessor.
func (ahead *nodesAhead) add(m locknode.Node) {
	ahead.predecessor, ahead.grandPredecessor = m, ahead.predecessor
}

// toWatch returns the node to wait for. It is the grandpredecessor, so that the queue is listed
// while the predecessor still holds. It is the predecessor if there is no other, if the queue is
// listed after each deletion anyway (PositionsReused), or if its watch is there already (same
// session).
func (ahead nodesAhead) toWatch(rules Rules) locknode.Node {
	if rules.PositionsReused || ahead.grandPredecessor.Name == "" || ahead.hasSharedWatch() {
		return ahead.predecessor
	}
	return ahead.grandPredecessor
}

// needsNoList reports whether the deletion of the predecessor grants the lock without another list. A
// predecessor that is a waiter of the same session must have reached the front, no other node may have been
// created at its position, and no hold may have it: see waiter.lastAtFront. No hold of the same session may
// have any other predecessor either.
func (w *waiter) needsNoList(ahead nodesAhead) bool {
	if ahead.hasSharedWatch() {
		return ahead.sameSession.lastAtFront()
	}
	return ahead.deletionGrants && !(ahead.ofOwnSession && ownership.HoldsNode(w.session, ahead.predecessor.Name))
}

// waitForFront waits until no conflicting node is ahead of w. It lists the queue, unless the
// predecessor is known without a list. With dontWait it returns ErrBusy instead of waiting.
func (w *waiter) waitForFront(ctx context.Context, observer Observer) (waited bool, err error) {
	ahead, known := w.sameSessionPredecessorByNumber()
	if !known {
		ahead, err = w.listQueue(ctx)
	}
	switch {
	case err != nil:
		return false, err
	case ahead.none():
		w.reachedFront.Store(true)
		return false, nil
	case observer == dontWait:
		w.setWaitsFor(ahead.predecessor)
		return false, OwnNodes{w}.Busy()
	}
	observer.Waits(OwnNodes{w})
	if err = w.waitForNodesAhead(ctx, ahead); err == nil {
		w.reachedFront.Store(true)
	}
	return true, err
}

// waitForNodesAhead waits until the conflicting nodes ahead are deleted.
func (w *waiter) waitForNodesAhead(ctx context.Context, ahead nodesAhead) error {
	for !ahead.none() {
		w.setWaitsFor(ahead.predecessor)
		watched := ahead.toWatch(w.queue.rules)
		deleted, err := w.waitForDeletion(ctx, watched, &ahead)
		if err != nil {
			return w.waitError(ctx, true, err)
		}
		isAhead := !deleted || watched != ahead.predecessor
		if !isAhead {
			w.linkDeleted(&ahead)
		}
		switch {
		case deleted && w.needsNoList(ahead):
			return nil
		case deleted && isAhead:
			ahead, err = w.relist(ctx, ahead)
		default:
			ahead, err = w.listQueue(ctx)
		}
		if err != nil {
			return w.waitError(ctx, isAhead, err)
		}
	}
	return nil
}

// waitError returns the error of a wait that has ended with err. isAhead says that the predecessor was
// not deleted, as far as is known. If it was, the lock may be free.
func (w *waiter) waitError(ctx context.Context, isAhead bool, err error) error {
	var busy error
	if isAhead {
		busy = OwnNodes{w}.Busy()
	}
	return WaitError(ctx, w.queue.client, busy, err)
}

// relist lists the queue after the deletion of the grandpredecessor. The predecessor is read with a
// watch in the same round trip: it is the predecessor still, unless it was deleted too. If the
// predecessor has registered meanwhile as a waiter of the same session, relist reads nothing.
func (w *waiter) relist(ctx context.Context, previous nodesAhead) (ahead nodesAhead, err error) {
	if w.linkSameSession(&previous); previous.hasSharedWatch() {
		return previous, nil
	}
	var read <-chan nodeRead
	bridge.OfSession(w.session).Together(func() {
		w.pendingList, read = w.requestList(), w.startRead(previous.predecessor) // listQueue takes pendingList
	})
	if ahead, err = w.listQueue(ctx); ahead.predecessor == previous.predecessor {
		w.recordPredecessor(&ahead, w.finishRead(ctx, read))
	}
	return ahead, err
}

// listQueue lists the queue and returns the nodes ahead of w.
func (w *waiter) listQueue(ctx context.Context) (nodesAhead, error) {
	for {
		list, err := w.awaitList(ctx)
		if err != nil {
			return nodesAhead{}, w.recordDeletion(ctx, err)
		}
		order := list.Order()
		enqueue.WarnOfOtherLock(w.queue.client, w.queue.log, w.queue.dir.Key, order.OtherLock)
		found := w.findAhead(order)
		if !found.listed {
			// Without its node, a waiter would seem to be first. w.deleted is not set, so that attempt still
			// deletes the node, in case it exists.
			return nodesAhead{}, enqueue.ErrOwnNodeDeleted
		}
		older, missing, err := w.createdBefore(ctx, found.uncertain)
		if err != nil {
			return nodesAhead{}, err
		}
		for _, m := range older {
			found.add(m)
		}
		if missing && found.none() && w.queue.rules.PositionsReused {
			continue // a missing writer may have downgraded: a reader node may have its position
		}
		found.deletionGrants = w.deletionWouldGrant(&found)
		w.linkSameSession(&found.nodesAhead)
		return found.nodesAhead, nil
	}
}

// awaitList waits for a list of the queue that shows the own node if it exists: the pending one, if
// there is one, or a new one.
func (w *waiter) awaitList(ctx context.Context) (*queuelist.List, error) {
	return RetryInSession(ctx, w.session, func(ctx context.Context) (*queuelist.List, error) {
		list := w.pendingList
		if w.pendingList = nil; list == nil {
			list = w.requestList()
		}
		return list, list.Wait(ctx)
	})
}

// createdBefore returns those of the nodes that were created before that of w, in the order of the
// transactions that created them. It also reports whether a node is missing: that one's
// transaction cannot be read. Without nodes it reads nothing.
func (w *waiter) createdBefore(ctx context.Context,
	nodes []locknode.Node) (older []locknode.Node, missing bool, err error) {
	if len(nodes) == 0 {
		return nil, false, nil
	}
	if err := w.readToken(ctx); err != nil {
		return nil, false, err
	}
	czxids := map[string]int64{}
	for _, m := range nodes {
		stat, err := RetryInSession(ctx, w.session, func(ctx context.Context) (*zk.Stat, error) {
			return w.session.Exists(ctx, w.queue.Child(m.Name))
		})
		if errors.Is(err, zk.ErrNoNode) {
			missing = true
			continue
		}
		if err != nil {
			return nil, false, err
		}
		if stat.Czxid < w.token {
			czxids[m.Name] = stat.Czxid
			older = append(older, m)
		}
	}
	slices.SortFunc(older, func(a, b locknode.Node) int { return cmp.Compare(czxids[a.Name], czxids[b.Name]) })
	return older, missing, nil
}

// waitForDeletion waits until the watch of node, which is one of those ahead, fires. It reports
// whether node was deleted while the own node still existed. Otherwise the caller must list the
// queue again.
func (w *waiter) waitForDeletion(ctx context.Context, node locknode.Node,
	ahead *nodesAhead) (deleted bool, err error) {
	watch, err := w.watchAhead(ctx, node, ahead)
	if err != nil && !ctxerr.Answered(ctx, err, zk.ErrNoNode) {
		return false, err
	}
	if err := w.watchOwn(ctx); err != nil {
		return false, err
	}
	if watch == nil {
		// The node was in the list and does not exist now. Where the own watch is unbroken, both answers
		// came on one connection, on which that watch is still set. So the own node exists.
		return bridge.OfWatch(w.ownWatch).Unbroken(), w.session.Err()
	}
	for { // the own watch also fires for new data (Revoke): waitAny sets it again
		if err := w.waitAny(ctx, watch, nil); err != nil {
			return false, err
		}
		if fired(watch) {
			// The server reports deletions in order. If the own node was deleted first, its watch has fired.
			// After a reconnect there is no order: a watch from before fires with zk.EventNotWatching.
			return watch.Event() == zk.EventNodeDeleted && !fired(w.ownWatch), w.session.Err()
		}
	}
}

// watchAhead returns a watch on node, which is one of those ahead. If it has to be set, and the own
// node is not watched, that one is watched in the same round trip.
func (w *waiter) watchAhead(ctx context.Context, node locknode.Node,
	ahead *nodesAhead) (*framework.Watch, error) {
	var read nodeRead
	switch {
	case ahead.hasSharedWatch():
		return ahead.sameSession.watch, nil
	case ahead.watch != nil && node == ahead.predecessor:
		return ahead.watch, nil
	case w.ownIsWatched():
		read = w.watchNode(ctx, node)
	default:
		read = w.watchNodeAndOwn(ctx, node)
	}
	if node == ahead.predecessor {
		w.recordPredecessor(ahead, read)
	}
	return read.watch, read.err
}

// recordPredecessor stores what was read of the predecessor.
func (w *waiter) recordPredecessor(ahead *nodesAhead, read nodeRead) {
	ahead.watch = read.watch
	ahead.ofOwnSession = read.stat == nil || read.stat.EphemeralOwner == w.session.ID()
}

// watchNodeAndOwn watches another node and the own node. A failure to watch the own node is left to
// the next call of watchOwn.
func (w *waiter) watchNodeAndOwn(ctx context.Context, m locknode.Node) nodeRead {
	var otherRead, ownRead <-chan nodeRead
	bridge.OfSession(w.session).Together(func() { otherRead, ownRead = w.startRead(m), w.startRead(w.Node) })
	other := w.finishRead(ctx, otherRead)
	_ = w.recordOwn(ctx, w.finishRead(ctx, ownRead)) // watchOwn reads it again and reports the error
	if other.err == nil || ctxerr.Answered(ctx, other.err, zk.ErrNoNode) {
		return other
	}
	return w.watchNode(ctx, m)
}

// watchNode watches another node.
func (w *waiter) watchNode(ctx context.Context, m locknode.Node) (read nodeRead) {
	_, read.err = RetryInSession(ctx, w.session, func(ctx context.Context) (_ struct{}, err error) {
		_, read.stat, read.watch, err = w.session.GetW(ctx, w.queue.Child(m.Name))
		return struct{}{}, err
	})
	return read
}

// waitAny waits until one of two watches, or that of the own node, has fired, or the session has
// ended. A watch that is nil does not fire.
func (w *waiter) waitAny(ctx context.Context, first, second *framework.Watch) error {
	if err := w.watchOwn(ctx); err != nil {
		return err
	}
	select {
	case <-firing(first):
	case <-firing(second):
	case <-firing(w.ownWatch):
	case <-ctx.Done():
		return ctxerr.Of(ctx)
	}
	return nil
}

// firing returns a channel that is closed when the watch fires; nil if there is no watch.
func firing(w *framework.Watch) <-chan struct{} {
	if w == nil {
		return nil
	}
	return w.Fired()
}

// nodeRead is the answer to a read of a node with a watch.
type nodeRead struct {
	data  []byte
	stat  *zk.Stat
	watch *framework.Watch
	err   error
}

// startRead sends a read of a node with a watch. It does not wait for the answer.
func (w *waiter) startRead(m locknode.Node) <-chan nodeRead {
	read := make(chan nodeRead, 1)
	deliver := func(data []byte, stat *zk.Stat, watch *framework.Watch, err error) {
		read <- nodeRead{data, stat, watch, err}
	}
	bridge.OfSession(w.session).StartGetW(w.queue.Child(m.Name), deliver)
	return read
}

// finishRead waits for the answer, as long as ctx and the session last.
func (w *waiter) finishRead(ctx context.Context, read <-chan nodeRead) nodeRead {
	select {
	case r := <-read:
		return r
	case <-ctx.Done():
		return nodeRead{err: ctxerr.Of(ctx)}
	case <-w.session.Done():
		return nodeRead{err: w.session.Err()}
	}
}
