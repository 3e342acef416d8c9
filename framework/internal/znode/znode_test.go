package znode

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStripUndoesJoin(t *testing.T) {
	tests := []struct{ namespace, path, full string }{
		{"/ns", "/a", "/ns/a"},
		{"/ns", "/a/b", "/ns/a/b"},
		{"/ns", "/", "/ns"},
		{"/ns", "/ns", "/ns/ns"},
		{"/ns/deep", "/a", "/ns/deep/a"},
		{"/ns/deep", "/", "/ns/deep"},
		{"", "/a", "/a"},
		{"", "/", "/"},
		{"/", "/a", "/a"},
		{"/", "/", "/"},
	}
	for _, tt := range tests {
		t.Run(tt.namespace+" and "+tt.path, func(t *testing.T) {
			require.Equal(t, tt.full, Join(tt.namespace, tt.path))
			require.Equal(t, tt.path, Strip(tt.namespace, tt.full))
		})
	}
}

func TestJoinPrefixStaysInsideTheNamespace(t *testing.T) {
	require.Equal(t, "/ns/", JoinPrefix("/ns", "/"))
	require.Equal(t, "/ns/a/", JoinPrefix("/ns", "/a/"))
	require.Equal(t, "/ns/a/lock-", JoinPrefix("/ns", "/a/lock-"))
	require.Equal(t, "/", JoinPrefix("", "/"))
	require.Equal(t, "/a/", JoinPrefix("", "/a/"))
	require.Equal(t, "/a/", JoinPrefix("/", "/a/"))
	require.Equal(t, "/0000000007", Strip("/ns", JoinPrefix("/ns", "/")+"0000000007"))
}

func TestStripLeavesPathsOutsideTheNamespaceAlone(t *testing.T) {
	for _, path := range []string{"/", "/n", "/nsx", "/nsx/a", "/other/ns/a", "/zookeeper/config", ""} {
		require.Equal(t, path, Strip("/ns", path))
	}
	require.Empty(t, Strip("", ""))
}

func TestPathIsParentAndBase(t *testing.T) {
	tests := []struct{ path, parent, base string }{
		{"/a/b", "/a", "b"},
		{"/a", "/", "a"},
		{"/", "/", ""},
		{"/a/", "/a", ""},
		{"/a/b/lock-0000000001", "/a/b", "lock-0000000001"},
		{"name", "/", "name"},
		{"", "/", ""},
	}
	for _, tt := range tests {
		t.Run(tt.path, func(t *testing.T) {
			require.Equal(t, tt.parent, Parent(tt.path))
			require.Equal(t, tt.base, Base(tt.path))
		})
	}
}

func FuzzStripUndoesJoin(f *testing.F) {
	f.Add("/ns", "/a")
	f.Add("/ns", "/")
	f.Add("", "/a")
	f.Add("/a/b", "/a/b")
	f.Fuzz(func(t *testing.T, namespace, path string) {
		if ValidatePath(path) != nil || namespace != "" && ValidatePath(namespace) != nil {
			return
		}
		full := Join(namespace, path)
		require.NoError(t, ValidatePath(full))
		require.Equal(t, path, Strip(namespace, full))
		require.NoError(t, ValidatePrefix(JoinPrefix(namespace, path)))
	})
}
