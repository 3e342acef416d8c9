package cache_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/cache"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// refuse has the server refuse requests of the client c0 for paths until undo is called. The client
// splits requests of several reads.
func refuse(srv *zktest.Server, op fault.Op, path string) (undo func()) {
	srv.On(fault.Match{Op: fault.OpMultiRead, Client: "c0", Times: fault.Always}, fault.Fail(zktest.NoAuth))
	return srv.On(fault.Match{Op: op, Path: path, Client: "c0", Times: fault.Always}, fault.Fail(zktest.NoAuth)).Remove
}

// set writes a node, and waits until the cache may have read it.
func set(t *testing.T, client *framework.Client, node, data string) {
	t.Helper()
	_, err := client.Set(t.Context(), node, []byte(data), -1)
	require.NoError(t, err)
	time.Sleep(time.Second)
}

// reconnect drops the connections of the client c0, has meanwhile called, and waits until the cache
// is current again.
func reconnect(t *testing.T, srv *zktest.Server, c *cache.Cache, meanwhile func()) {
	t.Helper()
	srv.Client("c0").Refuse(true)
	srv.Client("c0").Drop()
	meanwhile()
	srv.Client("c0").Refuse(false)
	time.Sleep(simTimeout / 2)
	require.NoError(t, c.WaitReady(t.Context()))
}

// A list of children that was refused is read with the next read of the node.
func TestRefusedListIsReadAgain(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		client := simClient(t, srv, random, "c0", srv.MemAddr())
		writer := simClient(t, srv, random, "writer", srv.MemAddr())
		create(t, writer, "/a/b")
		c := start(t, client, "/a")

		undo := refuse(srv, fault.OpGetChildren2, "/[a]")
		reconnect(t, srv, c, func() { create(t, writer, "/a/c") })
		n, _ := c.Get("/a")
		require.ErrorIs(t, n.Err, zk.ErrNoAuth)

		undo()
		set(t, writer, "/a", "new")
		n, _ = c.Get("/a")
		require.NoError(t, n.Err)
		require.Equal(t, []string{"/a", "/a/b", "/a/c"}, paths(c, ""))
	})
}

// Unreadable nodes count for the limit.
func TestLimitCountsUnreadableNodes(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		client := simClient(t, srv, random, "c0", srv.MemAddr())
		create(t, client, "/a/b", "/a/c")
		refuse(srv, fault.OpGetData, "/a/")
		c, err := cache.New(client, "/a", cache.WithLimit(2, 0))
		require.NoError(t, err)
		t.Cleanup(c.Close)
		require.ErrorIs(t, c.WaitReady(t.Context()), cache.ErrTooLarge)
	})
}
