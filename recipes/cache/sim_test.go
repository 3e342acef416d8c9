package cache_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/recipes/cache"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

const (
	simTimeout  = 6 * time.Second
	simFaults   = 25
	simChanges  = 60
	simDeepest  = 3
	simLate     = 8
	simChildren = 3
)

// Whatever happens to connections, sessions and servers, whatever the servers refuse, and whatever
// other clients change: the
// events of a cache are a history of the tree, and once nothing changes the cache is equal to it.
func TestSimulatedCache(t *testing.T) {
	for name, row := range map[string]struct {
		followers, seeds int
		compat           zktest.Compat
	}{
		"one server": {0, 80, zktest.V39}, "two": {1, 80, zktest.V39}, "three": {2, 80, zktest.V39},
		"one server of 3.8": {0, 40, zktest.V38}, "two of 3.8": {1, 40, zktest.V38},
	} {
		t.Run(name, func(t *testing.T) {
			sim.Run(t, row.seeds, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
				simulate(t, srv, random, row.followers)
			}, zktest.WithCompat(row.compat))
		})
	}
}

func simulate(t *testing.T, srv *zktest.Server, random *rand.Rand, followers int) {
	all := sim.Ensemble(srv, random, followers)
	var retries []framework.Option
	if random.IntN(2) == 0 {
		retries = append(retries, framework.WithRetry(retry.Once(simTimeout/4))) // the caches go on
		loseWatches(srv, random)
	}
	client := simClient(t, srv, random, "c0", all, retries...)
	writer := simClient(t, srv, random, "writer", all)
	forgetWatches(srv, random)
	if random.IntN(3) == 0 {
		forgetMultiReads(srv)
	}
	opts, want := randomOptions(random)
	h := newHistory(t, srv)
	c, err := cache.New(client, "/a", append(opts, cache.WithListener(h.add))...)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	chance, other := rand.New(rand.NewPCG(random.Uint64(), 2)), rand.New(rand.NewPCG(random.Uint64(), 3))
	var busy sync.WaitGroup
	busy.Go(func() { write(t, writer, chance) })
	refused, shared := random.IntN(2) == 0, random.IntN(2) == 0
	if refused {
		busy.Go(func() { refuseSome(srv, other) })
	}
	if shared {
		more := rand.New(rand.NewPCG(random.Uint64(), 4))
		busy.Go(func() { useWatches(t, client, more) })
	}
	if random.IntN(2) == 0 {
		later := rand.New(rand.NewPCG(random.Uint64(), 5))
		busy.Go(func() { holdEvents(srv.Client("c0"), later) })
	}
	opts, wantBelow := randomOptions(random)
	below, err := cache.New(client, "/a/n0", opts...)
	require.NoError(t, err)
	t.Cleanup(below.Close)
	var late []*cache.Cache
	times := rand.New(rand.NewPCG(random.Uint64(), 6))
	busy.Go(func() { late = startLate(t, client, times) })
	testlock.DisturbEnsemble(srv, random, 1, simFaults, simTimeout)
	busy.Wait()
	srv.ResetFaults()
	if refused {
		srv.Client("c0").Drop() // nodes are read again that could not be read
	}
	time.Sleep(3 * simTimeout)
	for _, c := range append(late, c, below) {
		ctx, cancel := context.WithTimeout(t.Context(), simTimeout)
		defer cancel()
		require.NoError(t, c.WaitReady(ctx))
	}
	expected := read(t, writer, "/a", want)
	require.Equal(t, expected, content(c))
	require.Equal(t, expected, h.content())
	whole := read(t, writer, "/a", scope{depth: -1, data: true})
	for _, c := range late {
		require.Equal(t, whole, content(c))
	}
	if wantBelow.depth >= 0 {
		wantBelow.depth++
	}
	require.Equal(t, read(t, writer, "/a/n0", wantBelow), content(below))
}

// startLate starts caches while there are faults, so that some of them cannot watch at first.
func startLate(t *testing.T, client *framework.Client, random *rand.Rand) (all []*cache.Cache) {
	for range simLate {
		time.Sleep(time.Duration(random.Int64N(int64(2 * simTimeout))))
		c, err := cache.New(client, "/a")
		require.NoError(t, err)
		t.Cleanup(c.Close)
		all = append(all, c)
	}
	return all
}

func simClient(
	t *testing.T, srv *zktest.Server, random *rand.Rand, name, servers string, opts ...framework.Option,
) *framework.Client {
	t.Helper()
	return testlock.Client(t, srv.Client(name), servers, random, simTimeout, opts...)
}

// forgetWatches lets the servers of some runs be older ones, without persistent watches, from the
// start or at some time.
func forgetWatches(srv *zktest.Server, random *rand.Rand) {
	switch random.IntN(4) {
	case 2:
		forgetWatchesAfter(srv, random.IntN(4))
	case 3:
		forgetAllWatches(srv)
	}
}

// loseWatches ends connections of the client c0 that set watches.
func loseWatches(srv *zktest.Server, random *rand.Rand) {
	for range simFaults {
		op := [...]fault.Op{fault.OpAddWatch, fault.OpSetWatches2}[random.IntN(2)]
		srv.On(fault.Match{Op: op, Client: "c0", Skip: random.IntN(simFaults)}, fault.DropBefore())
	}
}

// forgetMultiReads lets the servers not know requests of several reads.
func forgetMultiReads(srv *zktest.Server) {
	srv.On(fault.Match{Op: fault.OpMultiRead, Times: fault.Always}, fault.Fail(zktest.Unimplemented))
}

func forgetAllWatches(srv *zktest.Server) { forgetWatchesAfter(srv, 0) }

// forgetWatchesAfter lets the servers know persistent watches for some requests only.
func forgetWatchesAfter(srv *zktest.Server, after int) {
	for _, op := range []fault.Op{fault.OpAddWatch, fault.OpSetWatches2} {
		srv.On(fault.Match{Op: op, Skip: after, Times: fault.Always}, fault.Fail(zktest.Unimplemented))
	}
}

// useWatches sets and stops other watches of a client, on the paths of its caches.
func useWatches(t *testing.T, client *framework.Client, random *rand.Rand) {
	for range simFaults {
		time.Sleep(time.Duration(random.Int64N(int64(simTimeout / 4))))
		node := [...]string{"/a", "/a/n0", "/a/n1"}[random.IntN(3)]
		switch random.IntN(5) {
		case 0:
			_, _, _, _ = client.GetW(t.Context(), node)
		case 1:
			_, _, _ = client.ExistsW(t.Context(), node)
		case 2:
			_, _, _, _ = client.ChildrenW(t.Context(), node)
		case 3:
			w, err := client.AddWatch(t.Context(), node, framework.WatchNode, func(framework.WatchEvent) {})
			if err == nil {
				time.AfterFunc(time.Duration(random.Int64N(int64(simTimeout))), w.Stop)
			}
		default:
			opts, _ := randomOptions(random)
			c, err := cache.New(client, node, opts...)
			require.NoError(t, err)
			time.AfterFunc(time.Duration(random.Int64N(int64(simTimeout))), c.Close)
		}
	}
}

// holdEvents has events come late, many at a time, as to a process that was paused.
func holdEvents(client *zktest.Client, random *rand.Rand) {
	for range simFaults {
		time.Sleep(time.Duration(random.Int64N(int64(simTimeout / 8))))
		client.HoldEvents()
		time.Sleep(time.Duration(random.Int64N(int64(simTimeout / 8))))
		client.ReleaseEvents()
	}
}

// refuseSome has the servers refuse some reads of the client c0.
func refuseSome(srv *zktest.Server, random *rand.Rand) {
	ops := []fault.Op{fault.OpExists, fault.OpGetData, fault.OpGetChildren2, fault.OpMultiRead}
	for range simFaults {
		time.Sleep(time.Duration(random.Int64N(int64(simTimeout / 8))))
		m := fault.Match{Op: ops[random.IntN(len(ops))], Client: "c0", Path: "/a", Times: 1 + random.IntN(5)}
		action := fault.Fail(zktest.NoAuth)
		switch random.IntN(4) {
		case 0:
			action = fault.Fail(zktest.Throttled)
		case 1:
			action = fault.DropAfter()
		}
		srv.On(m, action)
	}
}

// scope says which nodes and what of them a cache holds.
type scope struct {
	depth int
	leave string // a name that is left out
	data  bool
}

func (s scope) covers(node string) bool {
	return (s.depth < 0 || strings.Count(node, "/")-1 <= s.depth) && (s.leave == "" || !strings.Contains(node, s.leave))
}

func randomOptions(random *rand.Rand) (opts []cache.Option, s scope) {
	s = scope{depth: random.IntN(5) - 1, data: true}
	if s.depth >= 0 {
		opts = append(opts, cache.WithDepth(s.depth))
	}
	if random.IntN(4) == 0 {
		s.leave = "n1"
		opts = append(opts, cache.WithFilter(func(node string) bool { return path.Base(node) != "n1" }))
	}
	if random.IntN(4) == 0 {
		s.data = false
		opts = append(opts, cache.WithoutData())
	}
	return opts, s
}

// write makes random changes below "/a", often some in quick succession. Some fail, for one reason or
// another.
func write(t *testing.T, client *framework.Client, random *rand.Rand) {
	for i := range simChanges {
		if random.IntN(3) == 0 {
			time.Sleep(time.Duration(random.Int64N(int64(simTimeout / 4))))
		}
		node := "/a"
		for range random.IntN(simDeepest + 1) {
			node = path.Join(node, fmt.Sprintf("n%d", random.IntN(simChildren)))
		}
		if random.IntN(6) == 0 {
			renew(t.Context(), client, node)
			continue
		}
		switch data := []byte(fmt.Sprint(i)); random.IntN(6) {
		case 0, 1, 2:
			_, _ = client.Create(t.Context(), node, data, framework.Parents())
		case 3, 4:
			_, _ = client.Set(t.Context(), node, data, -1)
		default:
			_ = deleteAll(t.Context(), client, node)
		}
	}
}

// renew changes a node and its child, and puts others in their places.
func renew(ctx context.Context, client *framework.Client, node string) {
	child := path.Join(node, "n0")
	_, _ = client.Set(ctx, child, []byte("a last time"), -1)
	_, _ = client.Set(ctx, node, []byte("a last time"), -1)
	_ = deleteAll(ctx, client, node)
	_, _ = client.Create(ctx, child, []byte("another"), framework.Parents())
}

// deleteAll deletes a node with everything below.
func deleteAll(ctx context.Context, client *framework.Client, node string) error {
	children, _, err := client.Children(ctx, node)
	for _, name := range children {
		err = errors.Join(err, deleteAll(ctx, client, path.Join(node, name)))
	}
	if err != nil {
		return err
	}
	return client.Delete(ctx, node, -1)
}

// version is a node at one time.
type version struct {
	czxid, mzxid int64
	data         string
}

// read reads what a cache holds.
func read(t *testing.T, client *framework.Client, node string, s scope) map[string]version {
	t.Helper()
	all := map[string]version{}
	data, stat, err := client.Get(t.Context(), node)
	if errors.Is(err, zk.ErrNoNode) || !s.covers(node) {
		return all
	}
	require.NoError(t, err)
	v := version{czxid: stat.Czxid}
	if s.data {
		v.mzxid, v.data = stat.Mzxid, string(data)
	}
	all[node] = v
	children, _, err := client.Children(t.Context(), node)
	require.NoError(t, err)
	for _, name := range children {
		for below, v := range read(t, client, path.Join(node, name), s) {
			all[below] = v
		}
	}
	return all
}
