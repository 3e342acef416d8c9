package queue

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// queueNode is a lock node of a queue.
type queueNode struct {
	name string
	seq  int32
}

// parseName finds the sequence number behind the last occurrence of one of the markers. A child
// without one is not a lock node.
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

// before compares sequence numbers as serial numbers. The counter of a parent has 32 bits, and
// the number that follows the largest one is the smallest. Numbers in one queue are never half
// the range apart.
func before(a, b int32) bool { return a-b < 0 }

// atCounterEnd reports whether the number is from the end of the parent's counter, where numbers
// do not show the order. Servers give the largest number to each further node, and numbers from
// the smallest on to creates that are under way together.
func (m queueNode) atCounterEnd() bool { return m.seq < 0 || m.seq == math.MaxInt32 }

// anyAtCounterEnd reports whether the numbers of some nodes do not show the order.
func anyAtCounterEnd(nodes []queueNode) bool {
	return slices.ContainsFunc(nodes, queueNode.atCounterEnd)
}

// compareNodes orders nodes by number, and those with the same number by name.
func compareNodes(a, b queueNode) int {
	switch {
	case before(a.seq, b.seq):
		return -1
	case before(b.seq, a.seq):
		return 1
	}
	return strings.Compare(a.name, b.name)
}

// sortedNodes returns the lock nodes among children, in the order of the queue.
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

// hasNode reports whether there is a lock node among children.
func hasNode(children []string, markers []string) bool {
	return slices.ContainsFunc(children, func(name string) bool {
		_, ok := parseName(name, markers)
		return ok
	})
}
