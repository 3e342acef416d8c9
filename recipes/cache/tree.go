package cache

import (
	"path"
	"slices"
	"strings"
)

// tree is the content of a cache. Each node but the root has its parent in the tree.
type tree struct {
	root    string
	entries map[string]*entry // by path
	bytes   int64             // of paths and data
	names   bool              // changes of data are no difference
}

// entry is a node in the tree.
type entry struct {
	node     *Node
	children map[string]struct{} // names of the children in the tree; nil: there is none
	listed   int64               // Pzxid as of the last list of the children; 0: none yet
	czxid    int64               // of the node when it was readable; 0: it never was
}

// isAnother reports whether n is known to be another node than that in the tree. The Stat of an
// unreadable node is zero.
func (e *entry) isAnother(n *Node) bool {
	return e.czxid != 0 && n.Stat.Czxid != 0 && e.czxid != n.Stat.Czxid
}

func (e *entry) names() []string { return sorted(e.children) }

// nodes returns all nodes in the order of their paths.
func (t *tree) nodes() []*Node {
	all := make([]*Node, 0, len(t.entries))
	for _, e := range t.entries {
		all = append(all, e.node)
	}
	slices.SortFunc(all, func(a, b *Node) int { return strings.Compare(a.Path, b.Path) })
	return all
}

// put puts a node into the tree, and returns the differences. It does nothing for a node without a
// parent in the tree: the parent is listed when it is put in.
func (t *tree) put(n *Node) (events []Event) {
	e, there := t.entries[n.Path]
	if there && e.isAnother(n) {
		events = t.remove(n.Path)
		there = false
	}
	if there {
		old := e.node
		e.node, e.czxid = n, max(e.czxid, n.Stat.Czxid)
		t.bytes += n.size() - old.size()
		if !t.differ(old, n) {
			return events
		}
		return append(events, Event{Kind: Changed, Old: old, New: n})
	}
	if n.Path != t.root {
		parent, there := t.entries[path.Dir(n.Path)]
		if !there {
			return events
		}
		parent.add(path.Base(n.Path))
	}
	t.entries[n.Path] = &entry{node: n, czxid: n.Stat.Czxid}
	t.bytes += n.size()
	return append(events, Event{Kind: Added, New: n})
}

// differ reports whether two readings of one node differ. A node whose Stat is known no more has
// become unreadable, even if its children were before.
func (t *tree) differ(old, n *Node) bool {
	written := old.Stat.Mzxid != n.Stat.Mzxid && !t.names
	known, readable := old.Stat.Czxid != 0, old.Err == nil
	return written || readable != (n.Err == nil) || known != (n.Stat.Czxid != 0)
}

// remove removes a node with all nodes below it, and returns the differences.
func (t *tree) remove(at string) (events []Event) {
	e, there := t.entries[at]
	if !there {
		return nil
	}
	for _, name := range e.names() {
		events = append(events, t.remove(path.Join(at, name))...)
	}
	delete(t.entries, at)
	t.bytes -= e.node.size()
	if parent, there := t.entries[path.Dir(at)]; there && at != t.root {
		delete(parent.children, path.Base(at))
	}
	return append(events, Event{Kind: Removed, Old: e.node})
}

func (e *entry) add(name string) {
	if e.children == nil {
		e.children = map[string]struct{}{}
	}
	e.children[name] = struct{}{}
}

// size returns the bytes that count for the limit.
func (n *Node) size() int64 { return int64(len(n.Path) + len(n.Data)) }

// covers reports whether the cache holds the node at p, if that exists. p is at or below the root.
func (c *Cache) covers(p string) bool {
	if c.cfg.depth >= 0 && c.depth(p) > c.cfg.depth {
		return false
	}
	if c.cfg.filter == nil {
		return true
	}
	for ; p != c.root; p = path.Dir(p) {
		if !c.cfg.filter(p) {
			return false
		}
	}
	return true
}

// listsChildren reports whether the cache holds the children of p.
func (c *Cache) listsChildren(p string) bool { return c.cfg.depth < 0 || c.depth(p) < c.cfg.depth }

// depth returns how many levels p is below the root.
func (c *Cache) depth(p string) int {
	if p == c.root {
		return 0
	}
	return strings.Count(strings.TrimPrefix(p, strings.TrimSuffix(c.root, "/")), "/")
}
