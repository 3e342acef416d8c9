package queue

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/recipes/internal/locknode"
)

// Rules of a queue of readers (r) and writers (w).
var (
	readers = Rules{Kind: "r", Conflicting: []string{"w"}, Compatible: []string{"r"}}
	writers = Rules{Kind: "w", Conflicting: []string{"w", "r"}, PositionsReused: true}
)

func TestAloneFindsNodesAheadOfTheNextWriter(t *testing.T) {
	line := &Queue{rules: writers}
	for name, test := range map[string]struct {
		own      []string
		children []string
		crowded  bool
	}{
		"alone":                                 {[]string{"a-r1"}, []string{"a-r1", "config"}, false},
		"own node at the same position":         {[]string{"a-r1", "a-w1"}, []string{"a-r1", "a-w1"}, false},
		"another node at the same position":     {[]string{"a-r1", "a-w1"}, []string{"a-r1", "a-w1", "b-w1"}, true},
		"a reader ahead":                        {[]string{"b-r2"}, []string{"a-r1", "b-r2"}, true},
		"a reader behind":                       {[]string{"a-r1"}, []string{"a-r1", "b-r2"}, true},
		"a reader ahead of a writer":            {[]string{"a-r1"}, []string{"a-r1", "b-r2", "c-w3"}, true},
		"a writer behind":                       {[]string{"a-r1"}, []string{"a-r1", "b-w2", "c-r3", "d-w4"}, false},
		"a writer and a reader at one position": {[]string{"a-r1"}, []string{"a-r1", "b-w2", "c-r2"}, true},
		"a writer at the last number": {
			[]string{"b-r2147483647"}, []string{"a-w2147483647", "b-r2147483647"}, false},
		"a writer with a negative number": {[]string{"a-r2147483647"},
			[]string{"a-r2147483647", "b-w-2147483648"}, false},
		"a writer and a reader at the last number": {[]string{"a-r1"},
			[]string{"a-r1", "b-w2147483647", "c-r2147483647"}, true},
		"a reader after the last number": {[]string{"a-r1"},
			[]string{"a-r1", "b-w2147483647", "c-r-2147483648"}, true},
		"own node one before the last number": {[]string{"a-r2147483646"},
			[]string{"a-r2147483646", "b-w2147483647"}, false},
		"another node one before the last number": {[]string{"a-r2147483647"},
			[]string{"a-r2147483647", "b-w2147483646"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			err := line.checkOnlyHolder(test.children, []string{"w"}, test.own)
			if test.crowded {
				require.ErrorIs(t, err, ErrNotOnlyHolder)
			} else {
				require.NoError(t, err)
			}
		})
	}
}

// deletionWouldGrant reports whether the deletion of the only node ahead grants the lock without another read.
func TestWhenTheDeletionOfTheOnlyNodeAheadGrants(t *testing.T) {
	for name, test := range map[string]struct {
		rules    Rules
		own      string
		children []string
		want     bool
	}{
		"the first of the queue": {
			readers, "d-r4", []string{"a-w1", "c-r3", "d-r4", "e-w5", "f-r6"}, true},
		"a compatible node behind the predecessor":   {readers, "d-r4", []string{"b-w2", "c-r3", "d-r4"}, true},
		"a compatible node ahead of the predecessor": {readers, "d-r4", []string{"a-r1", "b-w2", "d-r4"}, false},
		"a compatible node with the number of the predecessor": {readers, "d-r4",
			[]string{"b-w2", "c-r2", "d-r4"}, false},
		"two nodes ahead":                 {readers, "d-r4", []string{"a-w1", "b-w2", "d-r4"}, false},
		"the predecessor may be replaced": {writers, "d-w4", []string{"b-w2", "d-w4"}, false},
		"readers after the last number": {readers, "d-r-2147483648",
			[]string{"b-w2147483647", "c-r-2147483648", "d-r-2147483648"}, false},
		"a reader with the last number": {readers, "d-r-2147483648",
			[]string{"b-w2147483646", "c-r2147483647", "d-r-2147483648"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			m, ok := locknode.Parse(test.own, []string{test.rules.Kind})
			require.True(t, ok)
			p := &waiter{queue: &Queue{rules: test.rules}, Node: m}
			ahead, uncertain := inFront(locknode.Sorted(test.children, test.rules.Conflicting), m)
			compatible := locknode.Sorted(test.children, test.rules.Compatible)
			require.Equal(t, test.want, p.final(append(ahead, uncertain...), compatible))
		})
	}
}

func TestDigitsForANodeAtTheSamePosition(t *testing.T) {
	for name, want := range map[string]string{
		"r7": "0000000007", "r2147483646": "2147483646", "r2147483647": "2147483646",
		"r-2147483648": "2147483646", "r-2": "2147483646",
	} {
		m, ok := locknode.Parse(name, []string{"r"})
		require.True(t, ok)
		require.Equal(t, want, positionDigits(m), name)
	}
}
