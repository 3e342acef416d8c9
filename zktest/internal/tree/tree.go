package tree

import (
	"maps"
	"slices"

	"github.com/docent-zk/docent/zktest/internal/proto"
)

// Rules are the differences between server versions and settings.
type Rules struct {
	OldIPRules       bool // no IPv6 in an ACL
	OldMultiCreate2  bool // create2 in a multi is answered like create
	ExistsNeedsRead  bool
	NoTTL            bool // TTL nodes are not enabled
	EnforceQuota     bool
	StrictMultiFlags bool // a create with an unknown flag makes the whole multi fail
}

// Tree holds the nodes as of one transaction.
type Tree struct {
	rules      Rules
	nodes      map[string]*node
	ephemerals map[int64]map[string]struct{} // by session
	transient  map[string]struct{}           // containers and TTL nodes
	quotas     map[string]usage              // the paths with a quota, and their last counts
	applied    int64                         // the last transaction that the leader shows its clients
}

// New returns the tree of a new server.
func New(rules Rules) *Tree {
	t := &Tree{
		rules: rules, nodes: map[string]*node{}, ephemerals: map[int64]map[string]struct{}{},
		transient: map[string]struct{}{}, quotas: map[string]usage{},
	}
	for _, path := range []string{"/", systemPath, quotaPath, configPath} {
		t.nodes[path] = &node{data: []byte{}, acl: openACL}
		if path != "/" {
			t.node(Parent(path)).children.add(base(path))
		}
	}
	config := t.nodes[configPath]
	config.acl = []proto.ACL{{Perms: proto.PermRead, Scheme: "world", ID: "anyone"}}
	config.aversion = -1
	return t
}

// Clone returns an independent copy of the tree.
func (t *Tree) Clone() *Tree {
	clone := &Tree{
		rules: t.rules, nodes: make(map[string]*node, len(t.nodes)), ephemerals: map[int64]map[string]struct{}{},
		transient: maps.Clone(t.transient), quotas: maps.Clone(t.quotas),
	}
	for path, n := range t.nodes {
		own := *n
		own.children = n.children.clone()
		clone.nodes[path] = &own
	}
	for session, paths := range t.ephemerals {
		clone.ephemerals[session] = maps.Clone(paths)
	}
	return clone
}

// SetApplied sets the last transaction that the leader shows its clients. Until it shows a change of an ACL,
// it executes transactions by the ACL before.
func (t *Tree) SetApplied(zxid int64) { t.applied = zxid }

// node returns the node at path, or nil.
func (t *Tree) node(path string) *node { return t.nodes[key(path)] }

// link adds n to the tree.
func (t *Tree) link(path string, n *node) {
	t.nodes[path] = n
	t.node(Parent(path)).children.add(base(path))
	switch n.life {
	case ephemeral:
		if t.ephemerals[n.owner] == nil {
			t.ephemerals[n.owner] = map[string]struct{}{}
		}
		t.ephemerals[n.owner][path] = struct{}{}
	case container, ttl:
		t.transient[path] = struct{}{}
	}
}

// unlink removes n from the tree.
func (t *Tree) unlink(path string, n *node) {
	delete(t.nodes, path)
	t.node(Parent(path)).children.remove(base(path))
	switch n.life {
	case ephemeral:
		delete(t.ephemerals[n.owner], path)
		if len(t.ephemerals[n.owner]) == 0 {
			delete(t.ephemerals, n.owner)
		}
	case container, ttl:
		delete(t.transient, path)
	}
}

// Ephemerals returns the paths of a session's nodes, sorted.
func (t *Tree) Ephemerals(session int64) []string {
	return slices.Sorted(maps.Keys(t.ephemerals[session]))
}

// HasTransient reports whether there are containers or TTL nodes.
func (t *Tree) HasTransient() bool { return len(t.transient) > 0 }

// Overdue returns the containers that have lost all children and the TTL nodes past their TTL,
// sorted. A container that never had a child is overdue after neverUsed milliseconds; 0 means
// never.
func (t *Tree) Overdue(now, neverUsed int64) []string {
	var paths []string
	for path := range t.transient {
		n := t.nodes[path]
		idle := now - n.mtime
		switch {
		case n.children.len() > 0:
		case n.life == ttl && idle > n.ttl,
			n.life == container && n.creates > 0,
			n.life == container && neverUsed > 0 && idle > neverUsed:
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// Size returns the number of nodes, the number of ephemeral ones, and the number of bytes they
// hold. The root counts once.
func (t *Tree) Size() (nodes, ephemerals int, bytes int64) {
	for path, n := range t.nodes {
		bytes += int64(len(path) + len(n.data))
	}
	for _, paths := range t.ephemerals {
		ephemerals += len(paths)
	}
	return len(t.nodes), ephemerals, bytes
}

// Sessions returns the sessions that have ephemeral nodes, sorted.
func (t *Tree) Sessions() []int64 { return slices.Sorted(maps.Keys(t.ephemerals)) }

// Paths returns the paths of all nodes, sorted.
func (t *Tree) Paths() []string { return slices.Sorted(maps.Keys(t.nodes)) }
