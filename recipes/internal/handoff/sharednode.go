package handoff

import (
	"context"
	"path"
	"slices"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/recipes/internal/locknode"
	"github.com/docent-zk/docent/recipes/internal/ownership"
	"github.com/docent-zk/docent/recipes/internal/queue"
)

// sharedNode is a lock node of a localQueue, from its grant to its end. As an ownership.Handoff
// it decides what becomes of the node when a hold is released. It keeps the node by an idle hold
// of its own while no waiter may have it. That is so while no goroutine waits, and while a limit
// is reached and the queue is listed for nodes of other clients.
type sharedNode struct {
	queue   *localQueue
	session *framework.Session
	name    string // of the node

	// Guarded by mu of the localQueues.
	passed     int              // how often the node was passed on since other clients may wait
	since      time.Time        // from when the node was held while other clients may wait
	draining   bool             // the node is deleted as soon as no waiter may have it
	idleHold   *ownership.Hold  // nil: a goroutine has the node
	idleTimer  *time.Timer      // deletes an idle node
	contention *contentionWatch // nil: it is not known whether other clients wait
}

// contentionWatch watches the queue of a shared node for nodes of other clients.
type contentionWatch struct {
	stop  context.CancelFunc
	watch *framework.Watch // set when no other node was in the queue; nil while it is listed
}

// newSharedNode makes the sharedNode of a new hold.
func (q *localQueue) newSharedNode(h *ownership.Hold) *sharedNode {
	return &sharedNode{queue: q, session: h.Session(), name: path.Base(h.Path()), since: time.Now()}
}

// Next passes a hold on to the first waiter, unless a limit is reached. A node that is not to be
// deleted yet is kept idle.
func (n *sharedNode) Next(h *ownership.Hold) ownership.Decision {
	n.queue.mu.Lock()
	defer n.queue.mu.Unlock()
	wanted := len(n.queue.waiting) > 0
	switch {
	case wanted && !n.isDueLocked():
		n.passed++
		n.queue.popLocked().results <- result{hold: h, waited: true}
		return ownership.Passed
	case n.draining || !wanted && n.queue.limit.Idle == 0:
		return ownership.Delete
	}
	n.keepIdleLocked(h)
	return ownership.Kept
}

// isDueLocked reports whether a limit is reached while other clients may wait. If none waits,
// the limits begin anew.
func (n *sharedNode) isDueLocked() bool {
	switch limit := n.queue.limit; {
	case n.passed < limit.Streak && time.Since(n.since) < limit.Span:
		return false
	case n.contention == nil || n.contention.watch == nil:
		return true
	}
	n.passed, n.since = 0, time.Now()
	return false
}

// keepIdleLocked keeps the node by its hold, for at most Limits.Idle, and watches for
// contention.
func (n *sharedNode) keepIdleLocked(h *ownership.Hold) {
	n.idleHold = h
	if limit := n.queue.limit.Idle; limit > 0 {
		n.idleTimer = time.AfterFunc(limit, n.drain)
	}
	if n.contention == nil {
		n.checkContentionLocked()
	}
}

// takeIdleLocked removes and returns the idle hold; nil if there is none.
func (n *sharedNode) takeIdleLocked() *ownership.Hold {
	h := n.idleHold
	n.idleHold = nil
	if n.idleTimer != nil {
		n.idleTimer.Stop()
	}
	return h
}

// release releases an idle hold, which may be nil. Next decides what becomes of the node.
func (n *sharedNode) release(idle *ownership.Hold) {
	if idle == nil {
		return
	}
	wait := idle.StartRelease()
	// The hold has ended whatever wait returns.
	if wait != nil && !bridge.Of(n.queue.lock.Client).Go(func() { _ = wait() }) {
		_ = wait() // sends nothing once the client is closed
	}
}

// drain lets the node be deleted as soon as no waiter may have it.
func (n *sharedNode) drain() {
	n.queue.mu.Lock()
	n.draining = true
	idle := n.takeIdleLocked()
	n.queue.mu.Unlock()
	n.release(idle)
}

// Requested handles a request to release the lock: it drains the node.
func (n *sharedNode) Requested() { n.drain() }

// Ended handles the end of the node: it acquires a new one for the waiters.
func (n *sharedNode) Ended() {
	n.queue.mu.Lock()
	n.queue.node = nil
	n.takeIdleLocked()
	if n.contention != nil {
		n.contention.stop()
	}
	n.queue.mu.Unlock()
	n.queue.restart()
}

// checkContentionLocked lists the queue in the background.
func (n *sharedNode) checkContentionLocked() {
	ctx, stop := context.WithCancel(context.Background())
	c := &contentionWatch{stop: stop}
	n.contention = c
	// If Go starts nothing, the session has ended, and the node with it.
	bridge.OfSession(n.session).Go(func() { n.readContention(ctx, c) })
}

// readContention drains the node if other nodes are in the queue, or if it cannot list the
// queue. If there are none, the node is passed on until the watch fires.
func (n *sharedNode) readContention(ctx context.Context, c *contentionWatch) {
	defer c.stop()
	alone := false
	defer func() {
		if !alone {
			n.drain()
		}
	}()
	q := n.queue.lock.Queues[0]
	watch, err := queue.RetryInSession(ctx, n.session, func(ctx context.Context) (*framework.Watch, error) {
		children, _, w, err := n.session.ChildrenW(ctx, q.Path())
		if err == nil && !n.isOnly(locknode.Sorted(children, q.Rules().Kinds())) {
			err = queue.ErrBusy
		}
		return w, err
	})
	if alone = err == nil; !alone {
		return
	}
	n.queue.mu.Lock()
	c.watch = watch
	var idle *ownership.Hold
	if len(n.queue.waiting) > 0 || n.queue.limit.Idle == 0 {
		idle = n.takeIdleLocked()
	}
	n.queue.mu.Unlock()
	n.release(idle)
	bridge.OfWatch(watch).Then(func() { n.onChange(c) })
}

// isOnly reports whether no other node is in the queue.
func (n *sharedNode) isOnly(nodes []locknode.Node) bool {
	return !slices.ContainsFunc(nodes, func(m locknode.Node) bool { return m.Name != n.name })
}

// onChange handles a change of the queue: other nodes may have come. It must not wait.
func (n *sharedNode) onChange(c *contentionWatch) {
	n.queue.mu.Lock()
	defer n.queue.mu.Unlock()
	if n.contention != c {
		return
	}
	n.contention = nil
	if n.idleHold != nil {
		n.checkContentionLocked()
	}
}
