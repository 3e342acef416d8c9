package handoff

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/recipes/internal/ownership"
	"github.com/docent-zk/docent/recipes/internal/queue"
)

// Limits bound how long the goroutines of one client keep a node from the waiters of other clients.
// At a limit the node is deleted.
type Limits struct {
	Streak int           // how often a node is passed on
	Span   time.Duration // for how long a node is passed on
	Idle   time.Duration // how long a node is kept that no goroutine wants; 0: not at all
}

// Lock is a lock with one queue, whose node the goroutines of the client share. It is safe for
// concurrent use.
type Lock struct {
	*queue.Lock
	limits Limits
}

// New returns lock with a hand-off.
func New(lock *queue.Lock, limits Limits) *Lock { return &Lock{lock, limits} }

// localQueue is the goroutines of one client that wait for one lock, and the node that they
// share. The node belongs to the localQueue and not to a waiter: a waiter that gives up costs
// the others nothing.
type localQueue struct {
	*localQueues
	lock  *queue.Lock // of the first waiter
	key   localQueueKey
	limit Limits

	// Guarded by mu of the localQueues.
	waiting       []*localWaiter     // in the order of their calls
	cancelAttempt context.CancelFunc // ends the attempt of run; nil: none is under way
	attempt       *attempt           // the last one of run; nil: there was none
	node          *sharedNode        // nil: there is none
}

// localQueueKey identifies a localQueue. The path is part of it because a hold shows its path,
// and the kind of node because it decides which other nodes wait for it.
type localQueueKey struct {
	lock any
	path string
	kind string
}

// localWaiter is one goroutine that waits.
type localWaiter struct {
	queue    *localQueue // nil: it waits in none; used by its goroutine only
	results  chan result // has room for one
	received *result     // that was received; used by its goroutine only
}

// result is what a localWaiter receives, unless it gives up before.
type result struct {
	hold   *ownership.Hold
	waited bool // for another holder
	err    error
}

// localQueues holds the queues of one client that have a waiter or a node.
type localQueues struct {
	mu  sync.Mutex // nothing waits while it is held
	all map[localQueueKey]*localQueue
}

// Acquire acquires the lock as a waiter of its localQueue.
func (l *Lock) Acquire(ctx context.Context, observer queue.Observer) (*ownership.Hold, error) {
	if ctx.Err() != nil {
		return nil, l.CallerError(ctx, ctxerr.Of(ctx))
	}
	observer.Waits(nil)
	w, returned := newLocalWaiter(), false
	defer func() {
		if !returned {
			w.abandon()
		}
	}()
	hold, err := l.wait(ctx, w)
	returned = true
	return hold, err
}

// wait adds w to the localQueue and waits for its result.
func (l *Lock) wait(ctx context.Context, w *localWaiter) (*ownership.Hold, error) {
	l.join(w)
	select {
	case r := <-w.results:
		return l.accept(ctx, w, r)
	case <-ctx.Done():
	}
	busy := w.queue.busy(w)
	if w.queue.cancel(w) {
		return nil, l.CallerError(ctx, queue.WaitError(ctx, l.Client, busy, ctxerr.Of(ctx)))
	}
	return l.accept(ctx, w, <-w.results) // a result was sent at the same time
}

// abandon cancels the wait or releases the hold that was received. Code of the program, such as
// metrics, has ended the goroutine by a panic or runtime.Goexit.
func (w *localWaiter) abandon() {
	switch {
	case w.received != nil:
		_ = w.received.hold.Release()
	case w.queue != nil && !w.queue.cancel(w):
		_ = (<-w.results).hold.Release()
	}
}

// accept returns the hold of a result. If ctx has ended, it releases the hold in the background,
// which passes the node on to the next waiter.
func (l *Lock) accept(ctx context.Context, w *localWaiter, r result) (*ownership.Hold, error) {
	w.received = &r
	if r.err != nil || ctx.Err() == nil {
		return r.hold, r.err
	}
	// The hold has ended whatever Release returns.
	if !bridge.Of(l.Client).Go(func() { _ = r.hold.Release() }) {
		_ = r.hold.Release() // sends nothing once the client is closed
	}
	var busy error
	if r.waited {
		busy = queue.ErrBusy
	}
	return nil, l.CallerError(ctx, queue.WaitError(ctx, l.Client, busy, ctxerr.Of(ctx)))
}

// join adds w to the localQueue of the lock. It makes one if there is none.
func (l *Lock) join(w *localWaiter) {
	queues := bridge.Local[localQueues](bridge.Of(l.Client))
	queues.mu.Lock()
	q, exists := queues.getLocked(l)
	q.addLocked(w)
	node, idle := q.takeIdleLocked()
	queues.mu.Unlock()
	if !exists {
		q.start()
	}
	node.release(idle)
}

// addLocked adds w at the end.
func (q *localQueue) addLocked(w *localWaiter) {
	w.queue = q
	q.waiting = append(q.waiting, w)
}

func newLocalWaiter() *localWaiter { return &localWaiter{results: make(chan result, 1)} }

// getLocked returns the localQueue of the lock, and makes one if there is none.
func (q *localQueues) getLocked(l *Lock) (local *localQueue, exists bool) {
	key := localQueueKey{l.LockKey(), l.Paths[0], l.Queues[0].Rules().Kind}
	if local, exists = q.all[key]; !exists {
		local = &localQueue{localQueues: q, lock: l.Lock, key: key, limit: l.limits}
		if q.all == nil {
			q.all = map[localQueueKey]*localQueue{}
		}
		q.all[key] = local
	}
	return local, exists
}

// Try takes an idle node of the localQueue. It acquires a node if there is no localQueue yet. In all
// other cases, and where no node is kept idle, it is Try without hand-off.
func (l *Lock) Try(ctx context.Context) (*ownership.Hold, error) {
	if l.limits.Idle == 0 {
		return l.Lock.Try(ctx)
	}
	if ctx.Err() != nil {
		return nil, l.CallerError(ctx, ctxerr.Of(ctx))
	}
	w := newLocalWaiter()
	queues := bridge.Local[localQueues](bridge.Of(l.Client))
	queues.mu.Lock()
	q, exists := queues.getLocked(l)
	node, idle := q.takeIdleLocked()
	if idle != nil {
		q.addLocked(w)
	}
	queues.mu.Unlock()
	switch {
	case !exists:
		return q.try(ctx)
	case idle == nil:
		return l.Lock.Try(ctx)
	}
	return l.tryIdle(ctx, w, node, idle)
}

// tryIdle is Try for a waiter of a localQueue with an idle node.
func (l *Lock) tryIdle(ctx context.Context, w *localWaiter, node *sharedNode,
	idle *ownership.Hold) (hold *ownership.Hold, err error) {
	returned := false
	defer func() {
		if !returned {
			w.abandon()
		}
	}()
	node.release(idle)
	if w.queue.cancel(w) {
		hold, err = l.Lock.Try(ctx) // the node is being deleted or checked for contention, or was lost
	} else {
		hold, err = l.accept(ctx, w, <-w.results)
	}
	returned = true
	return hold, err
}

// try is Try for a new localQueue. If it fails, the queue serves the waiters that have joined
// meanwhile.
func (q *localQueue) try(ctx context.Context) (*ownership.Hold, error) {
	held := false
	defer func() {
		if !held {
			q.restart()
		}
	}()
	hold, err := q.lock.Try(ctx)
	if held = err == nil; !held {
		return nil, err
	}
	node := q.newSharedNode(hold)
	q.mu.Lock()
	q.node = node
	q.mu.Unlock()
	hold.SetHandoff(node)
	return hold, nil
}

// busy returns an ErrBusy with what w waits for, as far as that is known. It returns nil if no other
// holder or waiter is known to be ahead of w.
func (q *localQueue) busy(w *localWaiter) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.node != nil:
		return queue.Busy("held by this client")
	case q.attempt != nil && q.attempt.waited():
		return q.attempt.busy()
	case len(q.waiting) > 0 && q.waiting[0] != w:
		return queue.ErrBusy
	}
	return nil
}

// cancel removes w. It returns false if w was sent a result.
func (q *localQueue) cancel(w *localWaiter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, w)
	if i < 0 {
		return false
	}
	q.waiting, w.queue = slices.Delete(q.waiting, i, i+1), nil
	if len(q.waiting) == 0 && q.cancelAttempt != nil {
		q.cancelAttempt()
	}
	return true
}

// start starts run in the background.
func (q *localQueue) start() {
	if !bridge.Of(q.lock.Client).Go(q.run) {
		q.failAll(q.lock.CallerError(context.Background(), framework.ErrClosed))
	}
}

// run acquires the lock for the waiters, until there is a hold, an error, or no waiter.
func (q *localQueue) run() {
	for {
		ctx, attempt, wanted := q.startAttempt()
		if !wanted {
			return
		}
		hold, err := q.acquire(ctx, attempt)
		switch {
		case err == nil:
			q.deliver(hold, attempt.waited())
			return
		case ctx.Err() == nil:
			q.failAll(err)
			return
		}
	}
}

// acquire acquires the lock. If that ends the goroutine, all waiters receive an error.
func (q *localQueue) acquire(ctx context.Context, attempt *attempt) (hold *ownership.Hold, err error) {
	returned := false
	defer func() {
		if !returned {
			q.failAll(q.lock.CallerError(context.Background(), queue.ErrGoroutineEnded))
		}
	}()
	hold, err = q.lock.Acquire(ctx, attempt)
	returned = true
	return hold, err
}

// attempt is an acquire for the waiters of a localQueue.
type attempt struct {
	own atomic.Pointer[queue.OwnNodes] // nil: it has not waited for other nodes
}

// Waits implements queue.Observer.
func (a *attempt) Waits(own queue.OwnNodes) { a.own.Store(&own) }

func (a *attempt) waited() bool { return a.own.Load() != nil }

// busy returns an ErrBusy with the node that the attempt waits for. The attempt must have waited.
func (a *attempt) busy() error { return a.own.Load().Busy() }

// startAttempt returns an attempt with its context, which ends when no goroutine waits. If none
// waits already, it removes the localQueue and returns false.
func (q *localQueue) startAttempt() (context.Context, *attempt, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		q.removeLocked()
		return nil, nil, false
	}
	ctx, cancel := context.WithCancel(context.Background())
	q.cancelAttempt, q.attempt = cancel, &attempt{}
	return ctx, q.attempt, true
}

// deliver sends a new hold to the first waiter. If the acquire has waited for another client,
// the node is deleted when a limit is reached, without a list that would show whether other
// clients still wait.
func (q *localQueue) deliver(hold *ownership.Hold, waited bool) {
	node := q.newSharedNode(hold)
	node.draining = waited && q.limit.Idle == 0
	q.mu.Lock()
	q.cancelAttempt()
	q.cancelAttempt, q.node = nil, node
	first := q.popLocked()
	q.mu.Unlock()
	hold.SetHandoff(node)
	if first == nil {
		_ = hold.Release() // all waiters have given up; the hold has ended whatever Release returns
		return
	}
	first.results <- result{hold: hold, waited: waited}
}

// failAll sends err to all waiters and removes the localQueue.
func (q *localQueue) failAll(err error) {
	q.mu.Lock()
	waiting := q.waiting
	q.waiting = nil
	q.removeLocked()
	q.mu.Unlock()
	for _, w := range waiting {
		w.results <- result{err: err}
	}
}

// restart acquires a new node for the waiters. Without any it removes the localQueue.
func (q *localQueue) restart() {
	q.mu.Lock()
	wanted := len(q.waiting) > 0
	if !wanted {
		q.removeLocked()
	}
	q.mu.Unlock()
	if wanted {
		q.start()
	}
}

// removeLocked removes the localQueue.
func (q *localQueue) removeLocked() {
	if q.all[q.key] == q {
		delete(q.all, q.key)
	}
}

// takeIdleLocked returns the shared node and its idle hold, which the caller releases for a
// waiter. The hold is nil if there is none.
func (q *localQueue) takeIdleLocked() (*sharedNode, *ownership.Hold) {
	if q.node == nil {
		return nil, nil
	}
	return q.node, q.node.takeIdleLocked()
}

// popLocked removes and returns the first waiter; nil if there is none.
func (q *localQueue) popLocked() *localWaiter {
	if len(q.waiting) == 0 {
		return nil
	}
	w := q.waiting[0]
	q.waiting = q.waiting[1:]
	return w
}
