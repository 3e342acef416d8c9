package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/docent-zk/docent/framework"
)

// Step is one session of a Cycle: its node Waits waits, in the object at Path, for the node Behind of
// the next session.
type Step struct {
	Session ID     `json:"session"`
	Path    string `json:"path"`
	Waits   Node   `json:"waits"`
	Behind  Node   `json:"behind"`
}

// Cycle is sessions each of which waits for the next one, and the last one for the first.
type Cycle []Step

// Cycles returns cycles of sessions that hold locks and wait for others of objects: deadlocks, if each
// session is one thread of work. A process whose goroutines share a session may hold a lock in one
// and wait in another, and be no part of a deadlock: the cycle shows where to look. A session that
// waits only for itself is no cycle.
//
// A waiter for permits waits for any of the holders, so it is in a cycle only if all of them are
// blocked. Of several cycles with a session in common one is returned. Sessions that wait for a cycle
// and are not in one are left out. So are nodes beyond WithMaxNodes. A cycle begins with the smallest
// path.
//
// Objects of a Walk were read one after another. Confirm reports whether a cycle was there as a
// whole. Cycles makes no request.
func Cycles(objects []*Object) []Cycle {
	g := &waitGraph{of: map[ID][]*wait{}, blocks: map[ID][]*wait{}}
	for _, o := range objects {
		if o != nil {
			g.add(o)
		}
	}
	g.reduce()
	return g.cycles()
}

// wait is a session that waits until one of some nodes is released.
type wait struct {
	path    string
	node    Node
	any     []Node // of other sessions, or of its own
	holders []Node // conflicting nodes that hold, as a shorter way to the same end
	over    bool   // one of any will be released
}

// waitGraph is the waits of sessions.
type waitGraph struct {
	order  []ID           // sessions that wait, as found
	of     map[ID][]*wait // of a session
	blocks map[ID][]*wait // those that a session can end
}

// add adds the waits in an object. Each node waits for those right ahead that conflict with it: these
// wait for the ones before.
func (g *waitGraph) add(o *Object) {
	switch o.Kind {
	case KindMutex, KindLatch, KindRWLock:
	case KindSemaphore:
		g.addSemaphore(o)
		return
	default:
		return
	}
	var holders, writing []Node // those that hold; those of them that are not readers
	var readers []Node          // since writer
	var writer *Node
	for i, n := range o.Nodes {
		reads := n.Role == RoleReader
		conflicting := holders
		if reads {
			conflicting = writing
		}
		if n.Holds {
			if holders = append(holders, n); !reads {
				writing = append(writing, n)
			}
		} else {
			if writer != nil {
				g.wait(o, n, conflicting, *writer)
			}
			if !reads {
				for _, r := range readers {
					g.wait(o, n, conflicting, r)
				}
			}
		}
		if reads {
			readers = append(readers, n)
		} else {
			writer, readers = &o.Nodes[i], nil
		}
	}
}

// addSemaphore adds the waiters for permits: the first one waits for any permit, each other one for
// the one ahead.
func (g *waitGraph) addSemaphore(o *Object) {
	var permits []Node
	var ahead *Node
	for i, n := range o.Nodes {
		switch {
		case n.Role == RolePermit && n.Holds:
			permits = append(permits, n)
		case n.Role != RoleWaiter:
		case ahead == nil:
			g.wait(o, n, nil, permits...)
			ahead = &o.Nodes[i]
		default:
			g.wait(o, n, nil, *ahead)
			ahead = &o.Nodes[i]
		}
	}
}

// wait adds a wait, unless it can end by what is not known, or is for its own session alone.
func (g *waitGraph) wait(o *Object, n Node, holders []Node, any ...Node) {
	if n.Session == 0 || !slices.ContainsFunc(any, func(b Node) bool { return b.Session != n.Session }) ||
		slices.ContainsFunc(any, func(b Node) bool { return b.Session == 0 }) {
		return
	}
	w := &wait{path: o.Path, node: n, any: any, holders: holders}
	if g.of[n.Session] == nil {
		g.order = append(g.order, n.Session)
	}
	g.of[n.Session] = append(g.of[n.Session], w)
	for _, b := range any {
		g.blocks[b.Session] = append(g.blocks[b.Session], w)
	}
}

// reduce lets the sessions that do not wait release what they hold, then those that do not wait any
// more, and so on.
func (g *waitGraph) reduce() {
	var free []ID
	for id := range g.blocks {
		if len(g.of[id]) == 0 {
			free = append(free, id)
		}
	}
	left := map[ID]int{}
	for id, all := range g.of {
		left[id] = len(all)
	}
	for len(free) > 0 {
		id := free[len(free)-1]
		free = free[:len(free)-1]
		for _, w := range g.blocks[id] {
			if w.over {
				continue
			}
			w.over = true
			if left[w.node.Session]--; left[w.node.Session] == 0 {
				free = append(free, w.node.Session)
			}
		}
	}
}

// blocked reports whether a session waits for what will not be released.
func (g *waitGraph) blocked(id ID) bool {
	return slices.ContainsFunc(g.of[id], func(w *wait) bool { return !w.over })
}

// next returns a step from a session that is blocked to another one.
func (g *waitGraph) next(id ID) (Step, bool) {
	for _, w := range g.of[id] {
		if w.over {
			continue
		}
		for _, b := range slices.Concat(w.holders, w.any) {
			if b.Session != id && g.blocked(b.Session) {
				return Step{id, w.path, w.node, b}, true
			}
		}
	}
	return Step{}, false
}

// cycles follows the blocked sessions. Each leads to a cycle.
func (g *waitGraph) cycles() (all []Cycle) {
	seen := map[ID]int{} // the number of the path that has come by
	for number, id := range g.order {
		var path Cycle
		for seen[id] == 0 {
			step, blocked := g.next(id)
			if !blocked {
				break
			}
			seen[id] = number + 1
			path = append(path, step)
			id = step.Behind.Session
		}
		if seen[id] != number+1 {
			continue // it leads to no cycle, or to one that is known
		}
		cycle := path[slices.IndexFunc(path, func(s Step) bool { return s.Session == id }):]
		first := slices.MinFunc(cycle, func(a, b Step) int { return cmp.Compare(a.Path, b.Path) })
		at := slices.IndexFunc(cycle, func(s Step) bool { return s.Session == first.Session })
		all = append(all, slices.Concat(cycle[at:], cycle[:at]))
	}
	slices.SortFunc(all, func(a, b Cycle) int { return cmp.Compare(a[0].Path, b[0].Path) })
	return all
}

// Confirm reads the nodes of a cycle again, and reports whether all are the same nodes as before. If
// so, all of them were there together when Confirm began, and each waited behind the next one: nodes
// never change their order in a queue. For a semaphore it does not show whether a permit became free
// by a higher limit. Confirm fails as Show does.
func Confirm(ctx context.Context, client *framework.Client, c Cycle) (bool, error) {
	if len(c) == 0 {
		return false, errors.New("inspect: confirm: the cycle is empty")
	}
	w, err := newWalker(ctx, client, c[0].Path, nil)
	if err != nil {
		return false, fmt.Errorf("confirm: %w", err)
	}
	var paths []string
	var tokens []ID
	for _, step := range c {
		for _, n := range []Node{step.Waits, step.Behind} {
			paths, tokens = append(paths, n.Path), append(tokens, n.Token)
		}
	}
	nodes, err := w.get(ctx, paths)
	if err != nil {
		return false, fmt.Errorf("confirm: %w", err)
	}
	for i, n := range nodes {
		if n.stat == nil || ID(n.stat.Czxid) != tokens[i] {
			return false, nil
		}
	}
	return true, nil
}
