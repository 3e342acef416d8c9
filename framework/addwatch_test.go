package framework_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// heard records the events of a watch.
type heard struct {
	mu  sync.Mutex
	all []framework.WatchEvent
}

func (h *heard) add(e framework.WatchEvent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, e)
}

func (h *heard) events() []framework.WatchEvent {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.all)
}

// lines returns the events as text, with paths below dir.
func (h *heard) lines(dir string) (lines []string) {
	for _, e := range h.events() {
		lines = append(lines, strings.TrimPrefix(e.Type.String(), "EventNode")+" "+strings.TrimPrefix(e.Path, dir))
	}
	return lines
}

// await waits until the events are as many as want, and compares them.
func (h *heard) await(t testing.TB, dir string, want ...string) {
	t.Helper()
	testzk.Eventually(t, func() bool { return len(h.events()) >= len(want) }, "want %q", want)
	require.Equal(t, want, h.lines(dir))
}

// watchFor is AddWatch that records the events.
func watchFor(t testing.TB, c *framework.Client, path string, mode framework.WatchMode) (
	*framework.PersistentWatch, *heard,
) {
	t.Helper()
	h := &heard{}
	w, err := c.AddWatch(testzk.Context(t), path, mode, h.add)
	require.NoError(t, err)
	require.NoError(t, w.Err())
	return w, h
}

// watchServers calls test with the connection string of the test binary's servers, and of servers of
// zktest that behave like 3.8 and 3.9.
func watchServers(t *testing.T, test func(t *testing.T, servers string)) {
	t.Run("servers", func(t *testing.T) { test(t, testzk.Connect()) })
	for name, compat := range map[string]zktest.Compat{"3.8": zktest.V38, "3.9": zktest.V39} {
		t.Run(name, func(t *testing.T) { test(t, zktest.Start(t, zktest.WithCompat(compat)).Addr()) })
	}
}

// made creates a node of the test.
func made(t testing.TB, servers string) string {
	t.Helper()
	path := testzk.Path(t)
	_, err := testzk.Connected(t, servers).Create(testzk.Context(t), path, nil, framework.Parents())
	require.NoError(t, err)
	testzk.Everywhere(t)
	return path
}

// change makes all changes that a watch of path could see, one by one. It returns when c's server has
// them.
func change(t testing.TB, o *testzk.Conn, c *framework.Client, path string) {
	t.Helper()
	for _, do := range []func() error{
		func() error { return create(o, path) },
		func() error { _, err := o.Set(path, nil, -1); return err },
		func() error { return create(o, path+"/kid") },
		func() error { _, err := o.Set(path+"/kid", nil, -1); return err },
		func() error { return o.Delete(path+"/kid", -1) },
		func() error { return o.Delete(path, -1) },
	} {
		require.NoError(t, do())
	}
	require.NoError(t, c.Sync(testzk.Context(t), path))
}

// The events of change for each mode.
var changesOf = map[framework.WatchMode][]string{
	framework.WatchNode: {
		"Created /n", "DataChanged /n", "ChildrenChanged /n", "ChildrenChanged /n", "Deleted /n",
	},
	framework.WatchTree: {
		"Created /n", "DataChanged /n", "Created /n/kid", "DataChanged /n/kid", "Deleted /n/kid", "Deleted /n",
	},
}

func TestPersistentWatchTellsAllChangesInOrder(t *testing.T) {
	watchServers(t, func(t *testing.T, servers string) {
		c, o := testzk.Connected(t, servers), testzk.ObserverOf(t, servers)
		for mode, events := range changesOf {
			dir := made(t, servers)
			w, h := watchFor(t, c, dir+"/n", mode)
			var want []string
			for range 3 {
				change(t, o, c, dir+"/n")
				want = append(want, events...)
				h.await(t, dir, want...)
			}
			for _, e := range h.events() {
				require.Equal(t, session(t, c).ID(), e.Session)
			}
			w.Stop()
		}
	})
}

// An event is in the queue of the watch before the answer to a request that shows the change.
func TestPersistentWatchIsToldBeforeTheAnswer(t *testing.T) {
	watchServers(t, func(t *testing.T, servers string) {
		c, dir := testzk.Connected(t, servers), made(t, servers)
		told := make(chan int64, 1)
		tell := func(e framework.WatchEvent) { told <- e.Zxid }
		_, err := c.AddWatch(testzk.Context(t), dir, framework.WatchTree, tell)
		require.NoError(t, err)
		for i := range 20 {
			r, err := c.CreateResult(testzk.Context(t), fmt.Sprintf("%s/%d", dir, i), nil)
			require.NoError(t, err)
			if zxid := <-told; zxid != 0 { // the server tells it
				require.Equal(t, r.Czxid, zxid)
			}
		}
	})
}

func TestPersistentWatchOfAnotherPathTellsNothing(t *testing.T) {
	watchServers(t, func(t *testing.T, servers string) {
		c, o, dir := testzk.Connected(t, servers), testzk.ObserverOf(t, servers), made(t, servers)
		_, other := watchFor(t, c, dir+"/nn", framework.WatchTree)
		_, below := watchFor(t, c, dir+"/n/kid", framework.WatchNode)
		_, all := watchFor(t, c, dir, framework.WatchTree)
		change(t, o, c, dir+"/n")
		all.await(t, dir, changesOf[framework.WatchTree]...)
		below.await(t, dir, "Created /n/kid", "DataChanged /n/kid", "Deleted /n/kid")
		require.NoError(t, create(o, dir+"/nn"))
		other.await(t, dir, "Created /nn")
	})
}

// Both modes on one path, in both orders, and one after the other has stopped.
func TestBothModesOfOnePath(t *testing.T) {
	modes := []framework.WatchMode{framework.WatchNode, framework.WatchTree}
	watchServers(t, func(t *testing.T, servers string) {
		for first := range 2 {
			c, o := testzk.Connected(t, servers), testzk.ObserverOf(t, servers)
			dir := made(t, servers)
			one, other := modes[first], modes[1-first]
			w, h1 := watchFor(t, c, dir+"/n", one)
			_, h2 := watchFor(t, c, dir+"/n", other)
			change(t, o, c, dir+"/n")
			h1.await(t, dir, changesOf[one]...)
			h2.await(t, dir, changesOf[other]...)
			w.Stop()
			require.NoError(t, c.Sync(testzk.Context(t), "/")) // behind what Stop has asked for
			change(t, o, c, dir+"/n")
			h2.await(t, dir, append(slices.Clone(changesOf[other]), changesOf[other]...)...)
			require.Len(t, h1.events(), len(changesOf[one]))
		}
	})
}

// firing is a change that fires a one-shot watch, after and before which the node exists.
var firing = map[string]func(o *testzk.Conn, path string) error{
	"data":     func(o *testzk.Conn, path string) error { _, err := o.Set(path, nil, -1); return err },
	"exists":   func(o *testzk.Conn, path string) error { _, err := o.Set(path, nil, -1); return err },
	"children": func(o *testzk.Conn, path string) error { return create(o, path+"/"+nextName()) },
}

var names struct {
	mu sync.Mutex
	n  int
}

func nextName() string {
	names.mu.Lock()
	defer names.mu.Unlock()
	names.n++
	return fmt.Sprintf("kid-%d", names.n)
}

// A persistent watch and one-shot watches of one path, set in every order, miss nothing: not when
// one-shot watches fire and are set again, and not when the persistent watch is stopped.
func TestPersistentAndOneShotWatchesShareAPath(t *testing.T) {
	watchServers(t, func(t *testing.T, servers string) {
		c, o := testzk.Connected(t, servers), testzk.ObserverOf(t, servers)
		for _, mode := range []framework.WatchMode{framework.WatchNode, framework.WatchTree} {
			for kind, watch := range watchers {
				for _, oneShotFirst := range []bool{false, true} {
					sharePath(t, servers, c, o, mode, kind, watch, oneShotFirst)
				}
			}
		}
	})
}

func sharePath(
	t *testing.T, servers string, c *framework.Client, o *testzk.Conn, mode framework.WatchMode, kind string,
	watch func(context.Context, operations, string) (*framework.Watch, error), oneShotFirst bool,
) {
	t.Helper()
	what := fmt.Sprintf("%s watch, %v, one-shot first: %v", kind, mode, oneShotFirst)
	path := made(t, servers)
	set := func() *framework.Watch {
		w, err := watch(testzk.Context(t), c, path)
		require.NoError(t, err)
		return w
	}
	require.NoError(t, c.Sync(testzk.Context(t), path))
	var one *framework.Watch
	if oneShotFirst {
		one = set()
	}
	persistent, h := watchFor(t, c, path, mode)
	if !oneShotFirst {
		one = set()
	}
	fires := func() {
		before := len(h.events())
		require.NoError(t, firing[kind](o, path))
		closes(t, one.Fired(), what)
		require.NoError(t, c.Sync(testzk.Context(t), path))
		testzk.Eventually(t, func() bool { return len(h.events()) > before }, "the persistent watch misses: %s", what)
	}
	for range 3 {
		fires()
		before := len(h.events())
		require.NoError(t, create(o, path+"/"+nextName())) // without a one-shot watch
		_, err := o.Set(path, nil, -1)
		require.NoError(t, err)
		testzk.Eventually(t, func() bool { return len(h.events()) == before+2 },
			"the persistent watch is lost: %s", what)
		require.NoError(t, c.Sync(testzk.Context(t), path))
		one = set()
	}
	persistent.Stop()
	require.NoError(t, firing[kind](o, path))
	closes(t, one.Fired(), what+", after the persistent one")
	one = set()
	require.NoError(t, firing[kind](o, path))
	closes(t, one.Fired(), what+", set after the persistent one")
	for _, e := range h.events() {
		require.NotEqual(t, zk.EventNotWatching, e.Type, what)
	}
}

// tells reports whether events are n changes, or tell that changes may be missing.
func tells(events []framework.WatchEvent, n int) bool {
	missing := func(e framework.WatchEvent) bool { return e.Type == zk.EventNotWatching }
	return len(events) >= n || slices.ContainsFunc(events, missing)
}

// The same while watches of both kinds are set, fired and stopped at the same time. A one-shot watch that
// is set while AddWatch is in progress may take the place of the persistent watch, and is read again later.
// Then the changes are told as missing.
func TestPersistentAndOneShotWatchesRace(t *testing.T) {
	watchServers(t, func(t *testing.T, servers string) {
		c, o, path := testzk.Connected(t, servers), testzk.ObserverOf(t, servers), made(t, servers)
		for i := range 60 {
			mode := framework.WatchMode(1 + i%2)
			var setting sync.WaitGroup
			ones := make([]*framework.Watch, len(watchers))
			for j, kind := range []string{"data", "exists", "children"} {
				setting.Go(func() {
					var err error
					if ones[j], err = watchers[kind](testzk.Context(t), c, path); err != nil {
						t.Error(err)
					}
				})
			}
			w, h := watchFor(t, c, path, mode)
			setting.Wait()
			if i%3 == 0 {
				w.Stop()
			}
			require.NoError(t, c.Sync(testzk.Context(t), path))
			before := len(h.events())
			require.NoError(t, create(o, path+"/"+nextName()))
			_, err := o.Set(path, nil, -1)
			require.NoError(t, err)
			for _, one := range ones {
				closes(t, one.Fired(), fmt.Sprintf("a one-shot watch, round %d", i))
			}
			if i%3 != 0 {
				testzk.Eventually(t, func() bool { return tells(h.events()[before:], 2) }, "round %d", i)
				w.Stop()
			}
		}
	})
}

func TestWatchesOfOnePathShareTheServersWatch(t *testing.T) {
	srv := zktest.Start(t)
	c, o := testzk.Connected(t, srv.Addr()), testzk.ObserverOf(t, srv.Addr())
	dir := made(t, srv.Addr())
	var all []*framework.PersistentWatch
	var records []*heard
	for range 5 {
		w, h := watchFor(t, c, dir+"/n", framework.WatchNode)
		all, records = append(all, w), append(records, h)
	}
	require.Equal(t, 1, srv.Requests()[fault.OpAddWatch])
	change(t, o, c, dir+"/n")
	for _, h := range records {
		h.await(t, dir, changesOf[framework.WatchNode]...)
	}
	for i, w := range all {
		require.Zero(t, srv.Requests()[fault.OpRemoveWatches], "after %d stops", i)
		w.Stop()
		w.Stop()
		<-w.Done()
		require.NoError(t, w.Err())
	}
	testzk.Eventually(t, func() bool { return srv.Requests()[fault.OpRemoveWatches] == 1 }, "the watch is not removed")
	change(t, o, c, dir+"/n")
	for _, h := range records {
		require.Len(t, h.events(), len(changesOf[framework.WatchNode]), "no event after Stop")
	}
}

func TestSlowWatchDelaysNothing(t *testing.T) {
	c, dir := testzk.Connected(t, testzk.Connect()), parent(t)
	blocked, release := make(chan struct{}), make(chan struct{})
	var slow heard
	_, err := c.AddWatch(testzk.Context(t), dir, framework.WatchTree, func(e framework.WatchEvent) {
		if len(slow.events()) == 0 {
			close(blocked)
			<-release
		}
		slow.add(e)
	})
	require.NoError(t, err)
	_, quick := watchFor(t, c, dir, framework.WatchTree)
	var want []string
	for i := range 100 {
		_, err := c.Create(testzk.Context(t), fmt.Sprintf("%s/%d", dir, i), nil)
		require.NoError(t, err)
		want = append(want, fmt.Sprintf("Created /%d", i))
	}
	<-blocked
	quick.await(t, dir, want...)
	require.Empty(t, slow.events())
	close(release)
	slow.await(t, dir, want...)
}

func TestPersistentWatchInANamespace(t *testing.T) {
	srv := zktest.Start(t)
	require.NoError(t, srv.Create("/root/ns", nil))
	require.NoError(t, srv.Create("/root/ns2", nil))
	c := testzk.Connected(t, srv.Addr()+"/root").Namespace("ns")
	_, h := watchFor(t, c, "/", framework.WatchTree)
	_, n := watchFor(t, c, "/n", framework.WatchNode)
	require.NoError(t, srv.Create("/root/ns2/n", nil))
	require.NoError(t, srv.Create("/root/ns/n/m", nil))
	h.await(t, "", "Created /n", "Created /n/m")
	n.await(t, "", "Created /n", "ChildrenChanged /n")
}

func TestPersistentWatchRefusesArguments(t *testing.T) {
	c := testzk.Connected(t, testzk.Connect())
	ignore := func(framework.WatchEvent) {}
	for _, add := range []func() (*framework.PersistentWatch, error){
		func() (*framework.PersistentWatch, error) {
			return c.AddWatch(testzk.Context(t), "a", framework.WatchNode, ignore)
		},
		func() (*framework.PersistentWatch, error) { return c.AddWatch(testzk.Context(t), "/a", 0, ignore) },
		func() (*framework.PersistentWatch, error) { return c.AddWatch(testzk.Context(t), "/a", 3, ignore) },
		func() (*framework.PersistentWatch, error) {
			return c.AddWatch(testzk.Context(t), "/a", framework.WatchNode, nil)
		},
		func() (*framework.PersistentWatch, error) {
			return (&framework.Client{}).AddWatch(testzk.Context(t), "/a", framework.WatchNode, ignore)
		},
	} {
		w, err := add()
		failed(t, err, framework.NotApplied)
		require.Nil(t, w)
	}
}

// In virtual time, because Close waits for a second at most.
func TestPersistentWatchEndsWithItsClient(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client("a").DialContext))
		const path = "/a"
		require.NoError(t, srv.Create(path, nil))
		w, h := watchFor(t, c, path, framework.WatchTree)
		_, err := c.Set(testzk.Context(t), path, nil, -1)
		require.NoError(t, err)
		require.NoError(t, c.Close())
		<-w.Done()
		require.ErrorIs(t, w.Err(), framework.ErrClosed)
		require.Equal(t, []string{"DataChanged "}, h.lines(path), "Close waits for the events before it")
		w.Stop()
		_, err = c.AddWatch(testzk.Context(t), path, framework.WatchNode, h.add)
		failed(t, err, framework.NotApplied, framework.ErrClosed)
	})
}

// A server that does not know persistent watches is asked once, because it closes the connection.
func TestPersistentWatchesOfAnOldServer(t *testing.T) {
	s := startOldServer(t)
	c := testzk.Connected(t, s.listener.Addr().String())
	for range 3 {
		_, err := c.AddWatch(testzk.Context(t), "/a", framework.WatchTree, func(framework.WatchEvent) {})
		failed(t, err, framework.NotApplied, framework.ErrUnimplemented)
	}
	require.Equal(t, 1, s.count(fault.OpAddWatch))
	require.Zero(t, s.count(fault.OpSetWatches2))
	_, err := c.Create(testzk.Context(t), "/a", nil)
	require.NoError(t, err)
}

// A watch that a later server does not know ends, and the client connects without it.
func TestPersistentWatchEndsAtAServerThatDoesNotKnowIt(t *testing.T) {
	srv := zktest.Start(t)
	c := testzk.Connected(t, srv.Addr())
	w, h := watchFor(t, c, "/", framework.WatchTree)
	_, err := c.Create(testzk.Context(t), "/told", nil) // the function has a goroutine, which must end
	require.NoError(t, err)
	testzk.Eventually(t, func() bool { return len(h.events()) > 0 }, "the event is told")
	srv.On(fault.Match{Op: fault.OpSetWatches2, Times: fault.Always}, fault.Fail(zktest.Unimplemented))
	for _, s := range srv.Sessions() {
		s.Drop()
	}
	<-w.Done()
	require.ErrorIs(t, w.Err(), framework.ErrUnimplemented)
	_, err = c.Create(testzk.Context(t), "/a", nil)
	require.NoError(t, err)
}

func TestAbandonedAddWatchLeavesNoWatch(t *testing.T) {
	srv := zktest.Start(t)
	c := testzk.Connected(t, srv.Addr())
	held := srv.On(fault.Match{Op: fault.OpAddWatch}, fault.Hold())
	ctx, cancel := context.WithCancel(testzk.Context(t))
	go func() {
		_ = held.Wait(ctx)
		cancel()
	}()
	_, err := c.AddWatch(ctx, "/a", framework.WatchTree, func(framework.WatchEvent) { t.Error("an event") })
	require.ErrorIs(t, err, context.Canceled)
	held.Release()
	testzk.Eventually(t, func() bool { return srv.Requests()[fault.OpRemoveWatches] == 1 }, "the watch is not removed")
	require.NoError(t, srv.Create("/a", nil))
	require.NoError(t, c.Sync(testzk.Context(t), "/"))
	words, err := srv.Command("wchs")
	require.NoError(t, err)
	require.Contains(t, words, "Total watches:0")
}
