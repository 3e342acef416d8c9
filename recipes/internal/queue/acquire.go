package queue

import (
	"context"
	"errors"
	"path"
	"sync"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/recipes/internal/enqueue"
	"github.com/docent-zk/docent/recipes/internal/locknode"
	"github.com/docent-zk/docent/recipes/internal/ownership"
	"github.com/docent-zk/docent/recipes/internal/queuelist"
)

// Acquire waits until the lock is held. If its node is lost, with the session or because another
// client deletes it, Acquire creates a new one at the end of the queue. An Acquire that fails
// deletes its nodes.
func (l *Lock) Acquire(ctx context.Context, observer Observer) (*ownership.Hold, error) {
	for {
		hold, err := l.attempt(ctx, observer)
		if err == nil {
			return hold, nil
		}
		if !l.requeues(ctx, err) {
			return nil, l.CallerError(ctx, err)
		}
	}
}

// Try creates a node only if no conflicting node is in the queue, and deletes it if a conflicting
// node was created before it.
func (l *Lock) Try(ctx context.Context) (hold *ownership.Hold, err error) {
	for {
		if err = l.checkFree(ctx); err == nil {
			hold, err = l.attempt(ctx, dontWait)
		}
		if err == nil {
			return hold, nil
		}
		if !l.requeues(ctx, err) {
			return nil, l.CallerError(ctx, err)
		}
	}
}

// attempt creates a node in each queue and waits until they are at the front. If it fails, it
// deletes them. With dontWait it does not wait for other holders.
func (l *Lock) attempt(ctx context.Context, observer Observer) (hold *ownership.Hold, err error) {
	session, err := l.Client.Session(ctx)
	if err != nil {
		return nil, err
	}
	if l.Gate != nil {
		fast, err := l.Gate.TryFast(ctx, session)
		if !errors.Is(err, ErrQueueNeeded) {
			return fast, err
		}
	}
	waiters, err := l.enqueue(ctx, session)
	if err != nil {
		return nil, err
	}
	defer func() {
		if hold == nil || err != nil {
			deleteAll(ctx, waiters)
		}
	}()
	for _, w := range waiters {
		enqueue.WarnOfCounter(l.Client, w.queue.log, w.queue.dir.Key, w.Seq)
	}
	waited, err := waitInAllQueues(ctx, waiters, observer)
	switch {
	case err != nil:
		return nil, err
	case l.Gate != nil:
		return l.Gate.Admit(ctx, &FrontWaiter{waiters[0], observer})
	}
	return l.grant(ctx, waiters, waited)
}

// enqueue creates a node at the end of each queue, in one request. The lists of the queues follow
// right behind it on the same connection, so that they show the new nodes and those ahead. A queue
// whose directory is created by the request is not listed: the node is its first child. Neither is a
// queue in which a waiter of the session already watches its own node (waiter.register): that node
// is ahead, and is often the predecessor.
func (l *Lock) enqueue(ctx context.Context, s *framework.Session) ([]*waiter, error) {
	shared := bridge.Local[sessionState](bridge.OfSession(s))
	waiters := make([]*waiter, len(l.Queues))
	create := enqueue.Create{Nodes: make([]enqueue.Node, len(l.Queues))}
	for i, q := range l.Queues {
		w := &waiter{queue: q, session: s, shared: shared}
		waiters[i], create.Nodes[i] = w, q.node
		create.Nodes[i].AfterSend = func() {
			w.pendingList = nil // that behind an earlier attempt
			if i < maxLists && !w.hasSameSessionWaiter() {
				w.pendingList = w.requestList()
			}
		}
	}
	created, err := create.Do(ctx, s)
	if err != nil {
		return nil, explainStuck(err)
	}
	for i, w := range waiters {
		var ok bool
		w.path = created.Nodes[i]
		if w.Node, ok = locknode.Parse(path.Base(w.path), w.queue.ownKinds); !ok {
			enqueue.DeleteNodes(ctx, s, created.Nodes...)
			return nil, w.queue.unnumbered(w.path)
		}
		if w.token = created.Czxid; w.token == 0 {
			w.pendingList = nil // the reply was lost, and the list may be older than the node
		}
	}
	return waiters, nil
}

// waitInAllQueues waits until all nodes are at the front. Nothing is waited for if each node is known
// to be the only child: then the lock is free.
func waitInAllQueues(ctx context.Context, waiters []*waiter, observer Observer) (waited bool, err error) {
	var rest []*waiter
	for _, w := range waiters {
		if !w.awaitOnlyChild(ctx) {
			rest = append(rest, w)
		}
	}
	switch {
	case len(rest) == 0:
		return false, nil
	case len(waiters) == 1:
		return rest[0].waitForFront(ctx, observer)
	case observer != dontWait:
		observer = allNodes{observer, waiters}
	}
	return waitInParallel(ctx, rest, observer)
}

// awaitOnlyChild waits for the list behind the create, and reports whether the node is at the front
// because the list shows no other child. A node with the number of a directory's first child needs
// no list. An error of the list is left to awaitList, which requests the list again.
func (w *waiter) awaitOnlyChild(ctx context.Context) bool {
	alone := w.Seq == 0
	if list := w.pendingList; !alone && list != nil && list.Wait(ctx) == nil {
		children := list.Children()
		alone = len(children) == 1 && children[0] == w.Name
	}
	if alone {
		w.reachedFront.Store(true)
	}
	return alone
}

// grant makes a hold of nodes at the front.
func (l *Lock) grant(ctx context.Context, waiters []*waiter, waited bool) (*ownership.Hold, error) {
	for _, w := range waiters {
		if w.token == 0 {
			if err := w.readToken(ctx); err != nil {
				return nil, err
			}
		}
	}
	session := waiters[0].session
	othersMayBeDeleted := waited && len(waiters) > 1 // while the last of them was waited for
	lifetime, err := ConfirmedLifetime(ctx, session, func(ctx context.Context, suspended bool) error {
		if suspended || othersMayBeDeleted {
			return checkAll(ctx, waiters)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	g := ownership.Grant{
		Session: session, Lifetime: lifetime, Recipe: l.Recipe, Log: l.Log,
		Key: l.Key, // nil for one queue: its own key serves
	}
	for _, w := range waiters {
		g.Locks = append(g.Locks, ownership.Lock{Path: w.queue.dir.Path, Key: w.queue.dir.Key, Token: w.token})
		g.Nodes = append(g.Nodes, ownership.Node{Path: w.path, Watch: w.ownWatch, Data: w.data})
	}
	hold := ownership.New(g)
	for _, w := range waiters {
		w.hold.Store(hold)
	}
	return hold, nil
}

// ConfirmedLifetime returns the lifetime of a hold that begins now, in which confirm has returned
// nil. A node survives a suspended connection, but a hold under the Strict policy does not. If the
// connection is suspended during confirm, ConfirmedLifetime begins a new lifetime and calls confirm
// again, with suspended, which then needs an answer of the servers. ConfirmedLifetime returns an
// error if ctx has ended, even now.
func ConfirmedLifetime(ctx context.Context, s *framework.Session,
	confirm func(ctx context.Context, suspended bool) error) (bridge.Lifetime, error) {
	for suspended := false; ; suspended = true {
		lifetime := bridge.OfSession(s).Lifetime()
		if err := confirm(ctx, suspended); err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, ctxerr.Of(ctx)
		}
		if err := lifetime.Err(); !errors.Is(err, framework.ErrSuspended) {
			return lifetime, err
		}
	}
}

// requeues reports whether an acquire enqueues again after an error: its node or session was lost,
// which the caller need not know.
func (l *Lock) requeues(ctx context.Context, err error) bool {
	lost := errors.Is(err, enqueue.ErrOwnNodeDeleted) || errors.Is(err, framework.ErrSessionLost)
	if !lost || ctx.Err() != nil {
		return false
	}
	l.Log.Info("place in the queue lost: enqueueing again", zap.Error(err))
	return true
}

// checkFree returns ErrBusy if the lock is not free. It only reads.
func (l *Lock) checkFree(ctx context.Context) error {
	for _, q := range l.Queues {
		children, _, err := l.Client.Children(ctx, q.dir.Path)
		switch {
		case errors.Is(err, zk.ErrNoNode):
		case err != nil:
			return err
		}
		if ahead := locknode.Sorted(children, q.rules.Conflicting); len(ahead) > 0 {
			return Busy("behind " + q.Child(ahead[0].Name))
		}
	}
	if l.Gate != nil {
		return l.Gate.Ready(ctx)
	}
	return nil
}

// maxLists bounds how many lists of one acquire are under way at a time. The lists of enqueue have
// been answered when requestMoreLists is called: awaitOnlyChild has waited for them, except for those of
// nodes with the number 0, which need none.
const maxLists = 64

// requestMoreLists requests the lists that enqueue has not requested, at most maxLists at a
// time. Each waiter sees the error of its own list.
func requestMoreLists(ctx context.Context, waiters []*waiter) {
	var asked []*queuelist.List
	for _, w := range waiters {
		if ctx.Err() != nil {
			return
		}
		if w.pendingList != nil || w.hasSameSessionWaiter() {
			continue
		}
		if more := len(asked) - maxLists; more >= 0 {
			_ = asked[more].Wait(ctx)
		}
		w.pendingList = w.requestList()
		asked = append(asked, w.pendingList)
	}
}

// ErrGoroutineEnded: metrics or a retry policy have called runtime.Goexit on a
// goroutine of the client.
var ErrGoroutineEnded = errors.New("queue: code of the program ended the goroutine of a waiter")

// waitInParallel waits until all nodes are at the front, in all queues at the same time.
func waitInParallel(ctx context.Context, waiters []*waiter, observer Observer) (waited bool, err error) {
	requestMoreLists(ctx, waiters)
	all, stop := context.WithCancel(ctx)
	defer stop()
	var running sync.WaitGroup
	var mu sync.Mutex
	for _, w := range waiters {
		running.Go(func() {
			behind, failure := false, ErrGoroutineEnded
			defer func() {
				mu.Lock()
				defer mu.Unlock()
				waited = waited || behind
				if failure != nil && err == nil {
					err = failure
					stop()
				}
			}()
			behind, failure = w.waitForFront(all, observer)
		})
	}
	running.Wait()
	return waited, err
}

// checkAll checks in one transaction that all nodes still exist.
func checkAll(ctx context.Context, waiters []*waiter) error {
	var checks []framework.Op
	for _, w := range waiters {
		checks = append(checks, framework.CheckOp(w.path, -1))
	}
	s := waiters[0].session
	_, err := RetryInSession(ctx, s, func(ctx context.Context) ([]framework.Result, error) {
		return s.Multi(ctx, checks...)
	})
	return asOwnNodeDeleted(ctx, err)
}

// deleteAll deletes the own nodes, except those that do not exist or belong to another session.
func deleteAll(ctx context.Context, waiters []*waiter) {
	var nodes []string
	for _, w := range waiters {
		w.deleting.Store(true)
		if !w.deleted {
			nodes = append(nodes, w.path)
		}
	}
	if len(nodes) > 0 {
		enqueue.DeleteNodes(ctx, waiters[0].session, nodes...)
	}
}
