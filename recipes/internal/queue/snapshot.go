package queue

import "slices"

// snapshot is what a waiter learns from a list of its queue.
type snapshot struct {
	predecessors
	listed              bool        // the own node is in the list
	uncertain           []queueNode // conflicting; the numbers do not show whether they are ahead
	firstCompatible     queueNode   // the first compatible node ahead; without a name: there is none
	compatibleUncertain bool        // the numbers do not show whether a compatible node is ahead
}

// snapshot finds the nodes ahead of w. Queues are long and many waiters share a list, so each
// searches for its own position in the sorted list.
func (w *waiter) snapshot(o *order) snapshot {
	if o.unordered {
		return w.snapshotUnordered(o)
	}
	s := snapshot{listed: o.has(w.queueNode)}
	n := w.countBefore(o.conflicting)
	for _, m := range o.conflicting[max(0, n-2):n] {
		s.add(m)
	}
	if w.countBefore(o.compatible) > 0 {
		s.firstCompatible = o.compatible[0]
	}
	return s
}

// snapshotUnordered looks at each node of an unsorted list.
func (w *waiter) snapshotUnordered(o *order) snapshot {
	var s snapshot
	for i, m := range slices.Concat(o.conflicting, o.compatible) {
		if m.name == w.name {
			s.listed = true
			continue
		}
		s.addUnordered(w, m, i < len(o.conflicting))
	}
	return s
}

// addUnordered adds a node that may be ahead of w, and may be on either side of those added
// before.
func (s *snapshot) addUnordered(w *waiter, m queueNode, blocks bool) {
	switch doubtful := m.atCounterEnd() && w.atCounterEnd(); {
	case doubtful && blocks:
		s.uncertain = append(s.uncertain, m)
	case doubtful:
		s.compatibleUncertain = true
	case !before(m.seq, w.seq):
	case !blocks:
		if s.firstCompatible.name == "" || before(m.seq, s.firstCompatible.seq) {
			s.firstCompatible = m
		}
	case s.none() || compareNodes(s.predecessor, m) < 0:
		s.add(m)
	case s.grandPredecessor.name == "" || compareNodes(s.grandPredecessor, m) < 0:
		s.grandPredecessor = m
	}
}

// isOnlyOneAhead reports whether the predecessor is the only conflicting node ahead and the
// first of all nodes. A compatible node ahead of it could put a conflicting one at its own
// position.
func (s *snapshot) isOnlyOneAhead(w *waiter) bool {
	if s.none() || s.grandPredecessor.name != "" || w.queue.rules.MayBeReplaced || s.compatibleUncertain {
		return false
	}
	return s.firstCompatible.name == "" || before(s.predecessor.seq, s.firstCompatible.seq)
}
