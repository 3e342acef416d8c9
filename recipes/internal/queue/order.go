package queue

import (
	"slices"

	"github.com/docent-zk/docent/recipes/internal/locknode"
)

// sorted returns the nodes of the list in order. All waiters that share the list call it, and the
// first call sorts.
func (l *listing) sorted() *order {
	l.sort.Do(func() { l.order = l.rules.sortNodes(l.children) })
	return &l.order
}

// order holds the nodes of a queue, each slice in the order of the queue.
type order struct {
	conflicting, compatible []locknode.Node
	unsorted                bool // the numbers do not show the order: the slices are not sorted
}

// sortNodes parses and sorts the names of children.
func (r Rules) sortNodes(children []string) order {
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
		o.unsorted = o.unsorted || m.AtCounterEnd()
	}
	if !o.unsorted {
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

// countBefore returns how many nodes of the sorted slice have a smaller number than m.
func countBefore(m locknode.Node, all []locknode.Node) int {
	// The empty name sorts before all nodes with the same number.
	i, _ := slices.BinarySearchFunc(all, locknode.Node{Seq: m.Seq}, locknode.Compare)
	return i
}
