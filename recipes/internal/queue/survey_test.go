package queue

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/recipes/internal/locknode"
)

// The functions below compute from the whole sorted queue what findAhead has to find.

// inFront returns the nodes ahead of m. Its second result has those that may be ahead: their
// numbers do not decide.
func inFront(line []locknode.Node, m locknode.Node) (ahead, uncertain []locknode.Node) {
	for _, other := range line {
		switch {
		case other.Name == m.Name:
		case other.AtCounterEnd() && m.AtCounterEnd():
			uncertain = append(uncertain, other)
		case locknode.Before(other.Seq, m.Seq):
			ahead = append(ahead, other)
		}
	}
	return ahead, uncertain
}

func TestNoNodeIsAheadOfItself(t *testing.T) {
	children := []string{"a-lock-0000000001", "b-lock-0000000002", "c-lock-0000000003"}
	line := locknode.Sorted(children, Exclusive.Conflicting)
	for i, m := range line {
		ahead, uncertain := inFront(line, m)
		require.ElementsMatch(t, line[:i], ahead)
		require.Empty(t, uncertain)
	}
}

func TestNumbersOrderNodesUpToTheEndOfTheCounter(t *testing.T) {
	children := []string{"a-lock--2147483648", "b-lock-2147483646", "c-lock--2147483647", "d-lock-2147483647"}
	line := locknode.Sorted(children, Exclusive.Conflicting)
	ahead, uncertain := inFront(line, line[3])
	require.Equal(t, line[:1], ahead)
	require.Equal(t, line[1:3], uncertain, "at the end of the counter numbers do not decide")
	ahead, uncertain = inFront(line, line[0])
	require.Empty(t, ahead, "a node from before the wrap is ahead of later nodes")
	require.Empty(t, uncertain)
}

// final returns the result that deletionWouldGrant has to return.
func (p *waiter) final(ahead, passing []locknode.Node) bool {
	if len(ahead) != 1 || p.queue.rules.PositionsReused {
		return false
	}
	return !slices.ContainsFunc(passing, func(m locknode.Node) bool {
		return m.AtCounterEnd() && p.AtCounterEnd() || !locknode.Before(ahead[0].Seq, m.Seq)
	})
}

func TestSurveyAgreesWithTheSortedQueue(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, rules := range []Rules{Exclusive, readers, writers} {
		for _, start := range []int32{0, math.MaxInt32 - 6, math.MaxInt32 - 2, math.MaxInt32} {
			for range 2000 {
				children, p := randomQueue(random, rules, start)
				ordered := directory(rules).Sort(children)
				seen := p.findAhead(&ordered)
				ahead, uncertain := inFront(locknode.Sorted(children, rules.Conflicting), p.Node)
				passing := slices.DeleteFunc(locknode.Sorted(children, rules.Compatible),
					func(m locknode.Node) bool { return m.Name == p.Name })
				message := fmt.Sprint(children, " ", p.Name)
				require.Equal(t, slices.Contains(children, p.Name), seen.listed, message)
				require.ElementsMatch(t, uncertain, seen.uncertain, message)
				require.Equal(t, nearest(ahead), seen.nodesAhead, message)
				require.Equal(t, p.final(ahead, passing), p.deletionWouldGrant(&seen), message)
				if len(uncertain) > 0 { // and one of them is ahead after all
					seen.add(uncertain[0])
					want := p.final(append(ahead, uncertain[0]), passing)
					require.Equal(t, want, p.deletionWouldGrant(&seen), message)
				}
			}
		}
	}
}

// nearest returns the view of the nodes ahead.
func nearest(ahead []locknode.Node) (v nodesAhead) {
	for _, m := range ahead {
		v.add(m)
	}
	return v
}

// randomQueue returns a few nodes in random order, with numbers from start on and some of them
// twice. The waiter it returns may have a node that is not among them.
func randomQueue(random *rand.Rand, rules Rules, start int32) ([]string, *waiter) {
	kinds := append(rules.Kinds(), "config")
	var children []string
	for i := range random.IntN(8) {
		kind := kinds[random.IntN(len(kinds))]
		children = append(children, fmt.Sprintf("%c-%s%010d", 'a'+i, kind, start+random.Int32N(8)))
	}
	own, _ := locknode.Parse(fmt.Sprintf("own-%s%010d", rules.Kind, start+random.Int32N(8)), []string{rules.Kind})
	if random.IntN(8) > 0 {
		children = append(children, own.Name)
	}
	random.Shuffle(len(children), func(i, j int) { children[i], children[j] = children[j], children[i] })
	return children, &waiter{queue: &Queue{rules: rules}, Node: own}
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
		{writers, 5, 4, true}, // a node at the position of 4 is recorded: waiter.positionTaken
	} {
		p := &waiter{queue: &Queue{rules: test.rules}, Node: locknode.Node{Seq: test.own}}
		require.Equal(t, test.want, p.numbersTell(test.seq), "%+v", test)
	}
}
