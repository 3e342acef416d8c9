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
)

// predecessors is what a waiter knows of the conflicting nodes ahead of its own.
type predecessors struct {
	predecessor      locknode.Node // the last conflicting node ahead; without a name: there is none
	grandPredecessor locknode.Node // the one before the predecessor; without a name: there is none
	// deletionGrants: the predecessor is the first of all nodes and the only conflicting one, and no
	// other node takes its position. Its deletion grants the lock.
	deletionGrants bool
	watch          *framework.Watch // on the predecessor; nil: there is none yet
	local          watchedWaiter    // the predecessor, if it is of the same session
}

// none reports whether no conflicting node is ahead.
func (ahead predecessors) none() bool { return ahead.predecessor.Name == "" }

// add adds a node that is behind the predecessor. It becomes the predecessor.
func (ahead *predecessors) add(m locknode.Node) {
	ahead.predecessor, ahead.grandPredecessor = m, ahead.predecessor
}

// toWatch returns the node to wait for. It is the grandpredecessor, so that the queue is listed
// while the predecessor still holds. It is the predecessor if there is no other, or if a list
// then is of no use.
func (ahead predecessors) toWatch(rules Rules) locknode.Node {
	if rules.MayBeReplaced || ahead.grandPredecessor.Name == "" || ahead.local.watch != nil {
		return ahead.predecessor // MayBeReplaced needs a list after each deletion, a local one needs none
	}
	return ahead.grandPredecessor
}

// deletionSuffices reports whether the deletion of the predecessor grants the lock without
// another list. That is also so if the predecessor is a waiter of the same session that has
// reached the front.
func (ahead predecessors) deletionSuffices() bool {
	return ahead.deletionGrants || ahead.local.watch != nil && ahead.local.reachedFront.Load()
}

// waitForFront waits until no conflicting node is ahead of w. It lists the queue, unless the
// predecessor is known without a list. Without an observer it returns ErrBusy instead of waiting.
func (w *waiter) waitForFront(ctx context.Context, observer Observer) (waited bool, err error) {
	ahead, known := w.localPredecessorByNumber()
	if !known {
		ahead, err = w.listQueue(ctx)
	}
	switch {
	case err != nil:
		return false, err
	case ahead.none():
		w.reachedFront.Store(true)
		return false, nil
	case observer == nil:
		return false, ErrBusy
	}
	observer.Waits(OwnNodes{w})
	if err = w.waitForPredecessors(ctx, ahead); err == nil {
		w.reachedFront.Store(true)
	}
	return true, err
}

// waitForPredecessors waits until the conflicting nodes ahead are deleted.
func (w *waiter) waitForPredecessors(ctx context.Context, ahead predecessors) error {
	for !ahead.none() {
		deleted, err := w.waitForDeletion(ctx, ahead)
		if err != nil {
			return WaitError(ctx, err)
		}
		if deleted && ahead.deletionSuffices() {
			return nil
		}
		if ahead, err = w.relist(ctx, ahead, deleted); err != nil {
			return WaitError(ctx, err)
		}
	}
	return nil
}

// relist lists the queue again. If the grandpredecessor was deleted, the predecessor is read
// with a watch in the same round trip: it is the predecessor still, unless it was deleted too.
// If it has become known as a waiter of the same session meanwhile, relist reads nothing.
func (w *waiter) relist(ctx context.Context, previous predecessors, deleted bool) (ahead predecessors, err error) {
	if !deleted || previous.toWatch(w.queue.rules) == previous.predecessor {
		return w.listQueue(ctx)
	}
	if w.linkLocalPredecessor(&previous); previous.local.watch != nil {
		return previous, nil
	}
	var read <-chan nodeRead
	bridge.OfSession(w.session).Together(func() {
		w.pendingList, read = w.requestList(), w.startRead(previous.predecessor)
	})
	if ahead, err = w.listQueue(ctx); ahead.predecessor == previous.predecessor {
		ahead.watch = w.finishRead(ctx, read).watch
	}
	return ahead, err
}

// listQueue lists the queue and returns the predecessors of w.
func (w *waiter) listQueue(ctx context.Context) (predecessors, error) {
	list, err := w.awaitList(ctx)
	if err != nil {
		return predecessors{}, w.noteDeleted(ctx, err)
	}
	found := w.snapshot(list.sorted(w.queue.rules))
	if !found.listed {
		// A waiter that is not in the list must not find itself first. Its node is deleted all the same.
		return predecessors{}, enqueue.ErrOwnNodeDeleted
	}
	if len(found.uncertain) > 0 {
		older, missing, err := w.createdBefore(ctx, found.uncertain)
		if err != nil {
			return predecessors{}, err
		}
		for _, m := range older {
			found.add(m)
		}
		if found.none() && missing && w.queue.rules.MayBeReplaced {
			return w.listQueue(ctx) // another node may have taken the position of a missing one
		}
	}
	found.deletionGrants = found.isOnlyOneAhead(w)
	w.linkLocalPredecessor(&found.predecessors)
	return found.predecessors, nil
}

// awaitList waits for a list of the queue that shows the own node if it exists: the list that
// was requested behind the create, or a new one.
func (w *waiter) awaitList(ctx context.Context) (*listing, error) {
	return RetryInSession(ctx, w.session, func(ctx context.Context) (*listing, error) {
		list := w.pendingList
		if w.pendingList = nil; list == nil {
			list = w.requestList()
		}
		return list, list.wait(ctx, w.session)
	})
}

// createdBefore returns the nodes that were created before that of w, in the order of the
// transactions that created them. It also reports whether a node is missing: that one's
// transaction cannot be read.
func (w *waiter) createdBefore(ctx context.Context,
	nodes []locknode.Node) (older []locknode.Node, missing bool, err error) {
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

// waitForDeletion waits until the watch of a predecessor fires. It reports whether that node was
// deleted while the own node still existed. Otherwise the caller must list the queue again.
func (w *waiter) waitForDeletion(ctx context.Context, ahead predecessors) (deleted bool, err error) {
	watch, err := w.watchPredecessor(ctx, ahead)
	if err != nil && !ctxerr.Answered(ctx, err, zk.ErrNoNode) {
		return false, err
	}
	if own := w.watchOwn(ctx); own != nil {
		return false, own
	}
	if watch == nil {
		// The node was in the list and does not exist now. The own node does: otherwise its watch would
		// have fired before either answer.
		return bridge.OfWatch(w.ownWatch).Unbroken(), w.session.Err()
	}
	for {
		if err := w.waitAny(ctx, watch); err != nil {
			return false, err
		}
		if fired(watch) {
			// The server reports deletions in order. If the own node was deleted first, its watch has fired.
			return watch.Event() == zk.EventNodeDeleted && !fired(w.ownWatch), w.session.Err()
		}
	}
}

// watchPredecessor watches the node to wait for, and the own node in the same round trip.
func (w *waiter) watchPredecessor(ctx context.Context, ahead predecessors) (watch *framework.Watch, err error) {
	node := ahead.toWatch(w.queue.rules)
	switch {
	case ahead.local.watch != nil:
		watch = ahead.local.watch
	case ahead.watch != nil && node == ahead.predecessor:
		watch = ahead.watch
	case w.ownIsWatched():
		watch, err = w.watchNode(ctx, node)
	default:
		watch, err = w.watchNodeAndOwn(ctx, node)
	}
	return watch, err
}

// watchNodeAndOwn watches another node and the own node. A read of the own node that was not
// answered is left to the next call of watchOwn.
func (w *waiter) watchNodeAndOwn(ctx context.Context, m locknode.Node) (*framework.Watch, error) {
	var ahead, own <-chan nodeRead
	bridge.OfSession(w.session).Together(func() { ahead, own = w.startRead(m), w.startRead(w.Node) })
	other := w.finishRead(ctx, ahead)
	_ = w.recordOwn(ctx, w.finishRead(ctx, own))
	if other.err == nil || ctxerr.Answered(ctx, other.err, zk.ErrNoNode) {
		return other.watch, other.err
	}
	return w.watchNode(ctx, m)
}

// watchNode watches another node.
func (w *waiter) watchNode(ctx context.Context, m locknode.Node) (*framework.Watch, error) {
	return RetryInSession(ctx, w.session, func(ctx context.Context) (*framework.Watch, error) {
		return w.readWatch(ctx, m)
	})
}

func (w *waiter) readWatch(ctx context.Context, m locknode.Node) (*framework.Watch, error) {
	_, _, watch, err := w.session.GetW(ctx, w.queue.Child(m.Name))
	return watch, err
}

// waitAny waits until one of the watches, or that of the own node, has fired, or the session has
// ended.
func (w *waiter) waitAny(ctx context.Context, watches ...*framework.Watch) error {
	if err := w.watchOwn(ctx); err != nil {
		return err
	}
	return waitAnyWatch(ctx, append(watches, w.ownWatch))
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

// waitAnyWatch waits until one of at most three watches has fired, or ctx has ended.
func waitAnyWatch(ctx context.Context, watches []*framework.Watch) error {
	var fired [3]<-chan struct{}
	for i, w := range watches {
		if w != nil {
			fired[i] = w.Fired()
		}
	}
	select {
	case <-fired[0]:
	case <-fired[1]:
	case <-fired[2]:
	case <-ctx.Done():
		return ctxerr.Of(ctx)
	}
	return nil
}
