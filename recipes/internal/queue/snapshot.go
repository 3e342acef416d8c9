package queue

import (
	"slices"

	"github.com/docent-zk/docent/recipes/internal/locknode"
	"github.com/docent-zk/docent/recipes/internal/queuelist"
)

// snapshot is what a waiter learns from a list of its queue.
type snapshot struct {
	nodesAhead
	listed              bool            // the own node is in the list
	uncertain           []locknode.Node // conflicting; the numbers do not show whether they are ahead
	firstCompatible     locknode.Node   // the first compatible node ahead; without a name: there is none
	compatibleUncertain bool            // the numbers do not show whether a compatible node is ahead
}

// findAhead finds the nodes ahead of w. Queues are long and many waiters share a list, so each
// searches for its own position in the sorted list.
func (w *waiter) findAhead(o *queuelist.Order) snapshot {
	if o.Unsorted {
		return w.findAheadUnsorted(o)
	}
	s := snapshot{listed: o.Has(w.Node)}
	n := queuelist.CountBefore(w.Node, o.Conflicting)
	for _, m := range o.Conflicting[max(0, n-2):n] {
		s.add(m)
	}
	if queuelist.CountBefore(w.Node, o.Compatible) > 0 {
		s.firstCompatible = o.Compatible[0]
	}
	return s
}

// findAheadUnsorted looks at each node of an unsorted list.
func (w *waiter) findAheadUnsorted(o *queuelist.Order) snapshot {
	var s snapshot
	for i, m := range slices.Concat(o.Conflicting, o.Compatible) {
		if m.Name == w.Name {
			s.listed = true
			continue
		}
		s.addUnsorted(w, m, i < len(o.Conflicting))
	}
	return s
}

// addUnsorted adds a node that may be ahead of w, and may be on either side of those added
// before.
func (s *snapshot) addUnsorted(w *waiter, m locknode.Node, conflicts bool) {
	switch uncertain := m.AtCounterEnd() && w.AtCounterEnd(); {
	case uncertain && conflicts:
		s.uncertain = append(s.uncertain, m)
	case uncertain:
		s.compatibleUncertain = true
	case !locknode.Before(m.Seq, w.Seq):
	case !conflicts:
		if s.firstCompatible.Name == "" || locknode.Before(m.Seq, s.firstCompatible.Seq) {
			s.firstCompatible = m
		}
	case s.none() || locknode.Compare(s.predecessor, m) < 0:
		s.add(m)
	case s.grandPredecessor.Name == "" || locknode.Compare(s.grandPredecessor, m) < 0:
		s.grandPredecessor = m
	}
}

// deletionWouldGrant reports whether the deletion of the predecessor grants the lock: it is the only
// conflicting node ahead and the first of all nodes. A reader ahead of it may upgrade: it creates a
// writer node with the reader's number.
func (w *waiter) deletionWouldGrant(s *snapshot) bool {
	if s.none() || s.grandPredecessor.Name != "" || w.queue.rules.PositionsReused || s.compatibleUncertain {
		return false
	}
	return s.firstCompatible.Name == "" || locknode.Before(s.predecessor.Seq, s.firstCompatible.Seq)
}
