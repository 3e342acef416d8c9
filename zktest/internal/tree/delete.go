package tree

import (
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/internal/proto"
)

func (t *Tree) planDelete(req *proto.Request, caller Caller) (Effect, proto.Code) {
	if !plausible(req.Path) || special(req.Path) {
		return Effect{}, proto.BadArguments
	}
	reap := req.Op == fault.OpDeleteContainer
	parent, n := t.node(Parent(req.Path)), t.node(req.Path)
	switch {
	case reap && n == nil:
		return Effect{}, proto.NoNode
	case parent == nil:
		return Effect{}, proto.NoNode
	case !reap && !Allowed(t.checked(parent), proto.PermDelete, caller.IDs):
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
