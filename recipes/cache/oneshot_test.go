package cache_test

import (
	"fmt"
	"math/rand/v2"
	"path"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/recipes/cache"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// older runs a test in virtual time on a server without persistent watches.
func older(t *testing.T, test func(t *testing.T, srv *zktest.Server, random *rand.Rand)) {
	t.Helper()
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		forgetAllWatches(srv)
		test(t, srv, random)
	})
}

// watches returns how many watches the server has.
func watches(t *testing.T, srv *zktest.Server) int {
	t.Helper()
	words, err := srv.Command("wchp")
	require.NoError(t, err)
	return strings.Count(words, "\t") // a line for each session below each path
}

// A closed cache is not in memory any more, whether or not its watches have fired, and they are not
// set again on the next connection.
func TestClosedCacheOnAnOlderServerIsForgotten(t *testing.T) {
	older(t, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		client := simClient(t, srv, random, "c0", srv.MemAddr())
		for i := range 10 {
			create(t, client, fmt.Sprintf("/a/b%d/c", i))
		}
		other := start(t, client, "/a/b0", cache.WithDepth(0))
		c, err := cache.New(client, "/a")
		require.NoError(t, err)
		require.NoError(t, c.WaitReady(t.Context()))
		kept := weak.Make(c)
		require.Equal(t, 21, watches(t, srv))
		_, err = client.Set(t.Context(), "/a/b1", nil, -1)
		require.NoError(t, err)
		time.Sleep(time.Second)
		srv.Client("c0").Drop() // the root is read again
		time.Sleep(time.Second)
		c.Close()
		c = nil
		synctest.Wait() // a goroutine of the cache may still be about to end
		for range 3 {
			runtime.GC()
		}
		require.Nil(t, kept.Value(), "the watches keep the cache in memory")
		srv.Client("c0").Drop()
		time.Sleep(time.Second)
		require.Equal(t, 1, watches(t, srv))
		set(t, client, "/a/b0", "new")
		n, _ := other.Get("/a/b0")
		require.Equal(t, "new", string(n.Data))
	})
}

// A cache that is closed while it reads leaves no watches either.
func TestCacheThatIsClosedWhileItReadsLeavesNoWatches(t *testing.T) {
	sim.Run(t, 20, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		forgetAllWatches(srv)
		client := simClient(t, srv, random, "c0", srv.MemAddr())
		for i := range 20 {
			create(t, client, fmt.Sprintf("/a/b%d/c", i))
		}
		late := fault.Match{Client: "c0", Op: fault.OpGetData, Path: "/a/", Times: fault.Always}
		srv.On(late, fault.Delay(50*time.Millisecond))
		c, err := cache.New(client, "/a")
		require.NoError(t, err)
		for c.Len() == 0 {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Duration(random.IntN(40)) * 25 * time.Millisecond) // an answer may come at this moment
		c.Close()
		time.Sleep(time.Minute)
		srv.Client("c0").Drop()
		time.Sleep(time.Second)
		require.Zero(t, watches(t, srv))
	})
}

// Nor does a cache that is full before all its reads are answered.
func TestFullCacheLeavesNoWatches(t *testing.T) {
	older(t, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		client := simClient(t, srv, random, "c0", srv.MemAddr())
		for i := range 100 {
			create(t, client, fmt.Sprintf("/a/b%d", i))
		}
		c, err := cache.New(client, "/a", cache.WithLimit(10, 0))
		require.NoError(t, err)
		<-c.Done()
		time.Sleep(time.Second)
		srv.Client("c0").Drop()
		time.Sleep(time.Second)
		require.Zero(t, watches(t, srv))
	})
}

// slow is a listener that delays what follows the end of a session.
type slow time.Duration

func (s slow) LifetimeEnded() (cleanUp, report func()) {
	time.Sleep(time.Duration(s))
	return nil, nil
}

// In another session the cache is ready when it has read everything, although the watches of the
// last session may not have been reported yet.
func TestCacheOnAnOlderServerReadsEverythingInAnotherSession(t *testing.T) {
	older(t, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		client := simClient(t, srv, random, "c0", srv.MemAddr())
		create(t, client, "/a/b", "/a/c")
		c := start(t, client, "/a")
		session, err := client.Session(t.Context())
		require.NoError(t, err)
		require.True(t, bridge.OfSession(session).Lifetime().Notify(slow(time.Minute)))
		testlock.Expire(t, srv, "c0")
		require.NoError(t, srv.Set("/a/b", []byte("new")))
		time.Sleep(simTimeout)
		require.NoError(t, c.WaitReady(t.Context()))
		n, _ := c.Get("/a/b")
		require.Equal(t, "new", string(n.Data))
	})
}

// The cache is busy while its client gets the answer to a read of the root, the event that the root
// was deleted, and the answer to a read of a child of the next root. The child is told once, below the
// next root.
func TestEventOfAOneShotWatchIsHandledBeforeLaterAnswers(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		forgetAllWatches(srv)
		client := simClient(t, srv, random, "c0", srv.MemAddr())
		h := newHistory(t, srv)
		require.NoError(t, srv.Load(map[string]string{"/a": "", "/a/b": "", "/a/x": ""}))
		var once sync.Once
		busy, goOn := make(chan struct{}), make(chan struct{})
		keep := func(node string) bool {
			if path.Base(node) == "gate" {
				once.Do(func() { close(busy); <-goOn })
			}
			return true
		}
		c := start(t, client, "/a", cache.WithFilter(keep), cache.WithListener(h.add))

		list := srv.On(fault.Match{Op: fault.OpGetChildren2, Client: "c0", Path: "/a/x"}, fault.Hold())
		require.NoError(t, srv.Create("/a/x/gate", nil))
		require.NoError(t, list.Wait(t.Context()))
		require.NoError(t, srv.Set("/a", []byte("new")))
		require.NoError(t, srv.Set("/a/b", []byte("new")))
		time.Sleep(time.Second) // the reads of both wait behind the list
		child := srv.On(fault.Match{Op: fault.OpGetData, Client: "c0", Path: "/a/b"}, fault.Hold())
		list.Release()
		require.NoError(t, child.Wait(t.Context()))
		<-busy
		for _, node := range []string{"/a/x/gate", "/a/x", "/a/b", "/a"} {
			require.NoError(t, srv.Delete(node))
		}
		require.NoError(t, srv.Load(map[string]string{"/a": "", "/a/b": ""}))
		child.Release()
		time.Sleep(time.Second) // the answer is on its way
		close(goOn)
		time.Sleep(time.Second)
		require.NoError(t, c.WaitReady(t.Context()))
		require.Equal(t, read(t, client, "/a", scope{depth: -1, data: true}), content(c))
	})
}

// Data and children of the root change, and so its watches are used up when it is deleted and created
// again. The answer to the read of a child comes before that to the read of the root. The child is told
// once, below the next root.
func TestOneShotWatchesAreUsedUpBeforeANodeIsReplaced(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		forgetAllWatches(srv)
		client := simClient(t, srv, random, "c0", srv.MemAddr())
		h := newHistory(t, srv)
		require.NoError(t, srv.Load(map[string]string{"/a": "", "/a/b": ""}))
		c := start(t, client, "/a", cache.WithListener(h.add))
		srv.Client("c0").HoldEvents()
		require.NoError(t, srv.Set("/a/b", []byte("new"))) // is read first
		require.NoError(t, srv.Set("/a", []byte("new")))
		require.NoError(t, srv.Create("/a/x", nil))
		for _, node := range []string{"/a/x", "/a/b", "/a"} {
			require.NoError(t, srv.Delete(node))
		}
		require.NoError(t, srv.Load(map[string]string{"/a": "", "/a/b": ""}))
		srv.Client("c0").ReleaseEvents()
		time.Sleep(time.Second)
		require.NoError(t, c.WaitReady(t.Context()))
		require.Equal(t, read(t, client, "/a", scope{depth: -1, data: true}), content(c))
	})
}

// A server that does not know persistent watches any more, and the loss of the connection to it, come while the
// cache is busy. Whichever it handles first, it knows that it has no connection.
func TestConnectionIsLostBeforeOneShotWatches(t *testing.T) {
	for range 20 { // the order of the two is a matter of chance
		sim.Once(t, 1, lossBeforeOneShot)
	}
}

func lossBeforeOneShot(t *testing.T, srv *zktest.Server, random *rand.Rand) {
	client := simClient(t, srv, random, "c0", srv.MemAddr())
	require.NoError(t, srv.Load(map[string]string{"/a": "", "/a/b": ""}))
	var once sync.Once
	busy, goOn := make(chan struct{}), make(chan struct{})
	c := start(t, client, "/a", cache.WithFilter(func(node string) bool {
		if path.Base(node) == "gate" {
			once.Do(func() { close(busy); <-goOn })
		}
		return true
	}))
	require.NoError(t, srv.Create("/a/gate", nil))
	<-busy
	rule := srv.On(fault.Match{Op: fault.OpSetWatches2, Times: fault.Always}, fault.Fail(zktest.Unimplemented))
	srv.Client("c0").Drop()
	require.NoError(t, rule.Wait(t.Context()))
	time.Sleep(100 * time.Millisecond)
	srv.Client("c0").Refuse(true)
	srv.Client("c0").Drop()
	time.Sleep(100 * time.Millisecond)
	close(goOn)
	time.Sleep(time.Second)
	require.False(t, client.State().IsConnected())
	require.NoError(t, srv.Set("/a/b", []byte("new")))
	_, stale := c.StaleSince()
	require.True(t, stale, "the cache is current although there is no connection")
	srv.Client("c0").Refuse(false)
	becomesReady(t, c)
	n, _ := c.Get("/a/b")
	require.Equal(t, "new", string(n.Data))
}
