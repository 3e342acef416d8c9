package queue

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The functions below compute from the whole sorted queue what a survey has to find.

// inFront returns the nodes ahead of m. Its second result has those that may be ahead: their
// numbers do not decide.
func inFront(line []queueNode, m queueNode) (ahead, doubtful []queueNode) {
	for _, other := range line {
		switch {
		case other.name == m.name:
		case other.atCounterEnd() && m.atCounterEnd():
			doubtful = append(doubtful, other)
		case before(other.seq, m.seq):
			ahead = append(ahead, other)
		}
	}
	return ahead, doubtful
}

// final returns the result that isFinal has to return.
func (p *waiter) final(ahead, passing []queueNode) bool {
	if len(ahead) != 1 || p.queue.rules.MayBeReplaced {
		return false
	}
	return !slices.ContainsFunc(passing, func(m queueNode) bool {
		return m.atCounterEnd() && p.atCounterEnd() || !before(ahead[0].seq, m.seq)
	})
}

func TestSurveyAgreesWithTheSortedQueue(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, rules := range []Rules{Exclusive, readers, writers} {
		for _, start := range []int32{0, math.MaxInt32 - 6, math.MaxInt32 - 2, math.MaxInt32} {
			for range 2000 {
				children, p := randomQueue(random, rules, start)
				ordered := rules.order(children)
				seen := p.snapshot(&ordered)
				ahead, doubtful := inFront(sortedNodes(children, rules.Conflicting), p.queueNode)
				passing := slices.DeleteFunc(sortedNodes(children, rules.Compatible),
					func(m queueNode) bool { return m.name == p.name })
				message := fmt.Sprint(children, " ", p.name)
				require.Equal(t, slices.Contains(children, p.name), seen.listed, message)
				require.ElementsMatch(t, doubtful, seen.uncertain, message)
				require.Equal(t, nearest(ahead), seen.predecessors, message)
				require.Equal(t, p.final(ahead, passing), seen.isOnlyOneAhead(p), message)
				if len(doubtful) > 0 { // and one of them is ahead after all
					seen.add(doubtful[0])
					require.Equal(t, p.final(append(ahead, doubtful[0]), passing), seen.isOnlyOneAhead(p), message)
				}
			}
		}
	}
}

// nearest returns the view of the nodes ahead.
func nearest(ahead []queueNode) (v predecessors) {
	for _, m := range ahead {
		v.add(m)
	}
	return v
}

// randomQueue returns a few nodes in random order, with numbers from start on and some of them
// twice. The waiter it returns may have a node that is not among them.
func randomQueue(random *rand.Rand, rules Rules, start int32) ([]string, *waiter) {
	kinds := append(rules.kinds(), "config")
	var children []string
	for i := range random.IntN(8) {
		kind := kinds[random.IntN(len(kinds))]
		children = append(children, fmt.Sprintf("%c-%s%010d", 'a'+i, kind, start+random.Int32N(8)))
	}
	own, _ := parseName(fmt.Sprintf("own-%s%010d", rules.Name, start+random.Int32N(8)), []string{rules.Name})
	if random.IntN(8) > 0 {
		children = append(children, own.name)
	}
	random.Shuffle(len(children), func(i, j int) { children[i], children[j] = children[j], children[i] })
	return children, &waiter{queue: &Queue{rules: rules}, queueNode: own}
}

func TestNumbersIdentifyAPredecessorOnlyOfExclusiveNodes(t *testing.T) {
	for _, test := range []struct {
		rules    Rules
		own, seq int32
		want     bool
	}{
		{Exclusive, 5, 4, true},
		{Exclusive, math.MaxInt32 - 1, math.MaxInt32 - 2, true},
		{Exclusive, 0, -1, false},
		{Exclusive, math.MaxInt32, math.MaxInt32 - 1, false},
		{Exclusive, math.MinInt32, math.MaxInt32, false},
		{readers, 5, 4, false},
		{writers, 5, 4, false},
	} {
		p := &waiter{queue: &Queue{rules: test.rules}, queueNode: queueNode{seq: test.own}}
		require.Equal(t, test.want, p.numbersTell(test.seq), "%+v", test)
	}
}

func TestWarningsOfTheEndOfTheCounterAreLimited(t *testing.T) {
	w, begun := counterWarnings{}, time.Now()
	require.True(t, w.mayWarn("a", begun))
	require.True(t, w.mayWarn("b", begun))
	require.False(t, w.mayWarn("a", begun.Add(warnEach-1)))
	require.True(t, w.mayWarn("a", begun.Add(warnEach)))
	require.Len(t, w.last, 1, "old entries are forgotten")
}
