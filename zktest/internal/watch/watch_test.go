package watch

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/zktest/internal/proto"
)

// told returns the watchers that an event concerns, sorted.
func told(to map[string]bool) []string { return slices.Sorted(maps.Keys(to)) }

func both(t *testing.T, test func(t *testing.T, m *Manager[string])) {
	t.Helper()
	t.Run("3.9", func(t *testing.T) { test(t, NewManager[string](false)) })
	t.Run("3.8", func(t *testing.T) { test(t, NewManager[string](true)) })
}

func TestDataWatchFiresOnce(t *testing.T) {
	both(t, func(t *testing.T, m *Manager[string]) {
		m.Data("/a", "x")
		m.Data("/a", "y")
		require.Equal(t, 2, m.Count())
		require.Empty(t, m.Changed("/b"))
		require.Equal(t, []string{"x", "y"}, told(m.Changed("/a")))
		require.Empty(t, m.Changed("/a"))
		require.Zero(t, m.Count())
	})
}

func TestDataWatchFiresForCreationAndDeletionOfItsNodeOnly(t *testing.T) {
	both(t, func(t *testing.T, m *Manager[string]) {
		m.Data("/a", "x")
		node, above := m.Created("/a/b", "/a")
		require.Empty(t, node)
		require.Empty(t, above)
		node, above = m.Created("/a", "/")
		require.Equal(t, []string{"x"}, told(node))
		require.Empty(t, above)
		m.Data("/a", "x")
		node, _ = m.Deleted("/a", "/")
		require.Equal(t, []string{"x"}, told(node))
	})
}

func TestChildWatchFiresForChildrenAndForDeletionOfItsNode(t *testing.T) {
	both(t, func(t *testing.T, m *Manager[string]) {
		m.Children("/a", "x")
		require.Empty(t, m.Changed("/a"))
		node, above := m.Created("/a/b", "/a")
		require.Empty(t, node)
		require.Equal(t, []string{"x"}, told(above))
		_, above = m.Created("/a/c", "/a")
		require.Empty(t, above, "it was a one-shot watch")
		m.Children("/a", "x")
		node, above = m.Deleted("/a", "/")
		require.Equal(t, []string{"x"}, told(node))
		require.Empty(t, above)
		require.Zero(t, m.Count())
	})
}

func TestOneEventForTwoWatchesOfADeletedNode(t *testing.T) {
	both(t, func(t *testing.T, m *Manager[string]) {
		m.Data("/a", "x")
		m.Children("/a", "x")
		node, _ := m.Deleted("/a", "/")
		require.Equal(t, map[string]bool{"x": true}, node)
		require.Zero(t, m.Count())
	})
}

func TestPersistentWatchStays(t *testing.T) {
	both(t, func(t *testing.T, m *Manager[string]) {
		m.Persistent("/a", "x")
		for range 2 {
			require.Equal(t, []string{"x"}, told(m.Changed("/a")))
			_, above := m.Created("/a/b", "/a")
			require.Equal(t, []string{"x"}, told(above))
			require.Empty(t, m.Changed("/a/b"), "it is not recursive")
			node, _ := m.Deleted("/a", "/")
			require.Equal(t, []string{"x"}, told(node))
		}
	})
}

func TestRecursiveWatchFiresForAllBelowButNotForChildren(t *testing.T) {
	both(t, func(t *testing.T, m *Manager[string]) {
		m.Recursive("/a", "x")
		for range 2 {
			for _, path := range []string{"/a", "/a/b", "/a/b/c"} {
				require.Equal(t, []string{"x"}, told(m.Changed(path)), path)
				node, above := m.Created(path, "/a")
				require.Equal(t, []string{"x"}, told(node), path)
				require.Empty(t, above)
			}
			require.Empty(t, m.Changed("/"))
			require.Empty(t, m.Changed("/ab"))
		}
	})
}

func TestRecursiveWatchOfTheRootFiresForEverything(t *testing.T) {
	both(t, func(t *testing.T, m *Manager[string]) {
		m.Recursive("/", "x")
		require.Equal(t, []string{"x"}, told(m.Changed("/")))
		require.Equal(t, []string{"x"}, told(m.Changed("/a/b")))
	})
}

func TestModesAddUpExceptInOldServers(t *testing.T) {
	twice := func(old bool) (first, second []string) {
		m := NewManager[string](old)
		m.Persistent("/a", "x")
		m.Data("/a", "x")
		return told(m.Changed("/a")), told(m.Changed("/a"))
	}
	first, second := twice(false)
	require.Equal(t, [][]string{{"x"}, {"x"}}, [][]string{first, second})
	first, second = twice(true)
	require.Equal(t, []string{"x"}, first)
	require.Empty(t, second, "the last mode is the only one")
}

func TestForgottenWatcherGetsNothing(t *testing.T) {
	both(t, func(t *testing.T, m *Manager[string]) {
		m.Data("/a", "x")
		m.Children("/a", "x")
		m.Recursive("/b", "x")
		m.Data("/a", "y")
		m.Forget("x")
		require.Equal(t, 1, m.Count())
		require.Empty(t, m.Changed("/b/c"))
		require.Equal(t, []string{"y"}, told(m.Changed("/a")))
	})
}

func TestRemoveRemovesOneKind(t *testing.T) {
	m := NewManager[string](false)
	m.Data("/a", "x")
	m.Children("/a", "x")
	m.Persistent("/a", "x")
	require.False(t, m.Remove("/a", "x", proto.WatcherRecursive))
	require.False(t, m.Remove("/a", "y", proto.WatcherAny))
	require.False(t, m.Remove("/b", "x", proto.WatcherAny))
	require.True(t, m.Has("/a", "x", proto.WatcherPersistent))
	require.True(t, m.Remove("/a", "x", proto.WatcherPersistent))
	require.False(t, m.Has("/a", "x", proto.WatcherPersistent))
	require.True(t, m.Remove("/a", "x", proto.WatcherData))
	require.Empty(t, m.Changed("/a"))
	require.True(t, m.Has("/a", "x", proto.WatcherChildren))
	require.True(t, m.Remove("/a", "x", proto.WatcherAny))
	require.False(t, m.Remove("/a", "x", proto.WatcherAny))
	require.Zero(t, m.Count())
}

func TestOldServersReportAnyClientsWatch(t *testing.T) {
	m := NewManager[string](true)
	m.Data("/a", "y")
	require.True(t, m.Has("/a", "x", proto.WatcherData))
	require.False(t, m.Has("/a", "x", proto.WatcherChildren))
	require.False(t, m.Remove("/a", "x", proto.WatcherData))
}

func TestKnownWatcherTypes(t *testing.T) {
	recent, old := NewManager[string](false), NewManager[string](true)
	for kind, want := range map[int32][2]bool{
		proto.WatcherChildren: {true, true}, proto.WatcherData: {true, true}, proto.WatcherAny: {true, true},
		proto.WatcherPersistent: {true, false}, proto.WatcherRecursive: {true, false},
		0: {false, false}, 6: {false, false},
	} {
		require.Equal(t, want, [2]bool{recent.Known(kind), old.Known(kind)}, kind)
	}
}

func TestDataPathsAreThoseOfAllWatchers(t *testing.T) {
	m := NewManager[string](false)
	m.Data("/a", "x")
	m.Persistent("/a", "y")
	m.Children("/b", "x")
	paths := m.DataPaths()
	require.Len(t, paths, 1)
	require.ElementsMatch(t, []string{"x", "y"}, paths["/a"])
}
