package framework

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework/internal/conn"
	"github.com/docent-zk/docent/framework/internal/znode"
	"github.com/docent-zk/docent/framework/metrics"
	"github.com/docent-zk/docent/internal/logfield"
)

// A create can be applied later than a search has found nothing. The request waits at server A, or between A and the leader, when the client
// goes to server B. There it is refused from then on, because the session has moved to B; a sync and a list at B find nothing. But when the
// client comes back to A, the session is A's again, and the request is applied.
//
// When a connection to A stands, the request is ahead of all that is asked on it. So the nodes of a transaction whose answer was lost are
// looked for again on each further connection of the session, and those that the caller was not given are deleted. Which connection goes to
// A is not known: one address may stand for several servers. A request does not wait for ever, for a leader gives up a follower that is
// silent for some ticks, and with it what it has not sent; so this ends after a while.
const lateTimeout = 5 * time.Minute

// lateNodes are the nodes of a transaction that may be applied late, or twice.
type lateNodes struct {
	o     ops
	nodes []creation
	owned []string // by the caller
	since conn.Stamp
	due   bool // to be looked for on the present connection
}

// maxLate is for how many transactions a session looks at most.
const maxLate = 1 << 16

// late are all lateNodes of a session.
type late struct {
	mu      sync.Mutex
	all     []*lateNodes
	running bool // a goroutine looks for those that are due
	dropped int  // how many were more than maxLate, since that was logged
}

// add has the nodes looked for, now and on the session's further connections. Those that outlive the session are looked for in the next one
// if it is over.
func (l *late) add(s *session, n *lateNodes) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.reason() != nil {
		n.cleanUpAfter(s)
		return
	}
	if len(l.all) == maxLate {
		l.all = slices.Delete(l.all, 0, 1)
		l.dropped++
	}
	n.due = true
	l.all = append(l.all, n)
	l.startLocked(s)
}

// reconnected has all nodes looked for on another connection.
func (l *late) reconnected(s *session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.all {
		n.due = true
	}
	l.startLocked(s)
}

// ended hands on what outlives the session.
func (l *late) ended(s *session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.all {
		n.cleanUpAfter(s)
	}
	l.all = nil
}

// outlast looks in the next session for what outlives this one.
func (n *lateNodes) cleanUpAfter(s *session) {
	if slices.ContainsFunc(n.nodes, func(c creation) bool { return c.guid != "" && !c.ephemeral() }) {
		n.o.cleanUpAfter(n, s)
	}
}

func (l *late) startLocked(s *session) {
	if !l.running && len(l.all) > 0 {
		l.running = s.spawn(func() { l.cleanUp(s) })
	}
}

// cleanupDelay is how long what the program does next goes before a look, and what is due meanwhile is looked for together. It is no round number,
// so that simulations do not leave to chance what comes first.
const cleanupDelay = 73 * time.Millisecond

// look looks for the nodes that are due until there are none. Where there is no connection it ends: the next one begins it again.
func (l *late) cleanUp(s *session) {
	s.core.cfg.metrics.Add(metrics.PendingDeletions, 1, metrics.Labels{})
	defer s.core.cfg.metrics.Add(metrics.PendingDeletions, -1, metrics.Labels{})
	sleep(cleanupDelay, s.done, s.core.ctx.Done())
	if dropped := l.takeDropped(); dropped > 0 {
		s.core.cfg.log.Warn("too many creates have lost their answers: the first are not looked for any more", zap.Int("transactions", dropped))
	}
	failures := 0
	for due := l.takeDue(s); due != nil; due = l.takeDue(s) {
		err := s.deleteLate(s.core.ctx, due)
		if err == nil || s.reason() != nil {
			failures = 0
			continue
		}
		l.markDue(due)
		sleep(cleanupDelay<<min(failures, 5), s.done, s.core.ctx.Done()) // not the pauses of other cleanups, which the same trouble has begun
		failures++
	}
}

// take is what is due; nil if nothing is, or nothing can be looked for now. What has waited for long enough is forgotten.
func (l *late) takeDue(s *session) (due []*lateNodes) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if connected, _, err := s.connected(); connected && err == nil {
		for _, n := range l.all {
			if n.due {
				n.due = false
				due = append(due, n)
			}
		}
	}
	if due == nil {
		l.all = slices.DeleteFunc(l.all, func(n *lateNodes) bool { return !n.due && n.since.Elapsed() >= lateTimeout })
		l.running = false
	}
	return due
}

func (l *late) takeDropped() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, l.dropped = l.dropped, 0
	return n
}

func (l *late) markDue(due []*lateNodes) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range due {
		n.due = true
	}
}

// path is that of a node, as it was to be created.
func (n *lateNodes) path() string {
	return n.nodes[slices.IndexFunc(n.nodes, func(c creation) bool { return c.guid != "" })].full
}

// lateNode is a protected node that may be created late.
type lateNode struct {
	of        *lateNodes
	ephemeral bool
}

// deleteLate deletes the nodes that are there and not their callers', one parent after the other. Its error is that of trouble that may pass.
func (s *session) deleteLate(ctx context.Context, all []*lateNodes) error {
	parents := map[string]map[string]lateNode{} // by parent and GUID
	for _, n := range all {
		for _, c := range n.nodes {
			if c.guid == "" {
				continue
			}
			parent := znode.Parent(c.full)
			if parents[parent] == nil {
				parents[parent] = map[string]lateNode{}
			}
			parents[parent][c.guid] = lateNode{n, c.ephemeral()}
		}
	}
	for _, parent := range slices.Sorted(maps.Keys(parents)) {
		err := s.deleteLateBelow(ctx, parent, parents[parent])
		if s.interrupts(ctx, err) {
			return err
		}
		s.logCleanupFailure(parent, err)
	}
	return nil
}

// interrupts reports whether err is trouble that may pass, or the end of the session or the client, and no refusal of the servers.
func (s *session) interrupts(ctx context.Context, err error) bool {
	return err != nil && (IsTransient(err) || ctx.Err() != nil || s.reason() != nil)
}

func (s *session) logCleanupFailure(path string, err error) {
	if err != nil && !isNoNode(err) {
		s.core.cfg.log.Warn("gave up", zap.String("op", "sweep"), zap.String("path", path), zap.Error(err))
	}
}

// deletedAtOnce is how many nodes are deleted in one transaction.
const deletedAtOnce = 100

func (s *session) deleteLateBelow(ctx context.Context, parent string, wanted map[string]lateNode) error {
	children, err := s.list(ctx, parent)
	if err != nil {
		return err
	}
	var unowned []string
	for _, name := range children {
		guid, _ := znode.GUIDOf(name)
		node, ok := wanted[guid]
		full := znode.Join(parent, "/"+name)
		if !ok || slices.Contains(node.of.owned, full) {
			continue
		}
		czxid, err := s.czxidOf(ctx, full, node.ephemeral)
		if s.interrupts(ctx, err) {
			return err
		}
		s.logCleanupFailure(full, err)
		if czxid != 0 {
			unowned = append(unowned, full)
		}
	}
	for some := range slices.Chunk(unowned, deletedAtOnce) {
		if err := (&deletion{left: slices.Clone(some), uncertain: true}).attempt(ctx, s); err != nil {
			return err
		}
		for _, full := range some {
			s.core.cfg.log.Info("deleted a node that nothing owned", zap.String("path", full), logfield.Session(s.id()))
		}
	}
	return nil
}
