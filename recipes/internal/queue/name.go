package queue

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// member is a lock node in a line.
type member struct {
	name string
	seq  int32
}

// parse finds the sequence number behind the last occurrence of one of the markers. Children that have none are not lock nodes.
func parse(name string, markers []string) (member, bool) {
	for _, marker := range markers {
		i := strings.LastIndex(name, marker)
		if i < 0 {
			continue
		}
		seq, err := strconv.ParseInt(name[i+len(marker):], 10, 32)
		if err == nil {
			return member{name, int32(seq)}, true
		}
	}
	return member{}, false
}

// before compares sequence numbers as serial numbers: the counter of a parent has 32 bits, and the number that follows the
// largest is the smallest. Numbers in one line are never half the range apart.
func before(a, b int32) bool { return a-b < 0 }

// atEnd reports whether the number is one from the end of the parent's counter, where numbers tell nothing any more of each other:
// servers give the largest one to every further node, and smaller than the smallest ones to creates that are under way together.
func (m member) atEnd() bool { return m.seq < 0 || m.seq == math.MaxInt32 }

// atEnd reports whether the order of a line is not told by the numbers.
func atEnd(line []member) bool {
	return slices.ContainsFunc(line, member.atEnd)
}

func compare(a, b member) int {
	switch {
	case before(a.seq, b.seq):
		return -1
	case before(b.seq, a.seq):
		return 1
	}
	return strings.Compare(a.name, b.name)
}

// lineup is the lock nodes among children, first come first.
func lineup(children []string, markers []string) []member {
	var line []member
	for _, name := range children {
		if m, ok := parse(name, markers); ok {
			line = append(line, m)
		}
	}
	slices.SortFunc(line, compare)
	return line
}

// anyone reports whether there is a lock node among children.
func anyone(children []string, markers []string) bool {
	return slices.ContainsFunc(children, func(name string) bool {
		_, ok := parse(name, markers)
		return ok
	})
}
