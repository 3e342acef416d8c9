package tree

import (
	"fmt"

	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/internal/proto"
)

func (t *Tree) planCreate(req *proto.Request, caller Caller) (Effect, proto.Code) {
	e, sequential, code := t.mode(req, caller)
	if code != proto.OK {
		return Effect{}, code
	}
	if !plausible(req.Path) {
		return Effect{}, proto.BadArguments
	}
	acl, ok := t.resolve(req.ACL, caller.IDs)
	if !ok {
		return Effect{}, proto.InvalidACL
	}
	parent := t.node(Parent(req.Path))
	switch {
	case parent == nil:
		return Effect{}, proto.NoNode
	case !Allowed(t.checked(parent), proto.PermCreate, caller.IDs):
		return Effect{}, proto.NoAuth
	}
	e.Path = req.Path
	if sequential {
		e.Path += fmt.Sprintf("%010d", parent.creates)
	}
	switch {
	case !Valid(e.Path):
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

// maxTTL is the longest TTL that the real server can store.
const maxTTL = 1<<40 - 1

// mode returns the kind of node for the type and flag of a create.
func (t *Tree) mode(req *proto.Request, caller Caller) (e Effect, sequential bool, code proto.Code) {
	if !isFlag(req.Flags) {
		return e, false, proto.BadArguments
	}
	hasTTL := isTTL(req.Flags)
	switch {
	case hasTTL && t.rules.NoTTL:
		return e, false, proto.Unimplemented
	case hasTTL != (req.Op == fault.OpCreateTTL), hasTTL && (req.TTL < 1 || req.TTL > maxTTL):
		return e, false, proto.BadArguments
	}
	sequential = req.Flags == proto.FlagSequential || req.Flags == proto.FlagEphemeralSequential ||
		req.Flags == proto.FlagTTLSequential
	switch {
	case hasTTL:
		e.life, e.ttl = ttl, req.TTL
	case req.Op == fault.OpCreateContainer:
		e.life = container
	case req.Flags == proto.FlagEphemeral || req.Flags == proto.FlagEphemeralSequential:
		e.life, e.owner = ephemeral, caller.Session
	}
	return e, sequential, proto.OK
}

func isFlag(flag int32) bool { return flag >= proto.FlagPersistent && flag <= proto.FlagTTLSequential }

func isTTL(flag int32) bool { return flag == proto.FlagTTL || flag == proto.FlagTTLSequential }
