package recipes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/logfield"
)

// RevokeMessage is what a lock node is set to by whoever wants the lock back. Curator's, to the byte. It is for recipes.
const RevokeMessage = "__REVOKE__"

// Grant is what a hold begins with: lock nodes that have come to the front of their lines. It is for recipes.
type Grant struct {
	Session *framework.Session // that all nodes belong to
	Footing framework.Footing  // what the hold stands on; it was good when nobody was ahead
	Recipe  string             // what measurements call the kind of lock
	Locks   []Lock             // that are held by it, at least one
	Nodes   []Node             // at least one
	Key     any                // of all locks together, for re-entry; nil if there is no such thing
}

// Lock is one lock of a Grant.
type Lock struct {
	Path  string // what measurements call it
	Key   any    // for re-entry: comparable, one for each lock of each client
	Token int64  // the czxid of its node
}

// Node is one lock node of a Grant.
type Node struct {
	Path  string
	Watch *framework.Watch // for its data, if there is one already
	Data  []byte           // what was read with Watch
}

// NewHold makes the first level of ownership of lock nodes. It is for recipes.
func NewHold(g Grant) *Hold {
	n := &nodes{Grant: g, sentries: make([]sentry, len(g.Nodes))}
	n.tenure = newTenure(n)
	h := n.tenure.newLevel()
	for i := range g.Nodes {
		n.sentries[i].nodes, n.sentries[i].index = n, i
	}
	if !g.Footing.Stand(n) {
		n.tenure.check()
		return h
	}
	for i, node := range g.Nodes {
		if wantedBack(node.Data) {
			n.tenure.heed()
		}
		n.sentries[i].begin(node.Watch)
	}
	return h
}

// nodes are lock nodes as an estate.
type nodes struct {
	Grant
	tenure   *tenure
	sentries []sentry // one for each node
}

// Gone ends the tenure, and leaves the rest until all have ended that stood on the same.
func (n *nodes) Gone() (then func()) {
	if err := n.trouble(); err != nil {
		return n.tenure.lose(err)
	}
	return nil
}

func (n *nodes) session() *framework.Session { return n.Session }
func (n *nodes) locks() []Lock               { return n.Locks }
func (n *nodes) parts() []*Hold              { return nil }
func (n *nodes) validUntil() time.Time       { return n.Session.ValidUntil() }
func (n *nodes) trouble() error              { return n.Footing.Err() }

func (n *nodes) attend() {
	for i := range n.sentries {
		n.sentries[i].wake()
	}
}

func (n *nodes) rest() {
	n.Footing.Leave(n)
	for i := range n.sentries {
		n.sentries[i].end()
	}
}

func (n *nodes) paths() []string {
	paths := make([]string, len(n.Nodes))
	for i, node := range n.Nodes {
		paths[i] = node.Path
	}
	return paths
}

// forsake deletes what is left where the session lives on.
func (n *nodes) forsake(reason error) {
	defer n.logLoss(reason) // last: it is code of the program's, which may panic
	var gone *goneError
	switch {
	case errors.Is(reason, framework.ErrSuspended):
		n.Session.DeleteLater(n.paths()...)
	case errors.As(reason, &gone) && len(n.Nodes) > 1:
		n.Session.DeleteLater(slices.DeleteFunc(n.paths(), func(path string) bool { return path == gone.node })...)
	}
}

func (n *nodes) logLoss(reason error) {
	level := levelOf(reason)
	if n.tenure.idle { // which does not change any more
		level = zap.DebugLevel
	}
	n.Session.Logger().Named(n.Recipe).Log(level, "hold ended", zap.String("path", n.Nodes[0].Path),
		logfield.Session(n.Session.ID()), logfield.Token(n.Locks[0].Token), zap.Error(reason))
}

// levelOf is the level for the end of a hold: Close ends it on purpose.
func levelOf(reason error) zapcore.Level {
	if errors.Is(reason, framework.ErrClosed) {
		return zap.InfoLevel
	}
	return zap.WarnLevel
}

// giveUp deletes the nodes, in one transaction. A node that is gone already was deleted by somebody else while we held it. A session
// that ends only now is no loss, so the error must not look like one.
func (n *nodes) giveUp() error {
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
		return fmt.Errorf("release %s: %w: %v", node, ErrReleasePending, err)
	}
	return fmt.Errorf("release %s: %w: %w", node, ErrReleasePending, err)
}

func (n *nodes) measure(held time.Duration, err error) {
	for _, l := range n.Locks {
		measure(n.Session.Metrics(), framework.Labels{Recipe: n.Recipe, Path: l.Path}, held, err)
	}
}

func wantedBack(data []byte) bool { return string(data) == RevokeMessage }

// goneError is ErrNodeDeleted, and which node.
type goneError struct {
	node  string
	owner int64 // the session that has a node of that name now; 0: none
}

func (e *goneError) Error() string {
	if e.owner != 0 {
		return fmt.Sprintf("%v: %s belongs to session %v now", ErrNodeDeleted, e.node, logfield.Hex(e.owner))
	}
	return fmt.Sprintf("%v: %s", ErrNodeDeleted, e.node)
}

func (e *goneError) Unwrap() error { return ErrNodeDeleted }
