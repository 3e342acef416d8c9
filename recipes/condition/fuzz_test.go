package condition

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzState reads arbitrary names of children. Each signal is one waiter's or useless, and a waiter that
// is signaled is one that was there.
func FuzzState(f *testing.F) {
	f.Add("_c_a-wait-0000000001\n_c_b-wait-0000000002\nsignal-0000000001-x\nall-0000000000")
	f.Add("wait--2147483648\nwait-2147483647\nsignal--1-\nall--2147483648\nall-2147483647")
	f.Add("signal-\nall-\nwait-\n\nall-99999999999\nsignal-1-2-3\nwait-1wait-2")
	f.Fuzz(func(t *testing.T, text string) {
		names := slices.Sorted(strings.SplitSeq(text, "\n"))
		names = slices.Compact(names)
		st := newState(names)
		m := st.match()
		require.LessOrEqual(t, m.signaled(), len(st.waiters))
		require.Len(t, st.signals, len(m.own)+countIn(m.useless, st.signals))
		for i, w := range st.waiters {
			require.Contains(t, names, w.Name)
			require.Equal(t, i < m.signaled(), st.isSignaled(w.Name))
			for _, taken := range st.taken(w.Name) {
				require.Contains(t, names, taken)
			}
			_ = st.passing(w.Name)
		}
		require.False(t, st.isSignaled("no child has this name, nor a number"))
	})
}

func countIn(names []string, signals []signal) (n int) {
	for _, s := range signals {
		if slices.Contains(names, s.name) {
			n++
		}
	}
	return n
}
