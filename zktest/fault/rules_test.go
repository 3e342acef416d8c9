package fault_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

func TestRulesThatCanNeverFirePanic(t *testing.T) {
	matches := map[string]fault.Match{
		"fault: match any a: want a path with a leading /":         {Path: "a"},
		"fault: match create *: want a path with a leading /":      {Op: fault.OpCreate, Path: "*"},
		"fault: match any /a[: syntax error in pattern":            {Path: "/a["},
		"fault: match ping /x: such requests have no path":         {Op: fault.OpPing, Path: "/x"},
		"fault: match connect /x: such requests have no path":      {Op: fault.OpConnect, Path: "/x"},
		"fault: match closeSession /x: such requests have no path": {Op: fault.OpCloseSession, Path: "/x"},
		"fault: match check: clients send no such request":         {Op: fault.OpCheck},
		"fault: match op(99): clients send no such request":        {Op: 99},
		"fault: match create: negative skip -1 or times 0":         {Op: fault.OpCreate, Skip: -1},
		"fault: match any: negative skip 0 or times -2":            {Times: -2},
	}
	var rules fault.Rules
	for want, match := range matches {
		require.PanicsWithValue(t, want, func() { rules.Add(match, fault.Pass()) })
	}
	require.PanicsWithValue(t, "fault: match any: fail without an error", func() {
		rules.Add(fault.Match{}, fault.Fail(zktest.OK))
	})
	require.Empty(t, rules.All())
	for _, match := range []fault.Match{
		{}, {Path: "/x"}, {Op: fault.OpMulti, Path: "/x"}, {Op: fault.OpPing}, {Op: fault.OpConnect},
		{Op: fault.OpAddWatch, Path: "/*"},
	} {
		require.NotPanics(t, func() { rules.Add(match, fault.Pass()) }, "%v", match)
	}
}

func TestRuleString(t *testing.T) {
	tests := map[string]struct {
		match  fault.Match
		action fault.Action
	}{
		"create /x of a: hold":         {fault.Match{Op: fault.OpCreate, Path: "/x", Client: "a"}, fault.Hold()},
		"any: pass":                    {fault.Match{}, fault.Pass()},
		"connect: delay by 2s":         {fault.Match{Op: fault.OpConnect}, fault.Delay(2 * time.Second)},
		"getData: truncate at 7 bytes": {fault.Match{Op: fault.OpGetData}, fault.Truncate(7)},
		"delete: drop before":          {fault.Match{Op: fault.OpDelete}, fault.DropBefore()},
		"delete: drop after":           {fault.Match{Op: fault.OpDelete}, fault.DropAfter()},
		"ping: reset":                  {fault.Match{Op: fault.OpPing}, fault.Reset()},
		"any /*: fail: not authorized (-102)": {
			fault.Match{Path: "/*"}, fault.Fail(zktest.NoAuth)},
	}
	var rules fault.Rules
	for want, test := range tests {
		require.Equal(t, want, rules.Add(test.match, test.action).String())
	}
}
