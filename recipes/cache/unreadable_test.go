package cache_test

import (
	"math/rand/v2"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/recipes/cache"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// A node that becomes unreadable is not deleted, and neither are the nodes below it.
func TestNodeThatBecomesUnreadableHasChanged(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		client := simClient(t, srv, random, "c0", srv.MemAddr())
		writer := simClient(t, srv, random, "writer", srv.MemAddr())
		create(t, writer, "/a/b/c")
		r := &recorder{}
		c := start(t, client, "/a", cache.WithListener(r.add))

		undo := refuse(srv, fault.OpGetData, "/a/[b]")
		set(t, writer, "/a/b", "hidden")
		n, _ := c.Get("/a/b")
		require.ErrorIs(t, n.Err, zk.ErrNoAuth)
		require.Zero(t, n.Stat)
		create(t, writer, "/a/b/d")
		undo()
		set(t, writer, "/a/b", "shown")
		n, _ = c.Get("/a/b")
		require.Equal(t, "shown", string(n.Data))
		require.Equal(t, []string{
			"added /a", "added /a/b", "added /a/b/c", "ready",
			"changed /a/b", "added /a/b/d", "changed /a/b",
		}, r.events())
		require.NoError(t, n.Err)
	})
}

// A node that was deleted and created again while it was unreadable is another one.
func TestUnreadableNodeMayBeReplaced(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		client := simClient(t, srv, random, "c0", srv.MemAddr())
		writer := simClient(t, srv, random, "writer", srv.MemAddr())
		create(t, writer, "/a/b/c")
		r := &recorder{}
		c := start(t, client, "/a", cache.WithListener(r.add))
		undo := refuse(srv, fault.OpGetData, "/a/[b]")
		set(t, writer, "/a/b", "hidden")
		reconnect(t, srv, c, func() {
			require.NoError(t, deleteAll(t.Context(), writer, "/a/b"))
			create(t, writer, "/a/b/c")
			undo()
		})
		require.Equal(t, []string{
			"stale", "removed /a/b/c", "removed /a/b", "added /a/b", "added /a/b/c", "ready",
		}, r.events()[5:])
	})
}

// After a reconnect all unreadable nodes are read again, with one-shot watches, too.
func TestUnreadableNodeIsReadAgainAfterAReconnect(t *testing.T) {
	for name, old := range map[string]bool{"persistent watch": false, "one-shot watches": true} {
		t.Run(name, func(t *testing.T) {
			sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
				client := simClient(t, srv, random, "c0", srv.MemAddr())
				create(t, client, "/a/b/c", "/a/d/e")
				if old {
					forgetAllWatches(srv)
				}
				undoData, undoList := refuse(srv, fault.OpGetData, "/a/[b]"), refuse(srv, fault.OpGetChildren2, "/a/d")
				c := start(t, client, "/a")
				require.Equal(t, []string{"/a", "/a/b", "/a/d"}, paths(c, ""))
				reconnect(t, srv, c, func() {
					undoData()
					undoList()
				})
				require.Equal(t, []string{"/a", "/a/b", "/a/b/c", "/a/d", "/a/d/e"}, paths(c, ""))
				for at, n := range c.All() {
					require.NoError(t, n.Err, at)
				}
			})
		})
	}
}
