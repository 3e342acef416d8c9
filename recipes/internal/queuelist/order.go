package queuelist

import (
	"slices"

	"github.com/docent-zk/docent/recipes/internal/locknode"
)

// Order holds the nodes of a queue, each slice in the order of the queue.
type Order struct {
	Conflicting, Compatible []locknode.Node
	Unsorted                bool   // the numbers do not show the order: the slices are not sorted
	OtherLock               string // a child that belongs to a lock of another kind; empty: there is none
}

// Sort parses and sorts the names of children.
func (d Directory) Sort(children []string) Order {
	var o Order
	for _, name := range children {
		m, conflicts, ok := d.parse(name)
		switch {
		case !ok:
			if o.OtherLock == "" && locknode.OfAnyLock(name) {
				o.OtherLock = name
			}
			continue
		case conflicts:
			o.Conflicting = append(o.Conflicting, m)
		default:
			o.Compatible = append(o.Compatible, m)
		}
		o.Unsorted = o.Unsorted || m.AtCounterEnd()
	}
	if !o.Unsorted {
		slices.SortFunc(o.Conflicting, locknode.Compare)
		slices.SortFunc(o.Compatible, locknode.Compare)
	}
	return o
}

// parse parses the name of a child and reports whether its kind conflicts. It returns false in
// ok for a child that is not a node of the queue.
func (d Directory) parse(name string) (m locknode.Node, conflicts, ok bool) {
	if m, ok = locknode.Parse(name, d.Conflicting); ok {
		return m, true, true
	}
	m, ok = locknode.Parse(name, d.Compatible)
	return m, false, ok
}

// Has reports whether m is one of the nodes. It needs a sorted order.
func (o *Order) Has(m locknode.Node) bool {
	for _, all := range [][]locknode.Node{o.Conflicting, o.Compatible} {
		if _, found := slices.BinarySearchFunc(all, m, locknode.Compare); found {
			return true
		}
	}
	return false
}

// CountBefore returns how many nodes of the sorted slice have a smaller number than m.
func CountBefore(m locknode.Node, all []locknode.Node) int {
	// The empty name sorts before all nodes with the same number.
	i, _ := slices.BinarySearchFunc(all, locknode.Node{Seq: m.Seq}, locknode.Compare)
	return i
}
