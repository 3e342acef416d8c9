package tree

import (
	"fmt"
	"math"

	"github.com/docent-zk/docent/zktest/internal/proto"
	"github.com/docent-zk/docent/zktest/op"
)

// Caller is who asks.
type Caller struct {
	Session int64
	IDs     []proto.ID
}

// Outcome is what came of a request that writes.
type Outcome struct {
	Op      op.Op // as which it was carried out
	Code    proto.Code
	Path    string      // of a create
	Stat    *proto.Stat // of all but a delete, after it
	Parts   []Outcome   // of a multi
	Effects []Effect    // none if it failed
}

// Execute carries out a request that writes, or changes nothing.
func (t *Tree) Execute(req *proto.Request, who Caller, at Stamp) Outcome {
	if req.Op == op.Multi {
		return t.multi(req, who, at)
	}
	e, code := t.plan(req, who)
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

func (t *Tree) outcome(o op.Op, e Effect, effects []Effect) Outcome {
	out := Outcome{Op: o, Path: e.Path, Effects: effects}
	if n := t.node(e.Path); n != nil {
		out.Stat = n.stat()
	}
	return out
}

// plan checks a request in the server's order and says what it changes. The zero Effect is of those that only check.
func (t *Tree) plan(req *proto.Request, who Caller) (Effect, proto.Code) {
	switch req.Op {
	case op.Create, op.Create2, op.CreateContainer, op.CreateTTL:
		return t.planCreate(req, who)
	case op.Delete, op.DeleteContainer:
		return t.planDelete(req, who)
	case op.SetData:
		return t.planSet(req, who)
	case op.SetACL:
		return t.planACL(req, who)
	case op.Check:
		n, code := t.guarded(req.Path, proto.PermRead, who)
		if code == proto.OK && !n.hasVersion(req.Version) {
			code = proto.BadVersion
		}
		return Effect{}, code
	}
	return Effect{}, proto.Unimplemented
}

// guarded is the node at path if who has the permission.
func (t *Tree) guarded(path string, perm int32, who Caller) (*node, proto.Code) {
	if !Valid(path) {
		return nil, proto.BadArguments
	}
	n := t.node(path)
	switch {
	case n == nil:
		return nil, proto.NoNode
	case !Allowed(n.acl, perm, who.IDs):
		return nil, proto.NoAuth
	}
	return n, proto.OK
}

// hasVersion compares with what a client asks for.
func (n *node) hasVersion(version int32) bool { return version == -1 || version == n.version }

func (t *Tree) planSet(req *proto.Request, who Caller) (Effect, proto.Code) {
	n, code := t.guarded(req.Path, proto.PermWrite, who)
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

func (t *Tree) planACL(req *proto.Request, who Caller) (Effect, proto.Code) {
	if !Valid(req.Path) {
		return Effect{}, proto.BadArguments
	}
	acl, ok := t.resolve(req.ACL, who.IDs)
	if !ok {
		return Effect{}, proto.InvalidACL
	}
	n := t.node(req.Path)
	switch {
	case n == nil:
		return Effect{}, proto.NoNode
	case !Allowed(n.acl, proto.PermAdmin, who.IDs):
		return Effect{}, proto.NoAuth
	case req.Version != -1 && req.Version != n.aversion:
		return Effect{}, proto.BadVersion
	}
	return Effect{Kind: Guarded, Path: req.Path, ACL: acl}, proto.OK
}

// SetSequence sets the number that the next sequential child of path gets.
func (t *Tree) SetSequence(path string, next int32) error {
	n := t.node(path)
	if n == nil || next < 0 {
		return fmt.Errorf("next sequence number %d of %s: want 0 to %d, and a node", next, path, math.MaxInt32)
	}
	n.creates = next
	return nil
}
