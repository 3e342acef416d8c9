package ownership

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
)

func (h *Hold) Guard(ctx context.Context, ops ...framework.Op) ([]framework.Result, error) {
	if err := h.Err(); err != nil {
		return nil, h.refused(framework.NotApplied, err)
	}
	if i := slices.Index(ops, nil); i >= 0 {
		return nil, h.refused(framework.NotApplied, fmt.Errorf("recipes: operation %d is nil", i))
	}
	session, err := h.oneSession()
	if err != nil {
		return nil, h.refused(framework.NotApplied, err)
	}
	done, held := h.startGuards()
	if !held {
		return nil, h.refused(framework.NotApplied, h.Err())
	}
	checks, checked := h.checks()
	results, err := session.Multi(ctx, append(checks, ops...)...)
	done(err)
	if len(results) == 0 {
		return nil, guarded(h.name(), err)
	}
	for i, node := range checked {
		if errors.Is(results[i].Err, zk.ErrNoNode) {
			// unless it had ended for another reason, such as Release
			node.owner.lose(&nodeDeletedError{node: node.path})
			return nil, h.refused(framework.OutcomeOf(err), h.Err())
		}
	}
	return results[len(checked):], guarded(h.name(), err)
}

// oneSession returns the session of all nodes. Through it all of them have the paths that the
// hold knows. Locks of other services have none.
func (h *Hold) oneSession() (session *framework.Session, err error) {
	for _, leaf := range h.leaves() {
		other := leaf.owned.session()
		switch {
		case other == nil || session == nil:
			session = cmp.Or(session, other)
		case other.ID() != session.ID() || bridge.OfSession(other).Key("/") != bridge.OfSession(session).Key("/"):
			return nil, ErrManySessions
		}
	}
	if session == nil {
		return nil, ErrUnsupported
	}
	return session, nil
}

// ownNode is a node and its owner.
type ownNode struct {
	path  string
	owner *ownership
}

// checks returns operations that fail unless all nodes exist.
func (h *Hold) checks() (checks []framework.Op, checked []ownNode) {
	for _, leaf := range h.leaves() {
		for _, path := range leaf.owned.paths() {
			checks = append(checks, framework.CheckOp(path, -1))
			checked = append(checked, ownNode{path, leaf.owned})
		}
	}
	return checks, checked
}

// startGuards notes a guarded transaction of all leaves.
func (h *Hold) startGuards() (done func(error), ok bool) {
	var all []func(error)
	done = func(err error) {
		for _, d := range all {
			d(err)
		}
	}
	for _, leaf := range h.leaves() {
		d, held := leaf.owned.startGuard(leaf)
		if !held {
			done(nil)
			return nil, false
		}
		all = append(all, d)
	}
	return done, true
}

func (h *Hold) refused(outcome framework.Outcome, err error) error {
	return &framework.Error{Op: "guard", Path: h.name(), Outcome: outcome, Err: err}
}

func guarded(node string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("guard %s: %w", node, err)
}
