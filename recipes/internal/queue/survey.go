package queue

import "slices"

// survey is what a place learns from a list of its line.
type survey struct {
	view
	present  bool     // we are in the list
	doubtful []member // of whom the numbers do not tell whether they are ahead
	passing  member   // the first of those ahead that do not stand in the way; without a name if there is none
	unsure   bool     // the numbers do not tell whether one of those is ahead
}

// survey looks for what is ahead of p. Lines are long and many look at the same list, so each searches for its place in the order.
func (p *place) survey(o *order) survey {
	if o.atEnd {
		return p.surveyAll(o)
	}
	s := survey{present: o.has(p.member)}
	n := p.ahead(o.blocking)
	for _, m := range o.blocking[max(0, n-2):n] {
		s.add(m)
	}
	if p.ahead(o.passing) > 0 {
		s.passing = o.passing[0]
	}
	return s
}

// surveyAll looks at all nodes, where numbers do not tell their order.
func (p *place) surveyAll(o *order) survey {
	var s survey
	for i, m := range slices.Concat(o.blocking, o.passing) {
		if m.name == p.name {
			s.present = true
			continue
		}
		s.note(p, m, i < len(o.blocking))
	}
	return s
}

func (s *survey) note(p *place, m member, blocks bool) {
	switch doubtful := m.atEnd() && p.atEnd(); {
	case doubtful && blocks:
		s.doubtful = append(s.doubtful, m)
	case doubtful:
		s.unsure = true
	case !before(m.seq, p.seq):
	case !blocks:
		if s.passing.name == "" || before(m.seq, s.passing.seq) {
			s.passing = m
		}
	case s.clear() || compare(s.last, m) < 0:
		s.add(m)
	case s.second.name == "" || compare(s.second, m) < 0:
		s.second = m
	}
}

// isFinal reports whether the only one ahead is the first of all: nobody of those who do not stand in the way may be ahead of it, and
// perhaps put something in the way one day.
func (s *survey) isFinal(p *place) bool {
	if s.clear() || s.second.name != "" || p.line.rules.Replaced || s.unsure {
		return false
	}
	return s.passing.name == "" || before(s.last.seq, s.passing.seq)
}
