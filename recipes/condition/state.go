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
	signaled int      // how many waiters may go on: the first ones
	first    []string // the signal of the first waiter, if it is for one waiter and the first one has it
	useless  []string // signals whose waiters have all left
}

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
		for m.signaled < len(st.waiters) && st.waiters[m.signaled].Seq <= last {
			m.signaled++
		}
	}
	for i, b := range st.broadcasts {
		if i != widest || m.signaled == 0 {
			m.useless = append(m.useless, b.name)
		}
	}
	for _, s := range st.signals {
		if m.signaled == len(st.waiters) || st.waiters[m.signaled].Seq > s.last {
			m.useless = append(m.useless, s.name)
			continue
		}
		if m.signaled == 0 {
			m.first = []string{s.name}
		}
		m.signaled++
	}
	return m
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

// withoutFirst returns the state without the first waiter and the nodes of the given names.
func (st state) withoutFirst(names []string) state {
	kept := slices.DeleteFunc(slices.Clone(st.signals), func(s signal) bool { return slices.Contains(names, s.name) })
	return state{st.waiters[1:], kept, st.broadcasts}
}

// signalFor returns the signal that one more waiter needs, or nothing if all waiters have one.
func (st state) signalFor(id string, all bool) (s signal, needed bool) {
	if st.match().signaled == len(st.waiters) {
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
