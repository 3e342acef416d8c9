package condition

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// sent is a signal and the waiters that were there.
type sent struct {
	name  string
	there []string
	all   bool
}

// expected returns the waiters that have a signal: each signal belongs to the first waiter that was
// there and has none, and a broadcast to all that were there.
func expected(waiters []string, signals []sent) (signaled []string) {
	for _, s := range signals {
		for _, w := range waiters {
			if s.all && slices.Contains(s.there, w) && !slices.Contains(signaled, w) {
				signaled = append(signaled, w)
			}
		}
	}
	for _, s := range signals {
		for _, w := range waiters {
			if !s.all && slices.Contains(s.there, w) && !slices.Contains(signaled, w) {
				signaled = append(signaled, w)
				break
			}
		}
	}
	return signaled
}

// Waiters come, leave and take signals in random orders. The names of the nodes say the same as a
// record of which waiters each signal was made for.
func TestSignalsBelongToTheFirstWaitersThatWereThere(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		var waiters []string
		var signals []sent
		number := random.IntN(3)
		for step := range 60 {
			names := slices.Clone(waiters)
			for _, s := range signals {
				names = append(names, s.name)
			}
			random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
			st := newState(names)
			m := st.match()
			signaled := expected(waiters, signals)
			require.Equal(t, waiters[:m.signaled()], append(waiters[:0:0], signaled...), "seed %d step %d", seed, step)
			for _, name := range m.useless {
				rest := slices.DeleteFunc(slices.Clone(signals), func(s sent) bool { return s.name == name })
				require.Equal(t, signaled, expected(waiters, rest), "%s is used", name)
			}
			switch random.IntN(6) {
			case 0, 1:
				waiters = append(waiters, fmt.Sprintf("_c_0-wait-%010d", number))
				number += 1 + random.IntN(2)
			case 2: // a waiter dies
				if len(waiters) > 0 {
					i := random.IntN(len(waiters))
					waiters = slices.Delete(slices.Clone(waiters), i, i+1)
				}
			case 3: // a waiter takes its signal, or its time is over
				if len(waiters) > 0 {
					i := random.IntN(len(waiters))
					if random.IntN(2) == 0 {
						i = 0
					}
					name := waiters[i]
					rest := slices.DeleteFunc(append([]string{}, signaled...), func(w string) bool { return w == name })
					gone := append([]string{name}, st.taken(name)...)
					gone = append(gone, st.without(gone).match().useless...)
					waiters = slices.Delete(slices.Clone(waiters), i, i+1)
					signals = slices.DeleteFunc(signals, func(s sent) bool { return slices.Contains(gone, s.name) })
					require.Equal(t, rest, append([]string{}, expected(waiters, signals)...))
				}
			default:
				all := random.IntN(4) == 0
				if s, needed := st.signalFor(fmt.Sprint(step), all); needed {
					signals = append(signals, sent{s.name, slices.Clone(waiters), all})
					require.Greater(t, len(expected(waiters, signals)), len(signaled))
				} else {
					require.Equal(t, len(waiters), len(signaled))
				}
			}
		}
	}
}

func TestOtherNodesAreNoSignals(t *testing.T) {
	st := newState([]string{"other", "signal-x-1", "all-", "_c_0-wait-", "_c_0-lock-0000000001", "signal-"})
	require.Equal(t, state{}, st)
}
