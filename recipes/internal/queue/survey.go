package queue

// survey is what a place learns from a list of its line, in one pass: lines are long, and all who wait in them read them.
type survey struct {
	view
	present  bool     // we are in the list
	doubtful []member // of whom the numbers do not tell whether they are ahead
	passing  member   // the first of those ahead that do not stand in the way; without a name if there is none
	unsure   bool     // the numbers do not tell whether one of those is ahead
}

// survey looks through the children of the line's directory.
func (p *place) survey(children []string) survey {
	var s survey
	for _, name := range children {
		if name == p.name {
			s.present = true
			continue
		}
		if m, blocks, ok := p.line.rules.parse(name); ok {
			s.note(p, m, blocks)
		}
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
