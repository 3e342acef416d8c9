package tree

import (
	"fmt"

	"github.com/docent-zk/docent/zktest/internal/proto"
	"github.com/docent-zk/docent/zktest/op"
)

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

func isFlag(flag int32) bool { return flag >= proto.FlagPersistent && flag <= proto.FlagTTLSequential }

func isTTL(flag int32) bool { return flag == proto.FlagTTL || flag == proto.FlagTTLSequential }
