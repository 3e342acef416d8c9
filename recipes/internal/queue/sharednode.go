package queue

import (
	"context"
	"path"
	"slices"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/recipes/internal/ownership"
)

// tenancy is what a party has of one node, from when it has come to the front until it is over: it is the ownership.Decisions of the node's
// holds. The party itself may keep the node, by a hold of its own, while none of the guests has it: because none wants it, or because it is
// due, and the line is being looked at for others who want it.
type sharedNode struct {
	queue   *localQueue
	session *framework.Session
	name    string // of the node

	// Guarded by mu of parties.
	passed     int              // how often the node was passed on, since anybody else has waited
	since      time.Time        // since when it is held, and anybody else may have waited
	draining   bool             // the node is not kept any more: once no guest may have it, it goes
	idleHold   *ownership.Hold  // of the party itself
	idleTimer  *time.Timer      // of kept: its end
	contention *contentionWatch // nil: it is not known whether others wait
}

// lookout is kept over the line of a node, for others who want it.
type contentionWatch struct {
	stop  context.CancelFunc
	watch *framework.Watch // that has not fired since nobody else was in line; nil while the line is being read
}

// lodge makes a tenancy of a hold that has just begun.
func (q *localQueue) newSharedNode(h *ownership.Hold) *sharedNode {
	return &sharedNode{queue: q, session: h.Session(), name: path.Base(h.Path()), since: time.Now()}
}

// Next gives a hold to the first guest, unless the node is due. A node that is not to go yet is kept.
func (n *sharedNode) Next(h *ownership.Hold) ownership.Decision {
	localQueues.mu.Lock()
	defer localQueues.mu.Unlock()
	wanted := len(n.queue.waiting) > 0
	switch {
	case wanted && !n.isDueLocked():
		n.passed++
		n.queue.popLocked().results <- result{hold: h}
		return ownership.Passed
	case n.draining || !wanted && n.queue.limit.Idle == 0:
		return ownership.Delete
	}
	n.keepIdleLocked(h)
	return ownership.Kept
}

// due reports whether the node has been passed on often enough, or for long enough, for the case that others wait. If nobody does, that
// begins anew. It is called with mu of parties held.
func (n *sharedNode) isDueLocked() bool {
	switch l := n.queue.limit; {
	case n.passed < l.Streak && time.Since(n.since) < l.Span:
		return false
	case n.contention == nil || n.contention.watch == nil:
		return true
	}
	n.passed, n.since = 0, time.Now()
	return false
}

// keep is called with mu of parties held.
func (n *sharedNode) keepIdleLocked(h *ownership.Hold) {
	n.idleHold = h
	if limit := n.queue.limit.Idle; limit > 0 {
		n.idleTimer = time.AfterFunc(limit, n.drain)
	}
	if n.contention == nil {
		n.checkContentionLocked()
	}
}

// unkeep takes the hold away from the party; nil if that has none. It is called with mu of parties held.
func (n *sharedNode) takeIdleLocked() *ownership.Hold {
	h := n.idleHold
	n.idleHold = nil
	if n.idleTimer != nil {
		n.idleTimer.Stop()
	}
	return h
}

// release ends a hold of the party's, if there is one: Next says what becomes of the node.
func (n *sharedNode) release(kept *ownership.Hold) {
	if kept == nil {
		return
	}
	wait := kept.StartRelease()
	if wait != nil && !bridge.Of(n.queue.lock.Client).Go(func() { _ = wait() }) { // whatever it says, nobody has the hold
		_ = wait() // which takes no time once the client is closed
	}
}

// part gives up the node as soon as no guest may have it.
func (n *sharedNode) drain() {
	localQueues.mu.Lock()
	n.draining = true
	kept := n.takeIdleLocked()
	localQueues.mu.Unlock()
	n.release(kept)
}

// Requested gives up the node.
func (n *sharedNode) Requested() { n.drain() }

// Ended gets in line again for those who still wait.
func (n *sharedNode) Ended() {
	localQueues.mu.Lock()
	n.queue.node = nil
	n.takeIdleLocked()
	if n.contention != nil {
		n.contention.stop()
	}
	localQueues.mu.Unlock()
	n.queue.restart()
}

// look reads the line, in the background. It is called with mu of parties held.
func (n *sharedNode) checkContentionLocked() {
	ctx, stop := context.WithCancel(context.Background())
	c := &contentionWatch{stop: stop}
	n.contention = c
	bridge.OfSession(n.session).Go(func() { n.readContention(ctx, c) }) // else the session is over, and so is the node
}

// read gives up the node if there are others in line, or if that cannot be told. If there are none it lets the party go on, until somebody
// may have come.
func (n *sharedNode) readContention(ctx context.Context, c *contentionWatch) {
	defer c.stop()
	seen := false
	defer func() {
		if !seen {
			n.drain()
		}
	}()
	q := n.queue.lock.Queues[0]
	watch, err := RetryInSession(ctx, n.session, func(ctx context.Context) (*framework.Watch, error) {
		children, _, w, err := n.session.ChildrenW(ctx, q.path)
		if err == nil && !n.isOnly(sortedNodes(children, q.rules.kinds())) {
			err = ErrBusy
		}
		return w, err
	})
	if seen = err == nil; !seen {
		return
	}
	localQueues.mu.Lock()
	c.watch = watch
	var kept *ownership.Hold
	if len(n.queue.waiting) > 0 || n.queue.limit.Idle == 0 {
		kept = n.takeIdleLocked()
	}
	localQueues.mu.Unlock()
	n.release(kept)
	bridge.OfWatch(watch).Then(func() { n.onChange(c) })
}

func (n *sharedNode) isOnly(nodes []queueNode) bool {
	return !slices.ContainsFunc(nodes, func(m queueNode) bool { return m.name != n.name })
}

// stirred hears that others may have come. It must not wait.
func (n *sharedNode) onChange(c *contentionWatch) {
	localQueues.mu.Lock()
	defer localQueues.mu.Unlock()
	if n.contention != c {
		return
	}
	n.contention = nil
	if n.idleHold != nil {
		n.checkContentionLocked()
	}
}
