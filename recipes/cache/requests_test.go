package cache_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/recipes/cache"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// reads returns what do made the client c0 read, without the heartbeats.
func reads(srv *zktest.Server, do func()) map[string]int {
	counts := map[string]int{}
	before := len(srv.Trace().Entries)
	do()
	synctest.Wait()
	for _, e := range srv.Trace().Entries[before:] {
		if e.Client != "c0" {
			continue
		}
		switch e.What {
		case "getData", "exists", "getChildren2":
			counts[e.What+" "+e.Path]++
		case "multiRead":
			counts[e.What]++
		}
	}
	return counts
}

// A change costs one read. After a reconnect every node is checked, and only data and lists that
// have changed are read. So it is with servers that do not know reads that share a request.
func TestCacheReadsWhatHasChanged(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		forgetMultiReads(srv)
		client := simClient(t, srv, random, "c0", srv.MemAddr())
		writer := simClient(t, srv, random, "writer", srv.MemAddr())
		for i := range 3 {
			create(t, writer, fmt.Sprintf("/a/b%d/c", i))
		}
		var c interface{ WaitReady(context.Context) error }
		require.Equal(t, map[string]int{
			"getData /a": 1, "getChildren2 /a": 1,
			"getData /a/b0": 1, "getData /a/b1": 1, "getData /a/b2": 1,
			"getChildren2 /a/b0": 1, "getChildren2 /a/b1": 1, "getChildren2 /a/b2": 1,
			"getData /a/b0/c": 1, "getData /a/b1/c": 1, "getData /a/b2/c": 1,
			"multiRead": 1, // after which the client knows
		}, reads(srv, func() { c = start(t, client, "/a") }))

		change := func() {
			_, err := writer.Set(t.Context(), "/a/b1/c", []byte("new"), -1)
			require.NoError(t, err)
			create(t, writer, "/a/b2/d")
			require.NoError(t, writer.Delete(t.Context(), "/a/b0/c", -1))
			time.Sleep(time.Second)
		}
		require.Equal(t, map[string]int{"getData /a/b1/c": 1, "getData /a/b2/d": 1, "getData /a/b0/c": 1},
			reads(srv, change))
		_, err := writer.Create(t.Context(), "/a/b0/c", nil)
		require.NoError(t, err)
		time.Sleep(time.Second)

		all := map[string]int{
			"exists /a": 1, "exists /a/b0": 1, "exists /a/b1": 1, "exists /a/b2": 1,
			"exists /a/b0/c": 1, "exists /a/b1/c": 1, "exists /a/b2/c": 1, "exists /a/b2/d": 1,
			"getChildren2 /a/b0": 1, "getChildren2 /a/b2": 1, // their children have changed since they were listed
		}
		require.Equal(t, all, reads(srv, func() {
			srv.Client("c0").Drop()
			time.Sleep(time.Second)
			require.NoError(t, c.WaitReady(t.Context()))
		}))
		delete(all, "getChildren2 /a/b0")
		delete(all, "getChildren2 /a/b2")
		all["getData /a/b1/c"], all["getChildren2 /a/b1"], all["getData /a/b1/e"] = 1, 1, 1
		require.Equal(t, all, reads(srv, func() {
			srv.Client("c0").Cut()
			_, err := writer.Set(t.Context(), "/a/b1/c", []byte("newer"), -1)
			require.NoError(t, err)
			create(t, writer, "/a/b1/e")
			srv.Client("c0").Heal()
			srv.Client("c0").Drop()
			time.Sleep(time.Second)
			require.NoError(t, c.WaitReady(t.Context()))
		}))
	})
}

// Reads share requests: those of a level of the tree at the start, and all after a reconnect.
func TestReadsShareRequests(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		client := simClient(t, srv, random, "c0", srv.MemAddr())
		writer := simClient(t, srv, random, "writer", srv.MemAddr())
		for i := range 100 {
			create(t, writer, fmt.Sprintf("/a/b%d/c", i))
		}
		var c *cache.Cache
		counts := reads(srv, func() { c = start(t, client, "/a") })
		require.Equal(t, 201, c.Len())
		require.LessOrEqual(t, counts["multiRead"], 16, "%v", counts) // 300 reads, up to 64 in each
		delete(counts, "multiRead")
		require.Equal(t, map[string]int{"getData /a": 1, "getChildren2 /a": 1}, counts)

		counts = reads(srv, func() { reconnect(t, srv, c, func() { create(t, writer, "/a/b1/d") }) })
		require.Equal(t, 202, c.Len())
		require.LessOrEqual(t, counts["multiRead"], 5, "each node once, and one list: %v", counts)
		delete(counts, "multiRead")
		require.LessOrEqual(t, len(counts), 4, "%v", counts)
	})
}

// A request of several reads that fails is split. After a reconnect only the Stat of large data is
// read.
func TestSharedRequestIsSplit(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		client := simClient(t, srv, random, "c0", srv.MemAddr())
		const nodes = 20
		for i := range nodes {
			require.NoError(t, srv.Load(map[string]string{fmt.Sprintf("/a/b%d", i): strings.Repeat("x", 100<<10)}))
		}
		srv.On(fault.Match{Op: fault.OpMultiRead, Times: fault.Always}, fault.DropBefore())
		c := start(t, client, "/a")
		require.Equal(t, nodes+1, c.Len())
		srv.ResetFaults()
		counts := reads(srv, func() { reconnect(t, srv, c, func() {}) })
		for i := range nodes {
			require.Equal(t, 1, counts[fmt.Sprintf("exists /a/b%d", i)], "%v", counts)
		}
		require.Zero(t, counts["multiRead"])
	})
}

// Without persistent watches a change costs a read of the node, and of its parent's list.
func TestCacheOnAnOlderServerReadsWhatHasChanged(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		srv.On(fault.Match{Op: fault.OpAddWatch, Times: fault.Always}, fault.Fail(zktest.Unimplemented))
		client := simClient(t, srv, random, "c0", srv.MemAddr())
		create(t, client, "/a/b", "/a/c")
		c := start(t, client, "/a")
		require.Equal(t, map[string]int{"getData /a/b": 1}, reads(srv, func() {
			_, err := client.Set(t.Context(), "/a/b", []byte("new"), -1)
			require.NoError(t, err)
			time.Sleep(time.Second)
		}))
		want := map[string]int{"getData /a": 1, "getChildren2 /a": 1, "getData /a/d": 1, "getChildren2 /a/d": 1}
		require.Equal(t, want, reads(srv, func() {
			_, err := client.Create(t.Context(), "/a/d", nil)
			require.NoError(t, err)
			time.Sleep(time.Second)
		}))
		require.Equal(t, 4, c.Len())
	})
}

// Nodes that are gone leave no watches.
func TestDeletedNodesLeaveNoWatches(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		forgetAllWatches(srv)
		client := simClient(t, srv, random, "c0", srv.MemAddr())
		create(t, client, "/a")
		c := start(t, client, "/a", cache.WithoutData())
		watches := func() string {
			time.Sleep(time.Second)
			words, err := srv.Command("wchp")
			require.NoError(t, err)
			return words
		}
		before := watches()
		create(t, client, "/a/b")
		require.Contains(t, watches(), "/a/b\n")
		require.NoError(t, client.Delete(t.Context(), "/a/b", -1))
		require.Equal(t, before, watches())
		require.Equal(t, 1, c.Len())
	})
}

// A node that was deleted and created again delays the nodes below it until it is read.
func TestNodeBelowAReplacedNodeIsToldOnce(t *testing.T) {
	sim.Run(t, 10, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		client := simClient(t, srv, random, "c0", srv.MemAddr())
		h := newHistory(t, srv)
		require.NoError(t, srv.Load(map[string]string{"/a/b": ""}))
		c := start(t, client, "/a", cache.WithListener(h.add))
		for range 50 {
			srv.On(fault.Match{Op: fault.OpGetData, Path: "/a/[b]", Skip: random.IntN(3)}, fault.Fail(zktest.Throttled))
			require.NoError(t, srv.Delete("/a/b"))
			require.NoError(t, srv.Load(map[string]string{"/a/b/d": ""}))
			time.Sleep(time.Duration(random.Int64N(int64(8 * time.Millisecond))))
			require.NoError(t, srv.Delete("/a/b/d"))
			require.NoError(t, srv.Delete("/a/b"))
			require.NoError(t, srv.Load(map[string]string{"/a/b/c": ""}))
			time.Sleep(time.Second)
			require.NoError(t, srv.Delete("/a/b/c"))
		}
		srv.ResetFaults()
		time.Sleep(time.Minute)
		require.Equal(t, []string{"/a", "/a/b"}, paths(c, ""))
	})
}

// Without persistent watches, too, the creation of the first node is noticed.
func TestCacheOnAnOlderServerNoticesItsRoot(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		forgetAllWatches(srv)
		client := simClient(t, srv, random, "c0", srv.MemAddr())
		c := start(t, client, "/a")
		require.Zero(t, c.Len())
		require.NoError(t, srv.Load(map[string]string{"/a/b": ""}))
		time.Sleep(time.Second)
		require.Equal(t, []string{"/a", "/a/b"}, paths(c, ""))
	})
}

// The same holds for a node that was deleted and created again while the connection was lost. Its
// read is refused for a while, and the nodes below it wait.
func TestNodeBelowANodeThatWasReplacedInAnOutageIsToldOnce(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		forgetMultiReads(srv)
		client := simClient(t, srv, random, "c0", srv.MemAddr())
		h := newHistory(t, srv)
		require.NoError(t, srv.Load(map[string]string{"/a/b/c": "old"}))
		c := start(t, client, "/a", cache.WithListener(h.add))
		for _, op := range []fault.Op{fault.OpGetData, fault.OpExists} {
			reconnect(t, srv, c, func() {
				require.NoError(t, srv.Delete("/a/b/c"))
				require.NoError(t, srv.Delete("/a/b"))
				require.NoError(t, srv.Load(map[string]string{"/a/b/c": "new"}))
				srv.On(fault.Match{Op: op, Path: "/a/[b]", Client: "c0"}, fault.Fail(zktest.Throttled))
			})
			require.Equal(t, []string{"/a", "/a/b", "/a/b/c"}, paths(c, ""))
			require.Equal(t, content(c), h.content())
		}
	})
}
