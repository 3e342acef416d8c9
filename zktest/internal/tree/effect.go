package tree

import "github.com/docent-zk/docent/zktest/internal/proto"

// Kind says what happened to a node.
type Kind int

// The kinds of effects. A change of the ACL triggers no watch.
const (
	Created Kind = iota + 1
	Deleted
	Changed
	Guarded
)

// Effect is one change that a transaction makes. It has everything that a copy of the tree needs to
// make the same change.
type Effect struct {
	Kind      Kind
	Path      string
	ACL       []proto.ACL // of the node, for its watchers
	ParentACL []proto.ACL // of its parent, for the parent's watchers

	data  []byte
	life  life
	ttl   int64
	owner int64
}

// Stamp is the id of a transaction and its time in milliseconds.
type Stamp struct{ Zxid, Time int64 }

// Apply makes the changes of a transaction of another tree.
func (t *Tree) Apply(effects []Effect, at Stamp) {
	for _, e := range effects {
		t.apply(e, at)
	}
	t.account(effects)
}

// apply makes a change and returns a function that undoes it.
func (t *Tree) apply(e Effect, at Stamp) (undo func()) {
	switch e.Kind {
	case Created:
		return t.create(e, at)
	case Deleted:
		return t.delete(e, at)
	}
	n := t.node(e.Path)
	before := *n
	t.record(n, at)
	if e.Kind == Changed {
		n.data = e.data
		n.version++
		n.mzxid, n.mtime = at.Zxid, at.Time
	} else {
		n.acl = e.ACL
		n.aversion++
	}
	return func() { *n = before }
}

func (t *Tree) create(e Effect, at Stamp) (undo func()) {
	parent := t.node(Parent(e.Path))
	creates, pzxid, pending := parent.creates, parent.pzxid, parent.pending
	t.record(parent, at)
	n := &node{
		data: e.data, acl: e.ACL, life: e.life, ttl: e.ttl, owner: e.owner,
		czxid: at.Zxid, mzxid: at.Zxid, pzxid: at.Zxid, ctime: at.Time, mtime: at.Time,
	}
	t.record(n, at)
	t.link(e.Path, n)
	parent.countCreate()
	parent.pzxid = at.Zxid
	return func() {
		t.unlink(e.Path, n)
		parent.creates, parent.pzxid, parent.pending = creates, pzxid, pending
	}
}

func (t *Tree) delete(e Effect, at Stamp) (undo func()) {
	parent, n := t.node(Parent(e.Path)), t.node(e.Path)
	pzxid, pending := parent.pzxid, parent.pending
	t.record(parent, at)
	t.unlink(e.Path, n)
	parent.pzxid = at.Zxid
	return func() {
		t.link(e.Path, n)
		parent.pzxid, parent.pending = pzxid, pending
	}
}
