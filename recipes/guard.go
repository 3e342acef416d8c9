package recipes

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
)

// Guard applies ops in one transaction, only if the hold's nodes still exist: a hold that has ended, noticed or not, changes nothing. It
// is how data in the same ensemble is protected without a token. Without ops it only asks the servers whether the hold is valid.
//
// The results are those of ops. It fails like framework.Session.Multi, and with the reason of Err if the hold has ended. Locks
// of several clients that are held as one (multilock.Of) cannot be asked in one transaction: ErrManySessions.
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
	done, held := h.guardAll()
	if !held {
		return nil, h.refused(framework.NotApplied, h.Err())
	}
	checks, checked := h.checks()
	results, err := session.Multi(ctx, append(checks, ops...)...)
	done(err)
	if len(results) == 0 {
		return nil, guarded(h.Path(), err)
	}
	for i, node := range checked {
		if errors.Is(results[i].Err, zk.ErrNoNode) {
			node.owner.end(&goneError{node: node.path}) // unless it had ended for another reason, such as our own Release
			return nil, h.refused(framework.OutcomeOf(err), h.Err())
		}
	}
	return results[len(checked):], guarded(h.Path(), err)
}

// oneSession is the session of all nodes, through which all of them have the paths that the hold knows.
func (h *Hold) oneSession() (*framework.Session, error) {
	leaves := h.leaves()
	session := leaves[0].tenure.session()
	for _, leaf := range leaves[1:] {
		other := leaf.tenure.session()
		if other.ID() != session.ID() || other.Key("/") != session.Key("/") {
			return nil, ErrManySessions
		}
	}
	return session, nil
}

// ownNode is a node and whose it is.
type ownNode struct {
	path  string
	owner *tenure
}

// checks make sure that all nodes exist.
func (h *Hold) checks() (checks []framework.Op, checked []ownNode) {
	for _, leaf := range h.leaves() {
		for _, path := range leaf.tenure.paths() {
			checks = append(checks, framework.CheckOp(path, -1))
			checked = append(checked, ownNode{path, leaf.tenure})
		}
	}
	return checks, checked
}

// guardAll notes a guarded transaction of all leaves.
func (h *Hold) guardAll() (done func(error), ok bool) {
	var all []func(error)
	done = func(err error) {
		for _, d := range all {
			d(err)
		}
	}
	for _, leaf := range h.leaves() {
		d, held := leaf.tenure.guard(leaf)
		if !held {
			done(nil)
			return nil, false
		}
		all = append(all, d)
	}
	return done, true
}

func (h *Hold) refused(outcome framework.Outcome, err error) error {
	return &framework.Error{Op: "guard", Path: h.Path(), Outcome: outcome, Err: err}
}

func guarded(node string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("guard %s: %w", node, err)
}
