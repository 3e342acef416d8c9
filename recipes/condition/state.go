package condition

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/internal/locknode"
)

// What the names of the nodes have: a waiter's the kind before its number, that of a signal a
// prefix, the number of the last waiter that may take it, and an id.
const (
	waiterKind      = "wait-"
	signalPrefix    = "signal-"
	broadcastPrefix = "all-"
)

// signal is a node that lets waiters go on.
type signal struct {
	name string
	last int32 // the number of the last waiter that was there
}

// state is the children of a condition's directory.
type state struct {
	waiters    []locknode.Node // in the order in which they came
	signals    []signal        // each for one waiter; in the order of last
	broadcasts []signal        // each for all waiters up to last
}

func newState(children []string) (st state) {
	st.waiters = locknode.Sorted(children, []string{waiterKind})
	for _, name := range children {
		if rest, ok := strings.CutPrefix(name, signalPrefix); ok {
			number, _, _ := strings.Cut(rest, "-")
			st.signals = appendSignal(st.signals, name, number)
		} else if number, ok := strings.CutPrefix(name, broadcastPrefix); ok {
			st.broadcasts = appendSignal(st.broadcasts, name, number)
		}
	}
	st.sort()
	return st
}

func appendSignal(to []signal, name, number string) []signal {
	last, err := strconv.ParseInt(number, 10, 32)
	if err != nil {
		return to // a node of another program
	}
	return append(to, signal{name, int32(last)})
}

func (st *state) sort() {
	slices.SortFunc(st.signals, func(a, b signal) int {
		return cmp.Or(cmp.Compare(a.last, b.last), strings.Compare(a.name, b.name))
	})
}

// match is which signals belong to which waiters.
type match struct {
	covered int      // how many waiters have a broadcast: the first ones
	own     []string // the signals of the next waiters, one for each
	useless []string // signals whose waiters have all left
}

// signaled returns how many waiters may go on: the first ones.
func (m match) signaled() int { return m.covered + len(m.own) }

// match gives the signals to the waiters. A broadcast belongs to all waiters that were there. Each
// other signal belongs to the first waiter that has none and that was there. A waiter that leaves
// thus passes its signal on, but only to waiters that were there when the signal was made.
func (st state) match() (m match) {
	widest := -1
	for i, b := range st.broadcasts {
		if widest < 0 || b.last > st.broadcasts[widest].last {
			widest = i
		}
	}
	if widest >= 0 {
		last := st.broadcasts[widest].last
		for m.covered < len(st.waiters) && st.waiters[m.covered].Seq <= last {
			m.covered++
		}
	}
	for i, b := range st.broadcasts {
		if i != widest || m.covered == 0 {
			m.useless = append(m.useless, b.name)
		}
	}
	for _, s := range st.signals {
		if next := m.signaled(); next < len(st.waiters) && st.waiters[next].Seq <= s.last {
			m.own = append(m.own, s.name)
		} else {
			m.useless = append(m.useless, s.name)
		}
	}
	return m
}

// isSignaled reports whether the waiter of this name has a signal.
func (st state) isSignaled(name string) bool {
	i := st.position(name)
	return i >= 0 && i < st.match().signaled()
}

// taken returns the signal that the waiter of this name takes when it leaves, if it needs one of its
// own. It is the one with the smallest number: each waiter ahead may take those that remain, and it is
// the waiter's also if one of those ahead has left.
func (st state) taken(name string) []string {
	m := st.match()
	if i := st.position(name); i >= m.covered && i < m.signaled() {
		return m.own[:1]
	}
	return nil
}

// passing returns the waiters that have signals of their own, if that of this name has none. If one of
// them leaves, its signal may be that waiter's.
func (st state) passing(name string) []locknode.Node {
	if st.isSignaled(name) {
		return nil
	}
	m := st.match()
	return st.waiters[m.covered:m.signaled()]
}

// has reports whether there is a waiter or a signal of this name.
func (st state) has(name string) bool {
	is := func(s signal) bool { return s.name == name }
	return st.position(name) >= 0 || slices.ContainsFunc(st.signals, is) || slices.ContainsFunc(st.broadcasts, is)
}

// position returns how many waiters are ahead of the one with this name, or -1 if there is none.
func (st state) position(name string) int {
	return slices.IndexFunc(st.waiters, func(n locknode.Node) bool { return n.Name == name })
}

// without returns the state without the waiters and signals of the given names.
func (st state) without(names []string) state {
	waiter := func(n locknode.Node) bool { return slices.Contains(names, n.Name) }
	other := func(s signal) bool { return slices.Contains(names, s.name) }
	return state{
		waiters:    slices.DeleteFunc(slices.Clone(st.waiters), waiter),
		signals:    slices.DeleteFunc(slices.Clone(st.signals), other),
		broadcasts: st.broadcasts,
	}
}

// signalFor returns the signal that one more waiter needs, or nothing if all waiters have one.
func (st state) signalFor(id string, all bool) (s signal, needed bool) {
	if st.match().signaled() == len(st.waiters) {
		return signal{}, false
	}
	last := st.waiters[len(st.waiters)-1].Seq
	if all {
		return signal{fmt.Sprintf("%s%010d", broadcastPrefix, last), last}, true
	}
	return signal{fmt.Sprintf("%s%010d-%s", signalPrefix, last, id), last}, true
}

// with returns the state with one more signal.
func (st state) with(s signal, all bool) state {
	if all {
		st.broadcasts = append(slices.Clip(st.broadcasts), s)
		return st
	}
	st.signals = append(slices.Clip(st.signals), s)
	st.sort()
	return st
}

// maxUseless bounds how many useless signals one transaction deletes. The next one deletes more.
const maxUseless = 500

// deletions returns operations that delete nodes of the directory.
func deletions(dir string, names []string) (ops []framework.Op) {
	for _, name := range names[:min(len(names), maxUseless)] {
		ops = append(ops, framework.DeleteOp(dir+"/"+name, -1))
	}
	return ops
}
