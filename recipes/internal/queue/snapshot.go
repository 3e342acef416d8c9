package queue

import "slices"

// survey is what a place learns from a list of its line.
type snapshot struct {
	predecessors
	listed              bool        // we are in the list
	uncertain           []queueNode // of whom the numbers do not tell whether they are ahead
	firstCompatible     queueNode   // the first of those ahead that do not stand in the way; without a name if there is none
	compatibleUncertain bool        // the numbers do not tell whether one of those is ahead
}

// survey looks for what is ahead of p. Lines are long and many look at the same list, so each searches for its place in the order.
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

// surveyAll looks at all nodes, where numbers do not tell their order.
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

// isFinal reports whether the only one ahead is the first of all: nobody of those who do not stand in the way may be ahead of it, and
// perhaps put something in the way one day.
func (s *snapshot) isOnlyOneAhead(w *waiter) bool {
	if s.none() || s.grandPredecessor.name != "" || w.queue.rules.MayBeReplaced || s.compatibleUncertain {
		return false
	}
	return s.firstCompatible.name == "" || before(s.predecessor.seq, s.firstCompatible.seq)
}
