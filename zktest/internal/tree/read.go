package tree

import (
	"strings"

	"github.com/docent-zk/docent/zktest/internal/proto"
)

// Exists answers exists. The code is OK or NoNode, or an error with which no watch is set.
func (t *Tree) Exists(path string, ids []proto.ID) (*proto.Stat, proto.Code) {
	if strings.ContainsRune(path, 0) {
		return nil, proto.BadArguments
	}
	n := t.node(path)
	switch {
	case n == nil:
		return nil, proto.NoNode
	case t.rules.ExistsNeedsRead && !Allowed(n.acl, proto.PermRead, ids):
		return nil, proto.NoAuth
	}
	return n.stat(), proto.OK
}

// readable returns the node at path if ids may read it.
func (t *Tree) readable(path string, ids []proto.ID) (*node, proto.Code) {
	n := t.node(path)
	switch {
	case n == nil:
		return nil, proto.NoNode
	case !Allowed(n.acl, proto.PermRead, ids):
		return nil, proto.NoAuth
	}
	return n, proto.OK
}

// Data answers getData.
func (t *Tree) Data(path string, ids []proto.ID) ([]byte, *proto.Stat, proto.Code) {
	n, code := t.readable(path, ids)
	if n == nil {
		return nil, nil, code
	}
	return n.data, n.stat(), proto.OK
}

// Children answers getChildren.
func (t *Tree) Children(path string, ids []proto.ID) ([]string, *proto.Stat, proto.Code) {
	n, code := t.readable(path, ids)
	if n == nil {
		return nil, nil, code
	}
	return n.children.list(), n.stat(), proto.OK
}

// CountBelow answers getAllChildrenNumber.
func (t *Tree) CountBelow(path string, ids []proto.ID) (int, proto.Code) {
	n, code := t.readable(path, ids)
	switch {
	case n == nil:
		return 0, code
	case path == "/":
		return len(t.nodes) - 1, proto.OK
	}
	count := 0
	for other := range t.nodes {
		if strings.HasPrefix(other, path+"/") {
			count++
		}
	}
	return count, proto.OK
}

// ACL answers getACL.
func (t *Tree) ACL(path string, ids []proto.ID) ([]proto.ACL, *proto.Stat, proto.Code) {
	n := t.node(path)
	switch {
	case n == nil:
		return nil, nil, proto.NoNode
	case !Allowed(n.acl, proto.PermRead|proto.PermAdmin, ids):
		return nil, nil, proto.NoAuth
	case Allowed(n.acl, proto.PermAdmin, ids):
		return n.acl, n.stat(), proto.OK
	}
	return masked(n.acl), n.stat(), proto.OK
}

// Watched returns the Stat of a node, to compare with the watch of a reconnected client. It is nil
// if there is no node.
func (t *Tree) Watched(path string) *proto.Stat {
	if n := t.node(path); n != nil {
		return n.stat()
	}
	return nil
}

// Node is what a dump shows of a node.
type Node struct {
	Path  string
	Data  []byte
	ACL   []proto.ACL
	Owner int64  // of an ephemeral node
	Kind  string // "", "ephemeral", "container" or "ttl"
	TTL   int64
	Open  bool // all permissions for every client
}

// Look returns the node at path, without a check of permissions.
func (t *Tree) Look(path string) (Node, bool) {
	n := t.node(path)
	if n == nil {
		return Node{}, false
	}
	kind := map[life]string{ephemeral: "ephemeral", container: "container", ttl: "ttl"}[n.life]
	open := len(n.acl) == 1 && n.acl[0] == openACL[0]
	return Node{Path: path, Data: n.data, ACL: n.acl, Owner: n.owner, Kind: kind, TTL: n.ttl, Open: open}, true
}
