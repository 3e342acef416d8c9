package framework

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework/internal/conn"
	"github.com/docent-zk/docent/framework/internal/znode"
	"github.com/docent-zk/docent/internal/logfield"
)

// A create can be applied after a search has not found its node. The request waits at server A, or
// between A and the ZooKeeper leader, when the client goes to server B. As long as the session is
// with B, the request is refused; a sync and a list at B do not find the node. But when the client
// comes back to A, the session is A's again, and the request is applied.
//
// On a new connection to A, the server handles the request before all later ones. So after a lost
// answer the client looks for the nodes of the transaction on each further connection of the
// session. It deletes the nodes that the caller did not get. The client cannot know which
// connection goes to A, because one address may stand for several servers. A request does not wait
// without limit: a leader drops a follower that is silent for some ticks, and with it the requests
// that the follower has not sent. So the client stops after lateTimeout.
const lateTimeout = 5 * time.Minute

// lateNodes are those nodes below one parent of a transaction that may be applied late or twice.
type lateNodes struct {
	o      ops
	parent string
	nodes  []creation // the protected ones, without their data
	owned  owned
	since  conn.Stamp
	look   look
	begun  uint64 // number of the last look, or of that before they were added
}

// look tells whether nodes have been looked for on the current connection.
type look int

const (
	looked look = iota
	looking
	due
)

// maxLate is the maximal number of lateNodes in late.
const maxLate = 1 << 16

// late holds all lateNodes of a session.
type late struct {
	mu      sync.Mutex
	all     []*lateNodes
	running bool   // a goroutine runs cleanUp
	dropped int    // lateNodes above maxLate since the last warning
	begun   uint64 // looks below a parent
}

// add has the nodes looked for now and on each further connection of the session. If the session
// has ended, the nodes that outlive it are looked for in the next one.
func (l *late) add(s *session, added []*lateNodes) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.reason() != nil {
		cleanUpAfter(s, added)
		return
	}
	for now := conn.Now(); len(l.all) > 0 && l.all[0].over(now); {
		l.all = l.all[1:]
	}
	for _, n := range added {
		n.look, n.begun = due, l.begun
	}
	l.all = append(l.all, added...)
	if above := len(l.all) - maxLate; above > 0 {
		l.all = l.all[above:]
		l.dropped += above
	}
	l.startLocked(s)
}

// reconnected has all nodes looked for on a new connection.
func (l *late) reconnected(s *session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.allDueLocked()
	l.startLocked(s)
}

// disconnected forgets the nodes that cannot be created any more. Any connect request may let a server
// create the others, although the client gets no answer, so they are due until they have been looked for
// on another connection.
func (l *late) disconnected() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forgetLocked()
	l.allDueLocked()
}

func (l *late) allDueLocked() {
	for _, n := range l.all {
		n.look = due
	}
}

// forgetLocked forgets the nodes that cannot be created any more and need not be looked for.
func (l *late) forgetLocked() {
	now := conn.Now()
	l.all = slices.DeleteFunc(l.all, func(n *lateNodes) bool { return n.over(now) })
}

// ended has the nodes that outlive the session looked for in the next one.
func (l *late) ended(s *session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	cleanUpAfter(s, l.all)
	l.all = nil
}

// cleanUpAfter has those of the nodes looked for in the session after s that outlive s.
func cleanUpAfter(s *session, all []*lateNodes) {
	now := conn.Now()
	left := slices.DeleteFunc(all, func(n *lateNodes) bool { return n.over(now) || !n.outlive() })
	if len(left) > 0 {
		left[0].o.cleanUpAfter(left, s)
	}
}

// over reports whether the nodes cannot be created any more and need not be looked for. Those that have
// been looked for on the current connection cannot be created until it ends.
func (n *lateNodes) over(now conn.Stamp) bool {
	return n.look == looked && now.Since(n.since) >= lateTimeout
}

// outlive reports whether one of the nodes outlives its session.
func (n *lateNodes) outlive() bool {
	return slices.ContainsFunc(n.nodes, func(c creation) bool { return !c.ephemeral() })
}

func (l *late) startLocked(s *session) {
	if !l.running && len(l.all) > 0 {
		l.running = s.spawn(func() { s.core.pending(func() { l.cleanUp(s) }) })
	}
}

// cleanupDelay gives way to the next requests of the program, and collects nodes that become due
// meanwhile. It is not a round number, so that in simulations no other timer ends at the same
// instant.
const cleanupDelay = 73 * time.Millisecond

// cleanUp looks for the nodes that are due until there are none. Without a connection it returns,
// and the next connection starts it again.
func (l *late) cleanUp(s *session) {
	sleep(cleanupDelay, s.done, s.core.ctx.Done())
	if dropped := l.takeDropped(); dropped > 0 {
		s.core.cfg.log.Warn("too many creates without an answer: the oldest are not looked for any more",
			zap.Int("transactions", dropped))
	}
	failures := 0
	for taken := l.takeDue(s); taken != nil; taken = l.takeDue(s) {
		if l.lookFor(s, taken) || s.reason() != nil {
			failures = 0
			continue
		}
		// These pauses differ from those of backgroundPolicy, which the same failure may have started.
		sleep(cleanupDelay<<min(failures, 5), s.done, s.core.ctx.Done())
		failures++
	}
}

// takeDue returns the nodes that are due. It returns nil if there are none or if there is no
// connection, and then drops the nodes older than lateTimeout that are not due.
func (l *late) takeDue(s *session) (taken []*lateNodes) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if connected, _, err := s.connected(); connected && err == nil {
		for _, n := range l.all {
			if n.look == due {
				n.look = looking
				taken = append(taken, n)
			}
		}
	}
	if taken == nil {
		l.forgetLocked()
		l.running = false
	}
	return taken
}

// lookFor looks below one parent after another until a look is not complete, and reports whether all were.
// The parent whose last look began first comes first. So the client gets to all parents, even if each of its
// connections is short.
func (l *late) lookFor(s *session, taken []*lateNodes) (complete bool) {
	complete = true
	for _, below := range byParent(taken) {
		if complete {
			l.begin(below)
			complete = s.deleteLate(s.core.ctx, below) == nil
		}
		l.finish(below, complete)
	}
	return complete
}

// byParent divides all by their parents.
func byParent(all []*lateNodes) [][]*lateNodes {
	parents := map[string][]*lateNodes{}
	for _, n := range all {
		parents[n.parent] = append(parents[n.parent], n)
	}
	return slices.SortedFunc(maps.Values(parents), func(a, b []*lateNodes) int {
		return cmp.Or(cmp.Compare(lastLook(a), lastLook(b)), cmp.Compare(a[0].parent, b[0].parent))
	})
}

// lastLook returns the number of the last look for all.
func lastLook(all []*lateNodes) uint64 {
	return slices.MinFunc(all, func(a, b *lateNodes) int { return cmp.Compare(a.begun, b.begun) }).begun
}

func (l *late) begin(below []*lateNodes) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begun++
	for _, n := range below {
		n.begun = l.begun
	}
}

// finish ends the look for nodes that takeDue has returned. Meanwhile they may have become due again.
func (l *late) finish(below []*lateNodes, complete bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range below {
		switch {
		case !complete:
			n.look = due
		case n.look == looking:
			n.look = looked
		}
	}
}

func (l *late) takeDropped() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, l.dropped = l.dropped, 0
	return n
}

// path returns the path of the first node, without the sequence number.
func (n *lateNodes) path() string { return n.nodes[0].full }

// lateNode is a protected node that may be created late.
type lateNode struct {
	creation
	of *lateNodes
}

// deleteLate deletes those nodes below one parent that exist and that their callers did not get. It returns
// only an error that may pass, or the end of the session or the client.
func (s *session) deleteLate(ctx context.Context, below []*lateNodes) error {
	parent := below[0].parent
	err := s.deleteLateBelow(ctx, parent, wantedOf(below))
	if s.interrupts(ctx, err) {
		return err
	}
	s.logCleanupFailure(parent, err)
	return nil
}

// wantedOf returns the nodes of all by their GUIDs, or names.
func wantedOf(all []*lateNodes) map[string]lateNode {
	wanted := map[string]lateNode{}
	for _, n := range all {
		for _, c := range n.nodes {
			wanted[c.guid] = lateNode{c, n}
		}
	}
	return wanted
}

// interrupts reports whether err may pass or is the end of the session or the client. It reports
// false if the servers refused the request.
func (s *session) interrupts(ctx context.Context, err error) bool {
	return err != nil && (IsTransient(err) || ctx.Err() != nil || s.reason() != nil)
}

func (s *session) logCleanupFailure(path string, err error) {
	if err != nil && !isNoNode(err) {
		s.core.cfg.log.Warn("background deletion failed", zap.String("op", "cleanup"), zap.String("path", path),
			zap.Error(err))
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
		node, ok := wanted[name]
		if guid, protected := znode.GUIDOf(name); protected && !ok {
			node, ok = wanted[guid]
		}
		if !ok || !node.made(name) {
			continue
		}
		full := znode.Join(parent, "/"+name)
		czxid, err := s.czxidOf(ctx, full, node.ephemeral())
		if s.interrupts(ctx, err) {
			return err
		}
		s.logCleanupFailure(full, err)
		// The path does not tell whether the caller got the node. When it has deleted its own, another create
		// makes the same path if that has no number, if the parent's counter has ended, or if the parent was
		// deleted and created again.
		if czxid != 0 && czxid != node.of.owned.czxid {
			unowned = append(unowned, full)
		}
	}
	var refused error
	for some := range batches(unowned) {
		switch err := (&deletion{left: slices.Clone(some), uncertain: true}).attempt(ctx, s); {
		case s.interrupts(ctx, err):
			return err
		case err != nil: // perhaps of one node only
			refused = err
		default:
			s.logDeleted(some)
		}
	}
	s.logLook(parent, wanted, len(children), unowned)
	return refused
}

func (s *session) logDeleted(nodes []string) {
	for _, full := range nodes {
		s.core.cfg.log.Info("deleted a node that nothing owned", zap.String("path", full), logfield.Session(s.id()))
	}
}

// logLook logs which creates were looked for, so that the log explains a node that is left.
func (s *session) logLook(parent string, wanted map[string]lateNode, children int, unowned []string) {
	entry := s.core.cfg.log.Check(zap.DebugLevel, "looked for late creates")
	if entry == nil { // the fields are made only if needed
		return
	}
	entry.Write(zap.String("path", parent), zap.Strings("guids", slices.Sorted(maps.Keys(wanted))),
		zap.Int("children", children), zap.Strings("unowned", unowned), zap.String("server", s.conn.Server()),
		logfield.Session(s.id()))
}
