package queue

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// member is a lock node in a line.
type queueNode struct {
	name string
	seq  int32
}

// parse finds the sequence number behind the last occurrence of one of the markers. Children that have none are not lock nodes.
func parseName(name string, markers []string) (queueNode, bool) {
	for _, marker := range markers {
		i := strings.LastIndex(name, marker)
		if i < 0 {
			continue
		}
		seq, err := strconv.ParseInt(name[i+len(marker):], 10, 32)
		if err == nil {
			return queueNode{name, int32(seq)}, true
		}
	}
	return queueNode{}, false
}

// before compares sequence numbers as serial numbers: the counter of a parent has 32 bits, and the number that follows the
// largest is the smallest. Numbers in one line are never half the range apart.
func before(a, b int32) bool { return a-b < 0 }

// atEnd reports whether the number is one from the end of the parent's counter, where numbers tell nothing any more of each other:
// servers give the largest one to every further node, and smaller than the smallest ones to creates that are under way together.
func (m queueNode) atCounterEnd() bool { return m.seq < 0 || m.seq == math.MaxInt32 }

// atEnd reports whether the order of a line is not told by the numbers.
func anyAtCounterEnd(nodes []queueNode) bool {
	return slices.ContainsFunc(nodes, queueNode.atCounterEnd)
}

func compareNodes(a, b queueNode) int {
	switch {
	case before(a.seq, b.seq):
		return -1
	case before(b.seq, a.seq):
		return 1
	}
	return strings.Compare(a.name, b.name)
}

// lineup is the lock nodes among children, first come first.
func sortedNodes(children []string, markers []string) []queueNode {
	var nodes []queueNode
	for _, name := range children {
		if m, ok := parseName(name, markers); ok {
			nodes = append(nodes, m)
		}
	}
	slices.SortFunc(nodes, compareNodes)
	return nodes
}

// anyone reports whether there is a lock node among children.
func hasNode(children []string, markers []string) bool {
	return slices.ContainsFunc(children, func(name string) bool {
		_, ok := parseName(name, markers)
		return ok
	})
}
