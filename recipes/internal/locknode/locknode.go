// Package locknode reads the names of lock nodes. The name of a lock node ends in its kind, such as
// "lock-", and the sequence number that the servers gave it.
package locknode

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// Node is a lock node.
type Node struct {
	Name string // without the directory
	Seq  int32  // the sequence number
}

// Parse finds the sequence number behind the last occurrence of one of the kinds. It returns false
// for a name without one: that is not a lock node of these kinds.
func Parse(name string, kinds []string) (Node, bool) {
	for _, kind := range kinds {
		i := strings.LastIndex(name, kind)
		if i < 0 {
			continue
		}
		seq, err := strconv.ParseInt(name[i+len(kind):], 10, 32)
		if err == nil {
			return Node{name, int32(seq)}, true
		}
	}
	return Node{}, false
}

// anyKind is the kinds of the lock nodes of Curator's locks and elections, and of kazoo's.
var anyKind = []string{"lock-", "latch-", "__READ__", "__WRIT__", "__lock__", "__rlock__"}

// OfAnyLock reports whether the name of a child shows that a lock uses the directory: the name of a
// lock node, or of the directory of a semaphore's permits.
func OfAnyLock(name string) bool {
	_, ok := Parse(name, anyKind)
	return ok || name == "leases"
}

// Before compares sequence numbers as serial numbers. The counter of a parent has 32 bits, and
// the number that follows the largest one is the smallest. Numbers in one queue are never half
// the range apart.
func Before(a, b int32) bool { return a-b < 0 }

// AtCounterEnd reports whether the number is from the end of the directory's counter, where numbers
// do not show the order. Servers give the largest number to each further node, and numbers from
// the smallest on to creates that are under way together.
func (n Node) AtCounterEnd() bool { return n.Seq < 0 || n.Seq == math.MaxInt32 }

// AnyAtCounterEnd reports whether the numbers of some nodes do not show the order.
func AnyAtCounterEnd(nodes []Node) bool {
	return slices.ContainsFunc(nodes, Node.AtCounterEnd)
}

// Compare orders nodes by number, and those with the same number by name.
func Compare(a, b Node) int {
	switch {
	case Before(a.Seq, b.Seq):
		return -1
	case Before(b.Seq, a.Seq):
		return 1
	}
	return strings.Compare(a.Name, b.Name)
}

// Sorted returns the lock nodes of these kinds among children, in the order of the queue.
func Sorted(children, kinds []string) []Node {
	var nodes []Node
	for _, name := range children {
		if n, ok := Parse(name, kinds); ok {
			nodes = append(nodes, n)
		}
	}
	slices.SortFunc(nodes, Compare)
	return nodes
}

// Has reports whether there is a lock node of these kinds among children.
func Has(children, kinds []string) bool {
	return slices.ContainsFunc(children, func(name string) bool {
		_, ok := Parse(name, kinds)
		return ok
	})
}

// Count returns how many of a directory's children are lock nodes of the kind.
func Count(children []string, kind string) int { return len(Sorted(children, []string{kind})) }
