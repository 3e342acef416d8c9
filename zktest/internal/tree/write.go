package tree

import (
	"fmt"
	"math"

	"github.com/docent-zk/docent/zktest/internal/op"
	"github.com/docent-zk/docent/zktest/internal/proto"
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

// multi carries out all parts or none. Each sees what those before it did.
func (t *Tree) multi(req *proto.Request, who Caller, at Stamp) Outcome {
	all := Outcome{Op: op.Multi}
	if !t.legible(req) {
		all.Code = proto.Marshalling
		return all
	}
	var undo []func()
	for i := range req.Parts {
		part := t.asPart(req.Parts[i])
		e, code := t.plan(&part, who)
		if code != proto.OK {
			for i := len(undo) - 1; i >= 0; i-- {
				undo[i]()
			}
			if misread(&part) {
				return Outcome{Op: op.Multi, Code: proto.Marshalling}
			}
			return Outcome{Op: op.Multi, Parts: failedParts(len(req.Parts), i, code)}
		}
		if e.Kind == 0 {
			all.Parts = append(all.Parts, Outcome{Op: part.Op})
			continue
		}
		undo = append(undo, t.apply(e, at))
		all.Effects = append(all.Effects, e)
		all.Parts = append(all.Parts, t.outcome(part.Op, e, nil))
	}
	t.account(all.Effects)
	return all
}

// legible is false for a multi with a flag that there is not: new servers give up while they read it.
func (t *Tree) legible(req *proto.Request) bool {
	for i := range req.Parts {
		if part := &req.Parts[i]; creates(part.Op) && t.rules.StrictMultiFlags && !isFlag(part.Flags) {
			return false
		}
	}
	return true
}

func creates(o op.Op) bool {
	return o == op.Create || o == op.Create2 || o == op.CreateContainer || o == op.CreateTTL
}

// misread is a part that has one type by its flag and another by what it holds. The real server stumbles over it when it gets there, and
// gives up the whole multi.
func misread(part *proto.Request) bool {
	return creates(part.Op) && isTTL(part.Flags) && part.Op != op.CreateTTL
}

func isFlag(flag int32) bool { return flag >= proto.FlagPersistent && flag <= proto.FlagTTLSequential }

func isTTL(flag int32) bool { return flag == proto.FlagTTL || flag == proto.FlagTTLSequential }

// asPart is a create of any type as the type that it has within a multi: there the flag decides.
func (t *Tree) asPart(req proto.Request) proto.Request {
	switch {
	case !creates(req.Op):
	case req.Flags == proto.FlagContainer:
		req.Op = op.CreateContainer
	case isTTL(req.Flags):
	case req.Op == op.Create2 && !t.rules.OldMultiCreate2:
	default:
		req.Op = op.Create
	}
	return req
}

func failedParts(n, failed int, code proto.Code) []Outcome {
	parts := make([]Outcome, n)
	for i := range parts {
		parts[i].Op = -1
		switch {
		case i == failed:
			parts[i].Code = code
		case i > failed:
			parts[i].Code = proto.RuntimeInconsist
		}
	}
	return parts
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
	if !valid(path) {
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
	if !valid(req.Path) {
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

func (t *Tree) planDelete(req *proto.Request, who Caller) (Effect, proto.Code) {
	if !plausible(req.Path) || special(req.Path) {
		return Effect{}, proto.BadArguments
	}
	reap := req.Op == op.DeleteContainer
	parent, n := t.node(Parent(req.Path)), t.node(req.Path)
	switch {
	case reap && n == nil:
		return Effect{}, proto.NoNode
	case parent == nil:
		return Effect{}, proto.NoNode
	case !reap && !Allowed(parent.acl, proto.PermDelete, who.IDs):
		return Effect{}, proto.NoAuth
	case n == nil:
		return Effect{}, proto.NoNode
	case !reap && !n.hasVersion(req.Version):
		return Effect{}, proto.BadVersion
	case n.children.len() > 0:
		return Effect{}, proto.NotEmpty
	case reap && n.life == ephemeral:
		return Effect{}, proto.BadVersion
	}
	return deletion(req.Path, n, parent), proto.OK
}

func deletion(path string, n, parent *node) Effect {
	return Effect{Kind: Deleted, Path: path, ACL: n.acl, ParentACL: parent.acl}
}

// EndSession deletes a session's nodes.
func (t *Tree) EndSession(session int64, at Stamp) []Effect {
	var effects []Effect
	for _, path := range t.Ephemerals(session) {
		e := deletion(path, t.node(path), t.node(Parent(path)))
		t.apply(e, at)
		effects = append(effects, e)
	}
	t.account(effects)
	return effects
}

func (t *Tree) planCreate(req *proto.Request, who Caller) (Effect, proto.Code) {
	e, sequential, code := t.mode(req, who)
	if code != proto.OK {
		return Effect{}, code
	}
	if !plausible(req.Path) {
		return Effect{}, proto.BadArguments
	}
	acl, ok := t.resolve(req.ACL, who.IDs)
	if !ok {
		return Effect{}, proto.InvalidACL
	}
	parent := t.node(Parent(req.Path))
	switch {
	case parent == nil:
		return Effect{}, proto.NoNode
	case !Allowed(parent.acl, proto.PermCreate, who.IDs):
		return Effect{}, proto.NoAuth
	}
	e.Path = req.Path
	if sequential {
		e.Path += fmt.Sprintf("%010d", parent.creates)
	}
	switch {
	case !valid(e.Path):
		return Effect{}, proto.BadArguments
	case t.node(e.Path) != nil:
		return Effect{}, proto.NodeExists
	case parent.life == ephemeral:
		return Effect{}, proto.NoChildrenForEphem
	case t.exceeds(e.Path, 1, len(req.Data)):
		return Effect{}, proto.QuotaExceeded
	}
	e.Kind, e.ACL, e.ParentACL, e.data = Created, acl, parent.acl, req.Data
	return e, proto.OK
}

// maxTTL is the longest that fits into what the real server keeps.
const maxTTL = 1<<40 - 1

// mode is what a create's type and flag make of the node.
func (t *Tree) mode(req *proto.Request, who Caller) (e Effect, sequential bool, code proto.Code) {
	if !isFlag(req.Flags) {
		return e, false, proto.BadArguments
	}
	mortal := isTTL(req.Flags)
	switch {
	case mortal && t.rules.NoTTL:
		return e, false, proto.Unimplemented
	case mortal != (req.Op == op.CreateTTL), mortal && (req.TTL < 1 || req.TTL > maxTTL):
		return e, false, proto.BadArguments
	}
	sequential = req.Flags == proto.FlagSequential || req.Flags == proto.FlagEphemeralSequential || req.Flags == proto.FlagTTLSequential
	switch {
	case mortal:
		e.life, e.ttl = ttl, req.TTL
	case req.Op == op.CreateContainer:
		e.life = container
	case req.Flags == proto.FlagEphemeral || req.Flags == proto.FlagEphemeralSequential:
		e.life, e.owner = ephemeral, who.Session
	}
	return e, sequential, proto.OK
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
