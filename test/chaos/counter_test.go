package chaos

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
)

// counterHistory is what workers have added to a counter, each to its own digit.
type counterHistory struct {
	adders map[int]*adder // by number
	sums   []addition     // that were told
}

// adder counts the additions of one worker.
type adder struct {
	applied int // that were applied
	unknown int // that may have been, or may be later
	seen    int // the largest number of unknown ones that a sum has
}

// addition is an addition with its result.
type addition struct {
	called, returned int64
	sum              int64
}

func newCounterHistory() *counterHistory { return &counterHistory{adders: map[int]*adder{}} }

func (h *counterHistory) adder(number int) *adder {
	if h.adders[number] == nil {
		h.adders[number] = &adder{}
	}
	return h.adders[number]
}

// killed notes that an addition of a worker may have been under way when its process was killed.
func (h *counterHistory) killed(number int) { h.adder(number).unknown++ }

// add checks an addition by its worker's digit alone: no earlier one is lost, and none counts twice.
// Those of one worker come in their order.
func (h *counterHistory) add(number int, t turn) error {
	a := h.adder(number)
	switch {
	case t.Outcome == framework.NotApplied:
		return nil
	case t.Outcome == framework.Unknown:
		a.unknown++
		return nil
	case t.Lost != "": // applied, and the sum is not known
		a.applied++
		return nil
	}
	a.applied++
	h.sums = append(h.sums, addition{t.Called, t.To, t.Token})
	return a.check(digit(t.Token, number))
}

// check compares a digit with the additions before, and learns how many unknown ones it has.
func (a *adder) check(digit int) error {
	more := digit - a.applied
	if more < a.seen {
		return fmt.Errorf("an addition is lost: want %d or more, got %d", a.applied+a.seen, digit)
	}
	if more > a.unknown {
		return fmt.Errorf("an addition counts twice: %d are applied, %d unknown, got %d", a.applied, a.unknown, digit)
	}
	a.seen = more
	return nil
}

// digit returns the number of additions of a worker in a sum.
func digit(sum int64, number int) int { return int(sum >> (digitBits * number) & maxAdditions) }

// total returns the number of additions of all workers in a sum.
func total(sum int64) (n int) {
	for ; sum != 0; sum >>= digitBits {
		n += int(sum & maxAdditions)
	}
	return n
}

// decodeSum returns the number in the node of a counter.
func decodeSum(data []byte) (int64, error) {
	if len(data) != 8 {
		return 0, fmt.Errorf("a counter has %d bytes", len(data))
	}
	return int64(binary.BigEndian.Uint64(data)), nil
}

// check checks that all sums were those of one counter, one after another, in an order that the times
// of the additions allow.
func (h *counterHistory) check() error {
	slices.SortFunc(h.sums, func(a, b addition) int { return cmp.Compare(total(a.sum), total(b.sum)) })
	called := int64(0) // the latest call of a smaller sum
	for i, s := range h.sums {
		if i > 0 {
			before := h.sums[i-1]
			for number := range h.adders {
				if digit(before.sum, number) > digit(s.sum, number) || total(before.sum) == total(s.sum) {
					return fmt.Errorf("two sums contradict each other: %#x and %#x", before.sum, s.sum)
				}
			}
		}
		called = max(called, s.called)
		if s.returned < called {
			return fmt.Errorf("a sum is larger than that of an addition which was called later: %+v", s)
		}
	}
	return nil
}

// end checks the number that is left when nothing adds any more.
func (h *counterHistory) end(left int64) error {
	for number, a := range h.adders {
		if err := a.check(digit(left, number)); err != nil {
			return fmt.Errorf("worker %d, %#x is left: %w", number, left, err)
		}
	}
	if err := h.check(); err != nil || len(h.sums) == 0 {
		return err
	}
	last := h.sums[len(h.sums)-1].sum // the largest
	for number := range h.adders {
		if digit(last, number) > digit(left, number) {
			return fmt.Errorf("%#x is left, after %#x", left, last)
		}
	}
	return nil
}

func TestCounterHistoryFindsWhatMustNotBe(t *testing.T) {
	const other = 1 << digitBits
	type step struct {
		number  int
		sum     int64
		outcome framework.Outcome
		from    int64
		to      int64
	}
	known := func(number int, sum, from, to int64) step { return step{number, sum, framework.Applied, from, to} }
	unknown, refused := step{outcome: framework.Unknown}, step{outcome: framework.NotApplied}
	for name, example := range map[string]struct {
		steps []step
		left  int64
		want  string // empty: nothing is wrong
	}{
		"in turn": {
			[]step{known(0, 1, 1, 2), known(1, other+1, 3, 4), known(0, other+2, 5, 6)}, other + 2, "",
		},
		"at a time":           {[]step{known(0, other+1, 1, 9), known(1, other, 1, 9)}, other + 1, ""},
		"unknown and applied": {[]step{known(0, 1, 1, 2), unknown, known(0, 3, 5, 6)}, 3, ""},
		"unknown and late":    {[]step{known(0, 1, 1, 2), unknown, known(0, 2, 5, 6)}, 3, ""},
		"unknown and never":   {[]step{known(0, 1, 1, 2), unknown, known(0, 2, 5, 6)}, 2, ""},
		"refused":             {[]step{refused, known(0, 1, 1, 2)}, 1, ""},
		"refused and applied": {[]step{refused, known(0, 2, 1, 2)}, 2, "twice"},
		"twice":               {[]step{known(0, 1, 1, 2), known(0, 3, 3, 4)}, 3, "twice"},
		"twice at the end":    {[]step{known(0, 1, 1, 2)}, 2, "twice"},
		"unknown twice":       {[]step{unknown, known(0, 3, 1, 2)}, 3, "twice"},
		"lost":                {[]step{known(0, 1, 1, 2), known(0, 1, 3, 4)}, 2, "lost"},
		"lost at the end":     {[]step{known(0, 1, 1, 2), known(0, 2, 3, 4)}, 1, "lost"},
		"unknown lost again":  {[]step{unknown, known(0, 2, 1, 2), known(0, 2, 3, 4)}, 2, "lost"},
		"other lost":          {[]step{known(1, other, 1, 2), known(0, 1, 3, 4)}, other + 1, "contradict"},
		"crossed":             {[]step{known(0, 1, 1, 9), known(1, other, 1, 9)}, other + 1, "contradict"},
		"before its time":     {[]step{known(0, other+1, 1, 2), known(1, other, 3, 4)}, other + 1, "called later"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newCounterHistory()
			var err error
			for _, s := range example.steps {
				moved := turn{Token: s.sum, Outcome: s.outcome, Called: s.from, To: s.to}
				if e := h.add(s.number, moved); err == nil {
					err = e
				}
			}
			if err == nil {
				err = h.check()
			}
			if err == nil {
				err = h.end(example.left)
			}
			if example.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, example.want)
		})
	}
	h := newCounterHistory()
	h.killed(0)
	require.NoError(t, h.end(1), "the addition under way was applied")
}
