// Package tree implements the server's data: nodes, permissions, and transactions. It has no
// clients, connections or watches, and is not safe for concurrent use.
package tree

import (
	"math"

	"github.com/docent-zk/docent/zktest/internal/proto"
)

// life says what deletes a node, besides a delete.
type life int

const (
	persistent life = iota
	ephemeral       // the end of its session
	container       // the deletion of its last child
	ttl             // a time without change and children
)

// node is one node of the tree. A change of acl or data makes a new slice, because readers share
// the old one.
type node struct {
	data     []byte
	acl      []proto.ACL
	children children
	life     life
	ttl      int64 // in milliseconds
	creates  int32 // children ever created; the next sequence number

	czxid, mzxid, pzxid int64
	ctime, mtime        int64
	version, aversion   int32
	owner               int64 // the session of an ephemeral node
	pending             record
}

// record is what a leader keeps of the last change of a node until it has applied it. A change of the ACL
// does not change that of the record, and the record of a later change takes it over. The real server:
// PrepRequestProcessor, outstandingChangesForPath.
type record struct {
	zxid int64
	acl  []proto.ACL
}

// checked returns the ACL by which transactions that concern n are allowed.
func (t *Tree) checked(n *node) []proto.ACL {
	if n.pending.zxid > t.applied {
		return n.pending.acl
	}
	return n.acl
}

// record records a change of n before it is made.
func (t *Tree) record(n *node, at Stamp) { n.pending = record{at.Zxid, t.checked(n)} }

func (n *node) stat() *proto.Stat {
	return &proto.Stat{
		Czxid: n.czxid, Mzxid: n.mzxid, Ctime: n.ctime, Mtime: n.mtime,
		Version: n.version, Cversion: 2*n.creates - int32(n.children.len()), Aversion: n.aversion,
		EphemeralOwner: n.owner, DataLength: int32(len(n.data)), NumChildren: int32(n.children.len()),
		Pzxid: n.pzxid,
	}
}

// countCreate advances the next sequence number. It stays at its maximum.
func (n *node) countCreate() {
	if n.creates < math.MaxInt32 {
		n.creates++
	}
}

// children is a set of names. Its order depends on its history and is deliberately not
// alphabetical: the real server has the order of a hash table, and programs must not rely on a
// better one.
type children struct {
	names []string
	index map[string]int
}

func (c *children) len() int { return len(c.names) }

func (c *children) add(name string) {
	if c.index == nil {
		c.index = map[string]int{}
	}
	c.index[name] = len(c.names)
	c.names = append(c.names, name)
}

// remove fills the gap with the last name.
func (c *children) remove(name string) {
	i, last := c.index[name], len(c.names)-1
	moved := c.names[last]
	c.names[i], c.index[moved] = moved, i
	c.names[last] = ""
	c.names = c.names[:last]
	delete(c.index, name)
}

// list returns a copy: every other name from the last backwards, then the rest backwards.
func (c *children) list() []string {
	all := make([]string, 0, len(c.names))
	for _, start := range []int{len(c.names) - 1, len(c.names) - 2} {
		for i := start; i >= 0; i -= 2 {
			all = append(all, c.names[i])
		}
	}
	return all
}

func (c *children) clone() children {
	clone := children{}
	for _, name := range c.names {
		clone.add(name)
	}
	return clone
}
