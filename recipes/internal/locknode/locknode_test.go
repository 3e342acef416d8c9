package locknode

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var lock = []string{"lock-"}

func TestSequenceNumberFollowsTheLastMarker(t *testing.T) {
	for name, want := range map[string]int32{
		"_c_8026b758-0c64-4418-a4a7-a40067d845c1-lock-0000000007": 7,
		"_c_8026b7580c644418a4a7a40067d845c1-lock-0000000007":     7, // the Go driver's
		"lock-0000000007":              7,
		"lock-lock-0000000007":         7,
		"lock-0000000001-lock-0000002": 2,
		"lock-2147483647":              math.MaxInt32,
		"lock--2147483648":             math.MinInt32,
		"lock--000000005":              -5,
	} {
		m, ok := Parse(name, lock)
		require.True(t, ok, name)
		require.Equal(t, Node{name, want}, m)
	}
}

func TestOtherNamesAreIgnored(t *testing.T) {
	children := []string{"", "lock-", "lock-x", "lock-1x", "lock-99999999999", "config", "-x", "0000000001",
		"8026b7580c644418a4a7a40067d845c1__lock__0000000001", "a-latch-0000000001", "lock-0000000001"}
	require.Equal(t, []Node{{"lock-0000000001", 1}}, Sorted(children, lock))
}

func TestQueueIsInTheOrderOfTheNumbers(t *testing.T) {
	children := []string{"b-lock-0000000010", "c-lock-0000000009", "a-lock-0000000011"}
	require.Equal(t, []int32{9, 10, 11}, numbers(Sorted(children, lock)))
}

func TestOrderContinuesWhereTheCounterWraps(t *testing.T) {
	children := []string{"a-lock--2147483648", "b-lock-2147483646", "c-lock--2147483647", "d-lock-2147483647"}
	line := Sorted(children, lock)
	require.Equal(t, []int32{math.MaxInt32 - 1, math.MaxInt32, math.MinInt32, math.MinInt32 + 1}, numbers(line))
	require.True(t, AnyAtCounterEnd(line))
	require.False(t, AnyAtCounterEnd(line[:1]))
}

func numbers(line []Node) (all []int32) {
	for _, m := range line {
		all = append(all, m.Seq)
	}
	return all
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{
		"", "lock-", "lock-0000000001", "lock--2147483648", "_c_x-lock-1", "lock-+1", "lock-1_0",
	} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		m, ok := Parse(name, lock)
		if !ok {
			return
		}
		if m.Name != name || !strings.Contains(name, "lock-") {
			t.Fatalf("parse(%q) = %+v", name, m)
		}
		line := Sorted([]string{name, "a-lock-0000000000"}, lock)
		if !slices.Contains(line, m) {
			t.Fatalf("%q is not in the queue %+v", name, line)
		}
	})
}

func TestOnlyLockNodesOfTheKindsCount(t *testing.T) {
	require.True(t, Has([]string{"config", "a-lock-0000000001"}, lock))
	require.False(t, Has([]string{"config", "lock-", "a-latch-0000000001"}, lock))
	require.False(t, Has(nil, lock))
}
