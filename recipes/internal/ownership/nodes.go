package ownership

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/framework/metrics"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/errtext"
	"github.com/docent-zk/docent/internal/logfield"
)

// RevokeMessage is the data by which another client asks for the release of a lock node:
// Curator's, to the byte.
const RevokeMessage = "__REVOKE__"

// Grant describes the acquired lock nodes from which New makes a Hold.
type Grant struct {
	Session  *framework.Session // that all nodes belong to
	Lifetime bridge.Lifetime    // that began before the nodes were known to be first
	Recipe   string             // what measurements call the kind of lock
	Locks    []Lock             // that the nodes hold, at least one
	Nodes    []Node             // at least one
	Key      any                // of all locks together, for re-entry; nil: they are not re-entered as one
	Log      *zap.Logger        // for the begin of the hold
}

// Lock is one lock of a Grant.
type Lock struct {
	Path  string // what measurements call it
	Key   any    // for re-entry: comparable, one for each lock of each client
	Token int64  // the fencing token
}

// Node is one lock node of a Grant.
type Node struct {
	Path  string
	Watch *framework.Watch // for its data; nil: there is none yet
	Data  []byte           // what was read with Watch
}

// New returns the first hold of lock nodes.
func New(g Grant) *Hold {
	if entry := g.Log.Check(zap.DebugLevel, "acquired"); entry != nil { // the fields are made only if needed
		entry.Write(zap.String("node", g.Nodes[0].Path), logfield.Session(g.Session.ID()),
			logfield.Token(g.Locks[0].Token))
	}
	n := &nodes{Grant: g, watchers: make([]nodeWatcher, len(g.Nodes))}
	n.owner = newOwnership(n)
	h := n.owner.newHoldLocked()
	for i := range g.Nodes {
		n.watchers[i].nodes, n.watchers[i].index = n, i
	}
	if !g.Lifetime.Notify(n) {
		n.owner.lose(n.check())
		return h
	}
	for i, node := range g.Nodes {
		if isRevoked(node.Data) {
			n.owner.request()
		}
		n.watchers[i].start(node.Watch)
	}
	return h
}

// nodes are lock nodes as a resource.
type nodes struct {
	Grant
	owner    *ownership
	watchers []nodeWatcher // one for each node
}

// HoldsNode reports whether there is a hold of a lock node of the session with this name. The hold may
// have been lost just now.
func HoldsNode(s *framework.Session, name string) bool {
	end := "/" + name
	return bridge.OfSession(s).Lifetime().Notifies(func(l bridge.EndListener) bool {
		n, ok := l.(*nodes)
		return ok && slices.ContainsFunc(n.Nodes, func(node Node) bool { return strings.HasSuffix(node.Path, end) })
	})
}

// LifetimeEnded implements bridge.EndListener.
func (n *nodes) LifetimeEnded() (cleanUp, report func()) {
	n.owner.endIfLost()
	return n.owner.cleanUp, n.owner.report
}

func (n *nodes) session() *framework.Session { return n.Session }
func (n *nodes) background(fn func()) bool   { return bridge.OfSession(n.Session).Go(fn) }
func (n *nodes) locks() []Lock               { return n.Locks }
func (n *nodes) parts() []*Hold              { return nil }
func (n *nodes) validUntil() time.Time       { return n.Session.ValidUntil() }
func (n *nodes) check() error                { return n.Lifetime.Err() }

func (n *nodes) stopLocked() {
	n.Lifetime.Stop(n)
	for i := range n.watchers {
		n.watchers[i].stopLocked()
	}
}

func (n *nodes) paths() []string {
	paths := make([]string, len(n.Nodes))
	for i, node := range n.Nodes {
		paths[i] = node.Path
	}
	return paths
}

// abandon deletes what is left where the session lives on.
func (n *nodes) abandon(reason error) {
	var deleted *nodeDeletedError
	switch {
	case errors.Is(reason, framework.ErrSuspended):
		bridge.OfSession(n.Session).DeleteLater(n.paths()...)
	case errors.As(reason, &deleted) && len(n.Nodes) > 1:
		left := slices.DeleteFunc(n.paths(), func(path string) bool { return path == deleted.node })
		bridge.OfSession(n.Session).DeleteLater(left...)
	}
}

func (n *nodes) logLoss(reason error) {
	level := levelOf(reason)
	if n.owner.kept { // which does not change any more
		level = zap.DebugLevel
	}
	n.Session.Logger().Named(n.Recipe).Log(level, "hold ended", zap.String("path", n.Nodes[0].Path),
		logfield.Session(n.Session.ID()), logfield.Token(n.Locks[0].Token), zap.Error(reason))
}

// levelOf returns the level for the end of a hold: Close ends it on purpose.
func levelOf(reason error) zapcore.Level {
	if errors.Is(reason, framework.ErrClosed) {
		return zap.InfoLevel
	}
	return zap.WarnLevel
}

// release deletes the nodes, in one transaction. A node that does not exist was deleted by
// another client while it was held. A session that ends only now is no loss, so the error must
// not look like one.
func (n *nodes) release() error {
	ctx, cancel := context.WithTimeout(context.Background(), n.Session.Timeout())
	defer cancel()
	err := n.Session.DeleteGuaranteed(ctx, n.paths()...)
	node := n.Nodes[0].Path
	switch {
	case err == nil:
		return nil
	case errors.Is(err, zk.ErrNoNode):
		return fmt.Errorf("release %s: %w", node, ErrNodeDeleted)
	case errors.Is(err, framework.ErrSessionLost), errors.Is(err, framework.ErrClosed):
		return fmt.Errorf("release %s: %w", node, errtext.Because(ErrReleasePending, errors.New(err.Error())))
	}
	return fmt.Errorf("release %s: %w", node, errtext.Because(ErrReleasePending, err))
}

func (n *nodes) measure(held time.Duration, err error) {
	for _, l := range n.Locks {
		measure(bridge.OfSession(n.Session).Metrics(), metrics.Labels{Recipe: n.Recipe, Path: l.Path}, held, err)
	}
}

func (n *nodes) addHeld(more int64) {
	for _, l := range n.Locks {
		bridge.OfSession(n.Session).AddHeld(more, metrics.Labels{Recipe: n.Recipe, Path: l.Path})
	}
}

func isRevoked(data []byte) bool { return string(data) == RevokeMessage }

// nodeDeletedError is ErrNodeDeleted, and which node.
type nodeDeletedError struct {
	node  string
	owner int64 // the session that has a node of that name now; 0: none
}

func (e *nodeDeletedError) Error() string {
	if e.owner != 0 {
		return fmt.Sprintf("%v: %s belongs to session %v now", ErrNodeDeleted, e.node, logfield.Hex(e.owner))
	}
	return fmt.Sprintf("%v: %s", ErrNodeDeleted, e.node)
}

func (e *nodeDeletedError) Unwrap() error { return ErrNodeDeleted }
