package queue

import (
	"slices"

	"github.com/docent-zk/docent/recipes/internal/locknode"
)

// snapshot is what a waiter learns from a list of its queue.
type snapshot struct {
	predecessors
	listed              bool            // the own node is in the list
	uncertain           []locknode.Node // conflicting; the numbers do not show whether they are ahead
	firstCompatible     locknode.Node   // the first compatible node ahead; without a name: there is none
	compatibleUncertain bool            // the numbers do not show whether a compatible node is ahead
}

// snapshot finds the nodes ahead of w. Queues are long and many waiters share a list, so each
// searches for its own position in the sorted list.
func (w *waiter) snapshot(o *order) snapshot {
	if o.unordered {
		return w.snapshotUnordered(o)
	}
	s := snapshot{listed: o.has(w.Node)}
	n := countBefore(w.Node, o.conflicting)
	for _, m := range o.conflicting[max(0, n-2):n] {
		s.add(m)
	}
	if countBefore(w.Node, o.compatible) > 0 {
		s.firstCompatible = o.compatible[0]
	}
	return s
}

// snapshotUnordered looks at each node of an unsorted list.
func (w *waiter) snapshotUnordered(o *order) snapshot {
	var s snapshot
	for i, m := range slices.Concat(o.conflicting, o.compatible) {
		if m.Name == w.Name {
			s.listed = true
			continue
		}
		s.addUnordered(w, m, i < len(o.conflicting))
	}
	return s
}

// addUnordered adds a node that may be ahead of w, and may be on either side of those added
// before.
func (s *snapshot) addUnordered(w *waiter, m locknode.Node, blocks bool) {
	switch doubtful := m.AtCounterEnd() && w.AtCounterEnd(); {
	case doubtful && blocks:
		s.uncertain = append(s.uncertain, m)
	case doubtful:
		s.compatibleUncertain = true
	case !locknode.Before(m.Seq, w.Seq):
	case !blocks:
		if s.firstCompatible.Name == "" || locknode.Before(m.Seq, s.firstCompatible.Seq) {
			s.firstCompatible = m
		}
	case s.none() || locknode.Compare(s.predecessor, m) < 0:
		s.add(m)
	case s.grandPredecessor.Name == "" || locknode.Compare(s.grandPredecessor, m) < 0:
		s.grandPredecessor = m
	}
}

// isOnlyOneAhead reports whether the predecessor is the only conflicting node ahead and the
// first of all nodes. A compatible node ahead of it could put a conflicting one at its own
// position.
func (s *snapshot) isOnlyOneAhead(w *waiter) bool {
	if s.none() || s.grandPredecessor.Name != "" || w.queue.rules.MayBeReplaced || s.compatibleUncertain {
		return false
	}
	return s.firstCompatible.Name == "" || locknode.Before(s.predecessor.Seq, s.firstCompatible.Seq)
}
