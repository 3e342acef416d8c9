package cache_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/cache"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// create creates nodes with their names as data.
func create(t testing.TB, client *framework.Client, nodes ...string) {
	t.Helper()
	for _, node := range nodes {
		_, err := client.Create(testzk.Context(t), node, []byte(path.Base(node)), framework.Parents())
		require.NoError(t, err)
	}
}

// start makes a cache that is current.
func start(t testing.TB, client *framework.Client, root string, opts ...cache.Option) *cache.Cache {
	t.Helper()
	c, err := cache.New(client, root, opts...)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	require.NoError(t, c.WaitReady(testzk.Context(t)))
	return c
}

// paths returns the paths of the nodes in a cache, below the root.
func paths(c *cache.Cache, root string) (all []string) {
	for node := range c.All() {
		all = append(all, node[len(root):])
	}
	return all
}

// recorder records the events that a listener gets.
type recorder struct {
	mu  sync.Mutex
	all []string
}

func (r *recorder) add(e cache.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, e.String())
}

func (r *recorder) events() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.all...)
}

func TestCacheHoldsASubtreeAndFollowsIt(t *testing.T) {
	client, root := testzk.Connected(t, testzk.Connect()), testzk.Path(t)
	create(t, client, root+"/a/b", root+"/c")
	r := &recorder{}
	c := start(t, client, root, cache.WithListener(r.add))
	require.Equal(t, []string{"", "/a", "/a/b", "/c"}, paths(c, root))
	n, ok := c.Get(root + "/a/b")
	require.True(t, ok)
	require.Equal(t, "b", string(n.Data))
	names, ok := c.Children(root)
	require.True(t, ok)
	require.Equal(t, []string{"a", "c"}, names)
	require.Equal(t, 4, c.Len())

	create(t, client, root+"/d")
	_, err := client.Set(testzk.Context(t), root+"/d", []byte("new"), -1)
	require.NoError(t, err)
	testzk.Eventually(t, func() bool {
		n, ok := c.Get(root + "/d")
		return ok && string(n.Data) == "new"
	}, "the change is in the cache")
	require.NoError(t, client.Delete(testzk.Context(t), root+"/a/b", -1))
	testzk.Eventually(t, func() bool { _, ok := c.Get(root + "/a/b"); return !ok }, "the node is not in the cache")
	_, ok = c.Children(root + "/a/b")
	require.False(t, ok)
	testzk.Eventually(t, func() bool {
		all := r.events()
		return len(all) > 0 && all[len(all)-1] == "removed "+root+"/a/b"
	}, "the last event is the deletion")
	want := []string{
		"added " + root, "added " + root + "/a", "added " + root + "/c", "added " + root + "/a/b", "ready",
	}
	require.Equal(t, want, r.events()[:5])
}

func TestCacheOfAMissingNodeIsEmptyUntilItIsCreated(t *testing.T) {
	client, root := testzk.Connected(t, testzk.Connect()), testzk.Path(t)
	c := start(t, client, root)
	require.Zero(t, c.Len())
	create(t, client, root+"/a")
	testzk.Eventually(t, func() bool { return c.Len() == 2 }, "root and child are in the cache")
	require.NoError(t, client.Delete(testzk.Context(t), root+"/a", -1))
	require.NoError(t, client.Delete(testzk.Context(t), root, -1))
	testzk.Eventually(t, func() bool { return c.Len() == 0 }, "the cache is empty")
}

func TestDepthAndFilterBoundTheCache(t *testing.T) {
	client, root := testzk.Connected(t, testzk.Connect()), testzk.Path(t)
	create(t, client, root+"/a/b/c", root+"/x/b")
	not := func(name string) cache.Option {
		return cache.WithFilter(func(node string) bool { return path.Base(node) != name })
	}
	all := []string{"", "/a", "/a/b", "/a/b/c", "/x", "/x/b"}
	for name, row := range map[string]struct {
		opts []cache.Option
		want []string
	}{
		"the node":            {[]cache.Option{cache.WithDepth(0)}, []string{""}},
		"its children":        {[]cache.Option{cache.WithDepth(1)}, []string{"", "/a", "/x"}},
		"two levels":          {[]cache.Option{cache.WithDepth(2)}, []string{"", "/a", "/a/b", "/x", "/x/b"}},
		"all":                 {nil, all},
		"filter":              {[]cache.Option{not("b")}, []string{"", "/a", "/x"}},
		"filter at the top":   {[]cache.Option{not("a")}, []string{"", "/x", "/x/b"}},
		"filter of the root":  {[]cache.Option{not(path.Base(root))}, all},
		"filter with a depth": {[]cache.Option{not("a"), cache.WithDepth(1)}, []string{"", "/x"}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, row.want, paths(start(t, client, root, row.opts...), root))
		})
	}
}

func TestCacheWorksAtTheRootAndInANamespace(t *testing.T) {
	root := testzk.Path(t)
	whole := testzk.Connected(t, testzk.Connect())
	create(t, whole, root+"/a/b")
	c := start(t, whole.Namespace(root[1:]), "/")
	require.Equal(t, []string{"/", "/a", "/a/b"}, paths(c, ""))
	create(t, whole, root+"/a/c")
	testzk.Eventually(t, func() bool { _, ok := c.Get("/a/c"); return ok }, "the new node is in the cache")
	names, _ := c.Children("/")
	require.Equal(t, []string{"a"}, names)
}

func TestListenerAddedLaterBeginsWithTheContent(t *testing.T) {
	client, root := testzk.Connected(t, testzk.Connect()), testzk.Path(t)
	create(t, client, root+"/a")
	c := start(t, client, root)
	r := &recorder{}
	stop := c.Listen(r.add)
	testzk.Eventually(t, func() bool { return len(r.events()) == 3 }, "three events")
	require.Equal(t, []string{"added " + root, "added " + root + "/a", "ready"}, r.events())
	stop()
	other := &recorder{}
	c.Listen(other.add)
	create(t, client, root+"/b")
	testzk.Eventually(t, func() bool { return len(other.events()) == 4 }, "four events")
	require.Len(t, r.events(), 3)
}

func TestSlowListenerDelaysNothing(t *testing.T) {
	client, root := testzk.Connected(t, testzk.Connect()), testzk.Path(t)
	create(t, client, root+"/a")
	stuck := make(chan struct{})
	r := &recorder{}
	c := start(t, client, root, cache.WithListener(func(cache.Event) { <-stuck }), cache.WithListener(r.add))
	create(t, client, root+"/b")
	testzk.Eventually(t, func() bool { return c.Len() == 3 && len(r.events()) == 4 }, "the others go on")
	close(stuck)
}

func TestCacheWithoutDataIgnoresChangesOfData(t *testing.T) {
	client, root := testzk.Connected(t, testzk.Connect()), testzk.Path(t)
	create(t, client, root+"/a")
	r := &recorder{}
	c := start(t, client, root, cache.WithoutData(), cache.WithListener(r.add))
	n, _ := c.Get(root + "/a")
	require.Nil(t, n.Data)
	require.EqualValues(t, 1, n.Stat.DataLength)
	_, err := client.Set(testzk.Context(t), root+"/a", []byte("x"), -1)
	require.NoError(t, err)
	create(t, client, root+"/b")
	testzk.Eventually(t, func() bool { return len(r.events()) == 4 }, "four events")
	require.Equal(t, "added "+root+"/b", r.events()[3])
}

func TestCompressedDataIsDecompressed(t *testing.T) {
	client, root := testzk.Connected(t, testzk.Connect()), testzk.Path(t)
	create(t, client, root+"/plain")
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte("text"))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	for name, data := range map[string][]byte{"zip": b.Bytes(), "none": nil, "half": b.Bytes()[:b.Len()/2]} {
		_, err := client.Create(testzk.Context(t), root+"/"+name, data)
		require.NoError(t, err)
	}
	c := start(t, client, root, cache.WithCompression())
	n, _ := c.Get(root + "/zip")
	require.Equal(t, "text", string(n.Data))
	require.NoError(t, n.Err)
	n, _ = c.Get(root + "/none")
	require.Empty(t, n.Data)
	require.NoError(t, n.Err)
	for name, data := range map[string][]byte{"plain": []byte("plain"), "half": b.Bytes()[:b.Len()/2]} {
		n, _ = c.Get(root + "/" + name)
		require.Equal(t, data, n.Data, name)
		require.ErrorContains(t, n.Err, "decompress", name)
	}
}

func TestUnreadableNodeIsInTheCacheWithAnError(t *testing.T) {
	client, root := testzk.Connected(t, testzk.Connect()), testzk.Path(t)
	create(t, client, root+"/a")
	owner := testzk.Connected(t, testzk.Connect(), framework.WithAuth("digest", []byte("me:secret")))
	_, err := owner.Create(testzk.Context(t), root+"/b", []byte("hidden"),
		framework.ACL(zk.ACL{Perms: zk.PermAll, Scheme: "auth"}))
	require.NoError(t, err)
	create(t, owner, root+"/c")
	testzk.Everywhere(t)
	c := start(t, client, root)
	require.Equal(t, []string{"", "/a", "/b", "/c"}, paths(c, root))
	n, _ := c.Get(root + "/b")
	require.ErrorIs(t, n.Err, zk.ErrNoAuth)
	require.Nil(t, n.Data)
}

func TestLimitEndsTheCache(t *testing.T) {
	client, root := testzk.Connected(t, testzk.Connect()), testzk.Path(t)
	create(t, client, root+"/a", root+"/b")
	for name, row := range map[string]struct {
		opt  cache.Option
		want string
	}{
		"nodes": {cache.WithLimit(2, 0), "cache: too large: 3 nodes"},
		"bytes": {cache.WithLimit(0, int64(len(root)+2)), "the limit is "},
	} {
		c, err := cache.New(client, root, row.opt)
		require.NoError(t, err)
		t.Cleanup(c.Close)
		<-c.Done()
		require.ErrorIs(t, c.Err(), cache.ErrTooLarge, name)
		require.ErrorContains(t, c.Err(), row.want, name)
		require.ErrorIs(t, c.WaitReady(testzk.Context(t)), cache.ErrTooLarge, name)
	}
	start(t, client, root, cache.WithLimit(3, 1000))
}

func TestCloseEndsTheCacheAndKeepsItsContent(t *testing.T) {
	client, root := testzk.Connected(t, testzk.Connect()), testzk.Path(t)
	create(t, client, root+"/a")
	c := start(t, client, root)
	require.NoError(t, c.Err())
	c.Close()
	c.Close()
	<-c.Done()
	require.ErrorIs(t, c.Err(), cache.ErrClosed)
	require.Equal(t, 2, c.Len())
	require.ErrorIs(t, c.WaitReady(testzk.Context(t)), cache.ErrClosed)
	_, stale := c.StaleSince()
	require.True(t, stale)
	called := false
	c.Listen(func(cache.Event) { called = true })()
	require.False(t, called)
}

func TestCloseOfTheClientEndsTheCache(t *testing.T) {
	root := testzk.Path(t)
	client := testzk.Connected(t, testzk.Connect())
	c := start(t, client, root)
	require.NoError(t, client.Close())
	<-c.Done()
	require.ErrorIs(t, c.Err(), framework.ErrClosed)
	c.Close()
	_, err := cache.New(client, root)
	require.ErrorIs(t, err, framework.ErrClosed)
}

func TestListenerMayCloseTheCache(t *testing.T) {
	client, root := testzk.Connected(t, testzk.Connect()), testzk.Path(t)
	var c *cache.Cache
	made, closed := make(chan struct{}), make(chan struct{})
	c, err := cache.New(client, root, cache.WithDepth(0), cache.WithListener(func(cache.Event) {
		<-made
		c.Close()
		close(closed)
	}))
	require.NoError(t, err)
	close(made)
	<-closed
	require.ErrorIs(t, c.Err(), cache.ErrClosed)
}

func TestWaitReadyEndsWithItsContext(t *testing.T) {
	client := testzk.Client(t, "127.0.0.1:1")
	c, err := cache.New(client, "/a")
	require.NoError(t, err)
	t.Cleanup(c.Close)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, c.WaitReady(ctx), context.Canceled)
	_, stale := c.StaleSince()
	require.False(t, stale)
}

func TestNewRefusesBadArguments(t *testing.T) {
	client := testzk.Client(t, "127.0.0.1:1")
	for want, opt := range map[string]cache.Option{
		"option 0 is nil":                   nil,
		"WithDepth: -1 is negative":         cache.WithDepth(-1),
		"WithLimit: -1 nodes":               cache.WithLimit(-1, 0),
		"WithLimit: 0 nodes and -2 bytes":   cache.WithLimit(0, -2),
		"WithFilter: the function is nil":   cache.WithFilter(nil),
		"WithListener: the function is nil": cache.WithListener(nil),
	} {
		_, err := cache.New(client, "/a", opt)
		require.ErrorContains(t, err, want)
	}
	_, err := cache.New(client, "/a", cache.WithoutData(), cache.WithCompression())
	require.ErrorContains(t, err, "exclude each other")
	_, err = cache.New(client, "a")
	require.ErrorIs(t, err, framework.ErrInvalidPath)
	_, err = cache.New(&framework.Client{}, "/a")
	require.ErrorIs(t, err, framework.ErrZeroValue)
}

func TestKindsAndEventsAreText(t *testing.T) {
	require.Equal(t, "added", cache.Added.String())
	require.Equal(t, "kind 9", cache.Kind(9).String())
	require.Equal(t, "kind 0", cache.Kind(0).String())
	require.Equal(t, "removed /a", fmt.Sprint(cache.Event{Kind: cache.Removed, Old: &cache.Node{Path: "/a"}}))
	require.Equal(t, "stale", fmt.Sprint(cache.Event{Kind: cache.Stale}))
}

// Nothing is read at the instant at which the cache is made, and so a cache that is closed then was
// never current.
func TestCacheThatIsClosedAtOnceIsNotReady(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		client := simClient(t, srv, random, "a", srv.MemAddr())
		require.NoError(t, client.WaitConnected(t.Context()))
		for range 500 {
			c, err := cache.New(client, "/a")
			require.NoError(t, err)
			c.Close()
			require.ErrorIs(t, c.WaitReady(t.Context()), cache.ErrClosed)
		}
	})
}

// keepSetting has clients set nodes without a pause until the test ends.
func keepSetting(t *testing.T, srv *zktest.Server, random *rand.Rand, nodes ...string) {
	ctx, cancel := context.WithCancel(t.Context())
	for i, node := range nodes {
		writer := simClient(t, srv, random, fmt.Sprintf("w%d", i), srv.MemAddr())
		go func() {
			for ctx.Err() == nil {
				_, _ = writer.Set(ctx, node, nil, -1)
			}
		}()
	}
	t.Cleanup(cancel)
}

// becomesReady requires that a cache is current soon.
func becomesReady(t *testing.T, c *cache.Cache) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	require.NoError(t, c.WaitReady(ctx))
}

// A cache is ready when it has read everything once, even if nodes never stop to change.
func TestCacheOfABusyTreeBecomesReady(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		client := simClient(t, srv, random, "c0", srv.MemAddr())
		nodes := []string{"/a/c", "/a/d", "/a/e", "/a/f", "/a/g", "/a/h"}
		create(t, client, append(nodes, "/a/quiet/b")...)
		keepSetting(t, srv, random, nodes...)
		c, err := cache.New(client, "/a")
		require.NoError(t, err)
		t.Cleanup(c.Close)
		becomesReady(t, c)
		require.Equal(t, 9, c.Len())
	})
}

// The nodes below a node that keeps changing are read.
func TestBusyNodeDelaysNoNodesBelow(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		client := simClient(t, srv, random, "c0", srv.MemAddr())
		create(t, client, "/a/b/c")
		keepSetting(t, srv, random, slices.Repeat([]string{"/a/b"}, 64)...)
		c, err := cache.New(client, "/a")
		require.NoError(t, err)
		t.Cleanup(c.Close)
		becomesReady(t, c)
		srv.Client("c0").Drop()
		time.Sleep(time.Second)
		becomesReady(t, c)
	})
}

// A cache that is full handles no further answers.
func TestFullCacheHasOneNodeTooMany(t *testing.T) {
	client, root := testzk.Connected(t, testzk.Connect()), testzk.Path(t)
	for i := range 100 {
		create(t, client, fmt.Sprintf("%s/a%d", root, i))
	}
	for range 20 {
		c, err := cache.New(client, root, cache.WithLimit(10, 0))
		require.NoError(t, err)
		t.Cleanup(c.Close)
		<-c.Done()
		require.Equal(t, 11, c.Len())
	}
}
