package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/retry"
)

// view is what a place has seen of its line.
type predecessors struct {
	predecessor, grandPredecessor queueNode // the last of those who stand in our way, and the one before; without a name if there is none
	// final: when the only one ahead goes, nobody can be in our way. It was the first of all, and leaves none at its place.
	deletionGrants bool
	watch          *framework.Watch // on the last of them, if there is one already
	local          localPredecessor // the last of them, if it is a neighbour
}

// clear reports whether nobody is in the way.
func (ahead predecessors) none() bool { return ahead.predecessor.name == "" }

// add adds one more who stands in the way, the last of them.
func (ahead *predecessors) add(m queueNode) {
	ahead.predecessor, ahead.grandPredecessor = m, ahead.predecessor
}

// next is for whom to wait.
func (ahead predecessors) toWatch(rules Rules) queueNode {
	if rules.MayBeReplaced || ahead.grandPredecessor.name == "" || ahead.local.watch != nil {
		return ahead.predecessor // if another can be at its place, there is another look to take whatever goes
	}
	return ahead.grandPredecessor
}

// over reports whether nobody is ahead when the next has gone.
func (ahead predecessors) deletionSuffices() bool {
	return ahead.deletionGrants || ahead.local.watch != nil && ahead.local.reachedFront.Load()
}

// arrive waits until nobody is ahead of p. Without an alarm it does not wait.
func (w *waiter) waitForFront(ctx context.Context, warner *waitWarner) (waited bool, err error) {
	waited, err = w.listAndWait(ctx, warner)
	if err == nil {
		w.reachedFront.Store(true)
	}
	return waited, err
}

func (w *waiter) listAndWait(ctx context.Context, warner *waitWarner) (waited bool, err error) {
	if w.isFirst() {
		return false, nil
	}
	ahead, known := w.localPredecessorByNumber()
	if !known {
		ahead, err = w.listQueue(ctx)
	}
	if err != nil || ahead.none() {
		return false, err
	}
	if warner == nil {
		return false, ErrBusy
	}
	warner.start()
	return true, w.waitForPredecessors(ctx, ahead)
}

// wait waits until nobody is ahead of p any more.
func (w *waiter) waitForPredecessors(ctx context.Context, ahead predecessors) error {
	for !ahead.none() {
		gone, err := w.waitForDeletion(ctx, ahead)
		if err != nil {
			return WaitError(ctx, err)
		}
		if gone && ahead.deletionSuffices() {
			return nil
		}
		if ahead, err = w.relist(ctx, ahead, gone); err != nil {
			return WaitError(ctx, err)
		}
	}
	return nil
}

// lookAgain reads the line after a view of it. If the second last is gone the last is watched at the same time: it has stayed the last,
// unless it is gone too. If that has become a neighbour meanwhile, there is nothing to read.
func (w *waiter) relist(ctx context.Context, previous predecessors, gone bool) (ahead predecessors, err error) {
	if !gone || previous.toWatch(w.queue.rules) == previous.predecessor {
		return w.listQueue(ctx)
	}
	if w.linkLocalPredecessor(&previous); previous.local.watch != nil {
		return previous, nil
	}
	var last <-chan nodeRead
	bridge.OfSession(w.session).Together(func() { w.pendingList, last = w.queue.requestList(w.session), w.startRead(previous.predecessor) })
	if ahead, err = w.listQueue(ctx); ahead.predecessor == previous.predecessor {
		ahead.watch = w.finishRead(ctx, last).watch
	}
	return ahead, err
}

// Waited says of an error that ended a wait for others that it was one.
func WaitError(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", recipes.ErrNotAcquired, err)
	}
	return err
}

// look reads the line.
func (w *waiter) listQueue(ctx context.Context) (predecessors, error) {
	list, err := w.awaitList(ctx)
	if err != nil {
		return predecessors{}, w.noteDeleted(ctx, err)
	}
	found := w.snapshot(list.sorted(w.queue.rules))
	if !found.listed {
		return predecessors{}, ErrOwnNodeDeleted // whoever is not in line is not first in it; what is left of the node is deleted all the same
	}
	if len(found.uncertain) > 0 {
		older, left, err := w.createdBefore(ctx, found.uncertain)
		if err != nil {
			return predecessors{}, err
		}
		for _, m := range older {
			found.add(m)
		}
		if found.none() && left && w.queue.rules.MayBeReplaced {
			return w.listQueue(ctx) // for what is at the place of who has left
		}
	}
	found.deletionGrants = found.isOnlyOneAhead(w)
	w.linkLocalPredecessor(&found.predecessors)
	return found.predecessors, nil
}

// listed waits for a list of the line that shows our node if it is there: the one that was asked for behind the create, or a new one.
func (w *waiter) awaitList(ctx context.Context) (*listing, error) {
	return RetryInSession(ctx, w.session, func(ctx context.Context) (*listing, error) {
		list := w.pendingList
		if w.pendingList = nil; list == nil {
			list = w.queue.requestList(w.session)
		}
		return list, list.wait(ctx, w.session)
	})
}

// olderThan picks from a line those that were created before p, by the transactions that created them. It also says whether any has left,
// of whom that cannot be told.
func (w *waiter) createdBefore(ctx context.Context, nodes []queueNode) (older []queueNode, left bool, err error) {
	if err := w.readToken(ctx); err != nil {
		return nil, false, err
	}
	czxids := map[string]int64{}
	for _, m := range nodes {
		stat, err := RetryInSession(ctx, w.session, func(ctx context.Context) (*zk.Stat, error) {
			return w.session.Exists(ctx, w.queue.node(m.name))
		})
		if errors.Is(err, zk.ErrNoNode) {
			left = true
			continue
		}
		if err != nil {
			return nil, false, err
		}
		if stat.Czxid < w.token {
			czxids[m.name] = stat.Czxid
			older = append(older, m)
		}
	}
	slices.SortFunc(older, func(a, b queueNode) int { return cmp.Compare(czxids[a.name], czxids[b.name]) })
	return older, left, nil
}

// await waits for the next of a view to go, or for a reason to look again. Gone means that it was deleted and we are still in line.
func (w *waiter) waitForDeletion(ctx context.Context, ahead predecessors) (gone bool, err error) {
	watch, err := w.watchPredecessor(ctx, ahead)
	if err != nil && !ctxerr.Answered(ctx, err, zk.ErrNoNode) {
		return false, err
	}
	if own := w.watchOwn(ctx); own != nil {
		return false, own
	}
	if watch == nil {
		// It was in line, and is not. We are: our watch would have fired before either answer that came after we had gone.
		return bridge.OfWatch(w.ownWatch).Unbroken(), w.session.Err()
	}
	for {
		if err := w.waitAny(ctx, watch); err != nil {
			return false, err
		}
		if fired(watch) {
			// The server tells of deletions in their order. If ours came first, its watch has fired before.
			return watch.Event() == zk.EventNodeDeleted && !fired(w.ownWatch), w.session.Err()
		}
	}
}

// watchNext watches for whom we wait, and our own node at the same time.
func (w *waiter) watchPredecessor(ctx context.Context, ahead predecessors) (watch *framework.Watch, err error) {
	next := ahead.toWatch(w.queue.rules)
	switch {
	case ahead.local.watch != nil:
		watch = ahead.local.watch
	case ahead.watch != nil && next == ahead.predecessor:
		watch = ahead.watch
	case w.ownIsWatched():
		watch, err = w.watchNode(ctx, next)
	default:
		watch, err = w.watchNodeAndOwn(ctx, next)
	}
	return watch, err
}

// watchBoth watches somebody else's node and our own. What of our own is not answered is asked for again by whoever needs it.
func (w *waiter) watchNodeAndOwn(ctx context.Context, m queueNode) (*framework.Watch, error) {
	var ahead, own <-chan nodeRead
	bridge.OfSession(w.session).Together(func() { ahead, own = w.startRead(m), w.startRead(w.queueNode) })
	other := w.finishRead(ctx, ahead)
	_ = w.recordOwn(ctx, w.finishRead(ctx, own))
	if other.err == nil || ctxerr.Answered(ctx, other.err, zk.ErrNoNode) {
		return other.watch, other.err
	}
	return w.watchNode(ctx, m)
}

// watchNode watches somebody else's node.
func (w *waiter) watchNode(ctx context.Context, m queueNode) (*framework.Watch, error) {
	return RetryInSession(ctx, w.session, func(ctx context.Context) (*framework.Watch, error) { return w.readWatch(ctx, m) })
}

func (w *waiter) readWatch(ctx context.Context, m queueNode) (*framework.Watch, error) {
	_, _, watch, err := w.session.GetW(ctx, w.queue.node(m.name))
	return watch, err
}

// rest waits until one of the watches, or that of our own node, has fired, or the session is over.
func (w *waiter) waitAny(ctx context.Context, watches ...*framework.Watch) error {
	if err := w.watchOwn(ctx); err != nil {
		return err
	}
	return waitAnyWatch(ctx, append(watches, w.ownWatch))
}

func fired(w *framework.Watch) bool { return w.Event() != 0 }

// isWatched reports whether we hear if our own node goes.
func (w *waiter) ownIsWatched() bool { return w.ownWatch != nil && !fired(w.ownWatch) }

// watchOwn watches our own node, so that we hear if it goes.
func (w *waiter) watchOwn(ctx context.Context) error {
	if w.ownIsWatched() {
		return nil
	}
	_, err := RetryInSession(ctx, w.session, func(ctx context.Context) (struct{}, error) { return struct{}{}, w.readOwn(ctx) })
	return w.noteDeleted(ctx, err)
}

// nodeRead is what was read of a node, with a watch.
type nodeRead struct {
	data  []byte
	stat  *zk.Stat
	watch *framework.Watch
	err   error
}

// startRead reads a node with a watch, and does not wait for the answer.
func (w *waiter) startRead(m queueNode) <-chan nodeRead {
	read := make(chan nodeRead, 1)
	bridge.OfSession(w.session).StartGetW(w.queue.node(m.name), func(data []byte, stat *zk.Stat, watch *framework.Watch, err error) {
		read <- nodeRead{data, stat, watch, err}
	})
	return read
}

// finishRead waits for the answer.
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

// readOwn reads our own node with a watch. Its Stat also tells our token, and that the node is ours.
func (w *waiter) readOwn(ctx context.Context) error {
	var own nodeRead
	own.data, own.stat, own.watch, own.err = w.session.GetW(ctx, w.path())
	return w.recordOwn(ctx, own)
}

// note takes over what was read of our node.
func (w *waiter) recordOwn(ctx context.Context, own nodeRead) error {
	if own.err != nil {
		return nodeDeleted(ctx, own.err)
	}
	if err := checkOwner(w.session, own.stat); err != nil {
		return err
	}
	w.ownWatch, w.data, w.version, w.token = own.watch, own.data, own.stat.Version, own.stat.Czxid
	w.register()
	return nil
}

// missed notes that our node is not there any more, if that is what err says.
func (w *waiter) noteDeleted(ctx context.Context, err error) error {
	err = nodeDeleted(ctx, err)
	w.deleted = w.deleted || errors.Is(err, ErrOwnNodeDeleted) && ctx.Err() == nil
	return err
}

// Patiently makes single attempts at something that may be repeated until there is an answer: whoever has a place in line keeps it
// through an outage, as long as the session lasts, even where the caller repeats the whole acquire.
func RetryInSession[T any](ctx context.Context, s *framework.Session, read func(context.Context) (T, error)) (T, error) {
	var out T
	err := retry.Do(retry.Ungoverned(ctx), retryDelay, func(err error) bool { return framework.IsTransient(err) && s.Err() == nil },
		func(ctx context.Context) (err error) {
			out, err = read(ctx)
			return err
		})
	if lost := s.Err(); err != nil && lost != nil {
		err = lost
	}
	return out, err
}

func retryDelay(attempt int, _ time.Duration) (time.Duration, bool) {
	return min(time.Second, 50*time.Millisecond<<min(attempt, 5)), true
}

// untilAny waits until one of the watches has fired, at most three, or ctx has ended.
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
