package queue

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/recipes/internal/ownership"
)

// Handoff lets the goroutines of a client that want the same lock share one node, and pass it on among themselves without the servers.
// Others may wait meanwhile, so it is bounded: then the node is given up.
type Handoff struct {
	Streak int           // how often a node is passed on
	Span   time.Duration // for how long a node is passed on
	Idle   time.Duration // for how long a node is kept that none of them wants; 0: not at all
}

// party are those of one client who want one lock. One place in line serves them all: it is the party's, not that of whoever came first,
// and whoever gives up costs the others nothing.
type localQueue struct {
	lock  *Lock // of whoever came first
	key   localQueueKey
	limit Handoff

	// Guarded by mu of parties.
	waiting       []*localWaiter     // first come first
	cancelAttempt context.CancelFunc // while the party is in line: leaves it
	node          *sharedNode        // while the party has one
}

// partyKey tells parties apart: by the lock, by the path under which it is known, for a hold shows that, and by what its node is named, for
// that is who else waits for it.
type localQueueKey struct {
	lock any
	path string
	kind string
}

// guest is one who waits.
type localWaiter struct {
	queue    *localQueue // nil: it is in none; of its goroutine
	results  chan result // has room for one
	received *result     // that it has received; of its goroutine
}

// turn is what a guest gets in the end, unless it gives up before.
type result struct {
	hold *ownership.Hold
	err  error
}

// parties are those that are in line, or hold. One lock serves all: nothing waits under it.
var localQueues = struct {
	mu  sync.Mutex
	all map[localQueueKey]*localQueue
}{all: map[localQueueKey]*localQueue{}}

// locally acquires the lock as one of a party.
func (l *Lock) acquireLocally(ctx context.Context, warner *waitWarner) (*ownership.Hold, error) {
	if ctx.Err() != nil {
		return nil, l.acquireError(ctx, ctxerr.Of(ctx))
	}
	warner.start()
	w, returned := newLocalWaiter(), false
	defer func() {
		if !returned {
			w.abandon()
		}
	}()
	hold, err := l.waitLocally(ctx, w)
	returned = true
	return hold, err
}

// await waits for the turn of a guest that joins the party.
func (l *Lock) waitLocally(ctx context.Context, w *localWaiter) (*ownership.Hold, error) {
	l.join(w)
	select {
	case r := <-w.results:
		return l.accept(ctx, w, r)
	case <-ctx.Done():
	}
	if w.queue.cancel(w) {
		return nil, l.acquireError(ctx, WaitError(ctx, ctxerr.Of(ctx)))
	}
	return l.accept(ctx, w, <-w.results) // it has just become our turn
}

// forfeit gives up what a guest waits for, or has just been given: its goroutine is ended by a
// panic or runtime.Goexit in code of the program's, such as a logger.
func (w *localWaiter) abandon() {
	switch {
	case w.received != nil:
		_ = w.received.hold.Release()
	case w.queue != nil && !w.queue.cancel(w):
		_ = (<-w.results).hold.Release()
	}
}

// take accepts a hold, unless ctx has ended: then it goes on to the next, which nobody waits for.
func (l *Lock) accept(ctx context.Context, w *localWaiter, r result) (*ownership.Hold, error) {
	w.received = &r
	if r.err != nil || ctx.Err() == nil {
		return r.hold, r.err
	}
	if !bridge.Of(l.Client).Go(func() { _ = r.hold.Release() }) { // whatever it says, the hold is over
		_ = r.hold.Release() // which takes no time once the client is closed
	}
	return nil, l.acquireError(ctx, WaitError(ctx, ctxerr.Of(ctx)))
}

// join makes g a guest of the party, and a party if there is none.
func (l *Lock) join(w *localWaiter) {
	localQueues.mu.Lock()
	q, there := l.localQueueLocked()
	q.addLocked(w)
	node, kept := q.takeIdleLocked()
	localQueues.mu.Unlock()
	if !there {
		q.start()
	}
	node.release(kept)
}

// admit is called with mu of parties held.
func (q *localQueue) addLocked(w *localWaiter) {
	w.queue = q
	q.waiting = append(q.waiting, w)
}

func newLocalWaiter() *localWaiter { return &localWaiter{results: make(chan result, 1)} }

// party is that of the lock, which is made if it is not there. It is called with mu of parties held.
func (l *Lock) localQueueLocked() (q *localQueue, there bool) {
	key := localQueueKey{l.LockKey(), l.name(), l.Queues[0].rules.Name}
	if q, there = localQueues.all[key]; !there {
		q = &localQueue{lock: l, key: key, limit: *l.HandOff}
		localQueues.all[key] = q
	}
	return q, there
}

// tryLocally takes the node that the party keeps, or one for a party that is not there yet. Otherwise it is as without a party.
func (l *Lock) tryLocally(ctx context.Context) (hold *ownership.Hold, err error) {
	if ctx.Err() != nil {
		return nil, l.acquireError(ctx, ctxerr.Of(ctx))
	}
	w := newLocalWaiter()
	localQueues.mu.Lock()
	q, there := l.localQueueLocked()
	node, kept := q.takeIdleLocked()
	if kept != nil {
		q.addLocked(w)
	}
	localQueues.mu.Unlock()
	switch {
	case !there:
		return q.try(ctx)
	case kept == nil:
		return l.try(ctx)
	}
	returned := false
	defer func() {
		if !returned {
			w.abandon()
		}
	}()
	node.release(kept)
	if q.cancel(w) {
		hold, err = l.try(ctx) // the node is being given up, or looked after, or was lost
	} else {
		hold, err = l.accept(ctx, w, <-w.results)
	}
	returned = true
	return hold, err
}

// try is Try for a new party. Whatever the end, the party has the node, or gets in line for those
// who have joined it meanwhile.
func (q *localQueue) try(ctx context.Context) (*ownership.Hold, error) {
	held := false
	defer func() {
		if !held {
			q.restart()
		}
	}()
	hold, err := q.lock.try(ctx)
	if held = err == nil; !held {
		return nil, err
	}
	node := q.newSharedNode(hold)
	localQueues.mu.Lock()
	q.node = node
	localQueues.mu.Unlock()
	hold.SetHandoff(node)
	return hold, nil
}

// dismiss takes a guest out of the party; false if it is its turn already.
func (q *localQueue) cancel(w *localWaiter) bool {
	localQueues.mu.Lock()
	defer localQueues.mu.Unlock()
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

// fetch gets in line for the party.
func (q *localQueue) start() {
	if !bridge.Of(q.lock.Client).Go(q.run) {
		q.failAll(q.lock.acquireError(context.Background(), framework.ErrClosed))
	}
}

// stand stands in line until the lock is there, or cannot be had, or nobody waits any more.
func (q *localQueue) run() {
	for {
		ctx, wanted := q.startAttempt()
		if !wanted {
			return
		}
		var a waitWarner
		hold, err := q.acquire(ctx, &a)
		switch {
		case err == nil:
			q.deliver(hold, a.waited.Load())
			return
		case ctx.Err() == nil:
			q.failAll(err)
			return
		}
	}
}

// acquire stands in line. If that ends the goroutine, those who wait hear of it.
func (q *localQueue) acquire(ctx context.Context, warner *waitWarner) (*ownership.Hold, error) {
	returned := false
	defer func() {
		if !returned {
			q.failAll(q.lock.acquireError(context.Background(), errGoroutineEnded))
		}
	}()
	hold, err := q.lock.acquire(ctx, warner)
	returned = true
	return hold, err
}

// begin is the party's context in line, which ends when nobody waits any more; false if that is so already, and the party over.
func (q *localQueue) startAttempt() (context.Context, bool) {
	localQueues.mu.Lock()
	defer localQueues.mu.Unlock()
	if len(q.waiting) == 0 {
		q.removeLocked()
		return nil, false
	}
	ctx, leave := context.WithCancel(context.Background())
	q.cancelAttempt = leave
	return ctx, true
}

// present gives a hold that has just begun to the first guest. Where the party has waited for others, it is better to give the node up
// when it is due than to ask whether there still are others.
func (q *localQueue) deliver(hold *ownership.Hold, waited bool) {
	node := q.newSharedNode(hold)
	node.draining = waited && q.limit.Idle == 0
	localQueues.mu.Lock()
	q.cancelAttempt()
	q.cancelAttempt, q.node = nil, node
	first := q.popLocked()
	localQueues.mu.Unlock()
	hold.SetHandoff(node)
	if first == nil {
		_ = hold.Release() // all have given up; whatever it says, the hold is over
		return
	}
	first.results <- result{hold: hold}
}

// disappoint tells all who wait that the lock cannot be had, and is the end of the party.
func (q *localQueue) failAll(err error) {
	localQueues.mu.Lock()
	waiting := q.waiting
	q.waiting = nil
	q.removeLocked()
	localQueues.mu.Unlock()
	for _, w := range waiting {
		w.results <- result{err: err}
	}
}

// again gets in line for those who wait.
func (q *localQueue) restart() {
	localQueues.mu.Lock()
	wanted := len(q.waiting) > 0
	if !wanted {
		q.removeLocked()
	}
	localQueues.mu.Unlock()
	if wanted {
		q.start()
	}
}

// dissolve ends the party. It is called with mu of parties held.
func (q *localQueue) removeLocked() {
	if localQueues.all[q.key] == q {
		delete(localQueues.all, q.key)
	}
}

// spare is the node that the party keeps, and its hold, which is to be released for a guest. It is called with mu of parties held.
func (q *localQueue) takeIdleLocked() (*sharedNode, *ownership.Hold) {
	if q.node == nil {
		return nil, nil
	}
	return q.node, q.node.takeIdleLocked()
}

// first takes the first guest, nil if there is none. It is called with mu of parties held.
func (q *localQueue) popLocked() *localWaiter {
	if len(q.waiting) == 0 {
		return nil
	}
	w := q.waiting[0]
	q.waiting = q.waiting[1:]
	return w
}
