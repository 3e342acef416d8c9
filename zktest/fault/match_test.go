package fault

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMatchByPath(t *testing.T) {
	tests := []struct {
		pattern string
		req     Request
		want    bool
	}{
		{"", Request{Op: OpPing}, true},
		{"/", Request{Op: OpPing}, false},
		{"/locks/", Request{Op: OpCreate, Path: "/locks/a/lock-"}, true},
		{"/locks/a", Request{Op: OpCreate, Path: "/locks/ab"}, true},
		{"/locks/b", Request{Op: OpCreate, Path: "/locks/ab"}, false},
		{"/locks/*", Request{Op: OpCreate, Path: "/locks/a"}, true},
		{"/locks/*", Request{Op: OpCreate, Path: "/locks/a/b"}, false},
		{"/locks/*-lock-", Request{Op: OpCreate, Path: "/locks/_c_1-lock-"}, true},
		{"/locks/*-lock-", Request{Op: OpDelete, Path: "/locks/_c_1-lock-0000000001"}, false},
	}
	for _, test := range tests {
		require.Equal(t, test.want, Match{Path: test.pattern}.selects(test.req), "%q %v", test.pattern, test.req)
	}
}

func TestMatchByClient(t *testing.T) {
	require.True(t, Match{}.selects(Request{Client: "a"}))
	require.True(t, Match{Client: "a"}.selects(Request{Client: "a"}))
	require.False(t, Match{Client: "a"}.selects(Request{Client: "b"}))
	require.Equal(t, "create /x of a", Match{Op: OpCreate, Path: "/x", Client: "a"}.String())
}
