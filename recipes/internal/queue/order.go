package queue

import (
	"slices"

	"github.com/docent-zk/docent/recipes/internal/locknode"
)

// sorted returns the nodes of the list in order. Waiters share a list only if their queues have
// the same conflicting kinds.
func (x *listing) sorted(r Rules) *order {
	x.sort.Do(func() { x.order = r.order(x.children) })
	return &x.order
}

// order holds the nodes of a queue, each slice in the order of the queue.
type order struct {
	conflicting, compatible []locknode.Node
	unordered               bool // the numbers do not show the order: the slices are not sorted
}

// order parses and sorts the names of children.
func (r Rules) order(children []string) order {
	var o order
	for _, name := range children {
		m, conflicts, ok := r.parse(name)
		switch {
		case !ok:
			continue
		case conflicts:
			o.conflicting = append(o.conflicting, m)
		default:
			o.compatible = append(o.compatible, m)
		}
		o.unordered = o.unordered || m.AtCounterEnd()
	}
	if !o.unordered {
		slices.SortFunc(o.conflicting, locknode.Compare)
		slices.SortFunc(o.compatible, locknode.Compare)
	}
	return o
}

// has reports whether m is one of the nodes. It needs a sorted order.
func (o *order) has(m locknode.Node) bool {
	for _, all := range [][]locknode.Node{o.conflicting, o.compatible} {
		if _, found := slices.BinarySearchFunc(all, m, locknode.Compare); found {
			return true
		}
	}
	return false
}

// countBefore returns how many of those in order have a smaller number than m.
func countBefore(m locknode.Node, all []locknode.Node) int {
	i, _ := slices.BinarySearchFunc(all, locknode.Node{Seq: m.Seq}, locknode.Compare) // no name is the smallest
	return i
}
