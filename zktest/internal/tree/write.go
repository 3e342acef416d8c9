package tree

import (
	"fmt"
	"math"

	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/internal/proto"
)

// Caller is the client that sends a request.
type Caller struct {
	Session int64
	IDs     []proto.ID
}

// Outcome is the result of a writing request.
type Outcome struct {
	Op      fault.Op // the type as which it was carried out
	Code    proto.Code
	Path    string      // of a create
	Stat    *proto.Stat // of all except a delete, after the change
	Parts   []Outcome   // of a multi
	Effects []Effect    // none on failure
}

// Execute carries out a writing request. A request that fails changes nothing.
func (t *Tree) Execute(req *proto.Request, caller Caller, at Stamp) Outcome {
	if req.Op == fault.OpMulti {
		return t.multi(req, caller, at)
	}
	e, code := t.plan(req, caller)
	if code != proto.OK {
		return Outcome{Op: req.Op, Code: code}
	}
	if e.Kind == 0 {
		return Outcome{Op: req.Op}
	}
	t.apply(e, at)
	effects := []Effect{e}
	t.account(effects)
	return t.outcome(req.Op, e, effects)
}

func (t *Tree) outcome(o fault.Op, e Effect, effects []Effect) Outcome {
	out := Outcome{Op: o, Path: e.Path, Effects: effects}
	if n := t.node(e.Path); n != nil {
		out.Stat = n.stat()
	}
	return out
}

// plan checks a request in the server's order and returns its change. A request that only checks
// has the zero Effect.
func (t *Tree) plan(req *proto.Request, caller Caller) (Effect, proto.Code) {
	switch req.Op {
	case fault.OpCreate, fault.OpCreate2, fault.OpCreateContainer, fault.OpCreateTTL:
		return t.planCreate(req, caller)
	case fault.OpDelete, fault.OpDeleteContainer:
		return t.planDelete(req, caller)
	case fault.OpSetData:
		return t.planSet(req, caller)
	case fault.OpSetACL:
		return t.planACL(req, caller)
	case fault.OpCheck:
		n, code := t.guarded(req.Path, proto.PermRead, caller)
		if code == proto.OK && !n.hasVersion(req.Version) {
			code = proto.BadVersion
		}
		return Effect{}, code
	}
	return Effect{}, proto.Unimplemented
}

// guarded returns the node at path if the caller has the permission.
func (t *Tree) guarded(path string, perm int32, caller Caller) (*node, proto.Code) {
	if !Valid(path) {
		return nil, proto.BadArguments
	}
	n := t.node(path)
	switch {
	case n == nil:
		return nil, proto.NoNode
	case !Allowed(t.checked(n), perm, caller.IDs):
		return nil, proto.NoAuth
	}
	return n, proto.OK
}

// hasVersion reports whether the node has the version that a client asks for. -1 matches any.
func (n *node) hasVersion(version int32) bool { return version == -1 || version == n.version }

func (t *Tree) planSet(req *proto.Request, caller Caller) (Effect, proto.Code) {
	n, code := t.guarded(req.Path, proto.PermWrite, caller)
	switch {
	case code != proto.OK:
		return Effect{}, code
	case t.exceeds(req.Path, 0, len(req.Data)-len(n.data)):
		return Effect{}, proto.QuotaExceeded
	case !n.hasVersion(req.Version):
		return Effect{}, proto.BadVersion
	}
	return Effect{Kind: Changed, Path: req.Path, ACL: n.acl, data: req.Data}, proto.OK
}

func (t *Tree) planACL(req *proto.Request, caller Caller) (Effect, proto.Code) {
	if !Valid(req.Path) {
		return Effect{}, proto.BadArguments
	}
	acl, ok := t.resolve(req.ACL, caller.IDs)
	if !ok {
		return Effect{}, proto.InvalidACL
	}
	n := t.node(req.Path)
	switch {
	case n == nil:
		return Effect{}, proto.NoNode
	case !Allowed(t.checked(n), proto.PermAdmin, caller.IDs):
		return Effect{}, proto.NoAuth
	case req.Version != -1 && req.Version != n.aversion:
		return Effect{}, proto.BadVersion
	}
	return Effect{Kind: Guarded, Path: req.Path, ACL: acl}, proto.OK
}

// SetSequence sets the number of the next sequential child of path.
func (t *Tree) SetSequence(path string, next int32) error {
	n := t.node(path)
	if n == nil || next < 0 {
		return fmt.Errorf("next sequence number %d of %s: want 0 to %d, and a node", next, path, math.MaxInt32)
	}
	n.creates = next
	return nil
}

// SetVersion sets the version of the data of path.
func (t *Tree) SetVersion(path string, version int32) error {
	n := t.node(path)
	if n == nil {
		return fmt.Errorf("version %d of %s: want a node", version, path)
	}
	n.version = version
	return nil
}
