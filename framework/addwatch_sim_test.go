package framework_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// treeView keeps the mzxid of each node of a tree, as a cache would: it reads each node of which it
// hears, and everything after events may have been missed.
type treeView struct {
	c    *framework.Client
	root string

	busy chan struct{} // has a value while a goroutine reads

	mu       sync.Mutex
	nodes    map[string]int64
	sessions []int64 // of the events that may follow missed ones
}

func viewOf(t testing.TB, c *framework.Client, root string) *treeView {
	t.Helper()
	v := &treeView{c: c, root: root, nodes: map[string]int64{}, busy: make(chan struct{}, 1)}
	add := func() error { _, err := c.AddWatch(t.Context(), root, framework.WatchTree, v.hear); return err }
	for err := add(); err != nil; err = add() { // the retry policy may be exhausted
		require.True(t, framework.IsTransient(err), "%v", err)
	}
	v.busy <- struct{}{}
	v.walk(root)
	<-v.busy
	return v
}

func (v *treeView) hear(e framework.WatchEvent) {
	v.busy <- struct{}{}
	defer func() { <-v.busy }()
	if e.Type != zk.EventNotWatching {
		v.read(e.Path)
		return
	}
	v.mu.Lock()
	v.sessions = append(v.sessions, e.Session)
	clear(v.nodes)
	v.mu.Unlock()
	v.walk(v.root)
}

// insist repeats a read until it is answered. It reports false if there is no such node, or if the
// client is closed.
func (v *treeView) insist(read func(context.Context) error) bool {
	for {
		err := read(context.Background())
		switch {
		case err == nil:
			return true
		case errors.Is(err, zk.ErrNoNode), errors.Is(err, framework.ErrClosed):
			return false
		}
		time.Sleep(time.Second)
	}
}

func (v *treeView) read(path string) {
	var stat *zk.Stat
	there := v.insist(func(ctx context.Context) (err error) { stat, err = v.c.Exists(ctx, path); return err })
	v.mu.Lock()
	defer v.mu.Unlock()
	if delete(v.nodes, path); there {
		v.nodes[path] = stat.Mzxid
	}
}

func (v *treeView) walk(path string) {
	v.read(path)
	var kids []string
	v.insist(func(ctx context.Context) (err error) { kids, _, err = v.c.Children(ctx, path); return err })
	for _, kid := range kids {
		v.walk(path + "/" + kid)
	}
}

func (v *treeView) now() map[string]int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return maps.Clone(v.nodes)
}

// treeOf returns what a view must show.
func treeOf(t testing.TB, srv *zktest.Server, root string) map[string]int64 {
	t.Helper()
	nodes := map[string]int64{}
	for line := range strings.Lines(srv.Tree()) {
		path, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if path == root || strings.HasPrefix(path, root+"/") {
			stat, err := srv.Stat(path)
			require.NoError(t, err)
			nodes[path] = stat.Mzxid
		}
	}
	return nodes
}

// agrees waits until a view shows the tree.
func (v *treeView) agrees(t testing.TB, srv *zktest.Server, what string) {
	t.Helper()
	want := treeOf(t, srv, v.root)
	for range 60 {
		synctest.Wait()
		if maps.Equal(want, v.now()) {
			return
		}
		time.Sleep(time.Second)
	}
	require.Equal(t, want, v.now(), what)
}

// alter makes a random change below root.
func alter(srv *zktest.Server, random *rand.Rand, root string) {
	path := fmt.Sprintf("%s/%d", root, random.IntN(4))
	if random.IntN(2) == 0 {
		path += fmt.Sprintf("/%d", random.IntN(3))
	}
	switch random.IntN(3) {
	case 0:
		_ = srv.Create(path, nil)
	case 1:
		_ = srv.Set(path, nil)
	default:
		_ = srv.Delete(path)
	}
}

var compats = map[string]zktest.Compat{"3.8": zktest.V38, "3.9": zktest.V39}

// onEachVersion runs a scenario on a server of each version.
func onEachVersion(t *testing.T, scenario func(t *testing.T, srv *zktest.Server)) {
	for name, compat := range compats {
		t.Run(name, func(t *testing.T) {
			sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) { scenario(t, srv) },
				zktest.WithCompat(compat))
		})
	}
}

// adding begins to watch a tree. The error of AddWatch is sent.
func adding(t testing.TB, c *framework.Client, path string) (*heard, <-chan error) {
	h, added := &heard{}, make(chan error, 1)
	go func() {
		_, err := c.AddWatch(t.Context(), path, framework.WatchTree, h.add)
		added <- err
	}()
	return h, added
}

// On each connection the watch is requested before everything else but what proves the connection.
func TestPersistentWatchIsSetFirstOnAConnection(t *testing.T) {
	onEachVersion(t, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.Load(map[string]string{"/d/a": "", "/d/b": ""}))
		client := srv.Client("a")
		c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(client.DialContext))
		v := viewOf(t, c, "/d")
		first := session(t, c).ID()
		for _, expire := range []bool{false, true, false} {
			srv.ResetCounts()
			rule := srv.On(fault.Match{Op: fault.OpSetWatches2, Client: "a"}, fault.Hold())
			if expire {
				require.NoError(t, client.Sessions()[0].Expire())
			} else {
				client.Drop()
			}
			require.NoError(t, srv.Set("/d/a", nil)) // while nothing is connected
			require.NoError(t, srv.Delete("/d/b"))
			require.NoError(t, srv.Create("/d/c", nil))
			require.NoError(t, rule.Wait(t.Context()))
			for op, n := range client.Requests() {
				switch op {
				case fault.OpSetWatches2, fault.OpCloseSession, fault.OpMulti, fault.OpSync:
				default:
					require.Zero(t, n, "%v before the watch stands", op)
				}
			}
			rule.Release()
			v.agrees(t, srv, "after a reconnect")
			require.NoError(t, srv.Load(map[string]string{"/d/b": ""}))
			v.agrees(t, srv, "later")
			require.NoError(t, srv.Delete("/d/c"))
		}
		second := session(t, c).ID()
		require.NotEqual(t, first, second)
		require.Equal(t, []int64{first, second, second}, v.sessions)
	})
}

// On a new connection to 3.8 a one-shot watch for children stands beside the recursive watch of its
// path at once, without the check of watches that follows.
func TestChildWatchIsSetBehindARecursiveWatch(t *testing.T) {
	onEachVersion(t, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.Create("/d", nil))
		client := srv.Client("a")
		c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(client.DialContext))
		v := viewOf(t, c, "/d")
		_, _, w, err := c.ChildrenW(t.Context(), "/d")
		require.NoError(t, err)
		check := srv.On(fault.Match{Op: fault.OpGetChildren2, Client: "a", Skip: 1}, fault.Hold())
		client.Drop()
		require.NoError(t, check.Wait(t.Context())) // the first was the view's
		require.NoError(t, srv.Create("/d/x", nil))
		time.Sleep(time.Second)
		closes(t, w.Fired(), "the watch for children")
		check.Release()
		v.agrees(t, srv, "after a reconnect")
	})
}

// A read that follows a reconnect at once sets a one-shot watch, which in 3.8 takes the place of the
// persistent watch. Until that is set again, its function gets no events, although those of a watch
// below it would be told: an earlier one may be missing.
func TestNothingIsToldBetweenAMissedEventAndItsNotice(t *testing.T) {
	for what, op := range map[string]fault.Op{
		"the read is under way": fault.OpGetData, "it is answered": fault.OpAddWatch,
	} {
		t.Run(what, func(t *testing.T) {
			onEachVersion(t, func(t *testing.T, srv *zktest.Server) {
				require.NoError(t, srv.Create("/d/below", nil))
				client := srv.Client("a")
				c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(client.DialContext))
				_, above := watchFor(t, c, "/d", framework.WatchTree)
				_, below := watchFor(t, c, "/d/below", framework.WatchTree)

				setting := srv.On(fault.Match{Op: fault.OpSetWatches2, Client: "a"}, fault.Hold())
				client.Drop()
				require.NoError(t, setting.Wait(t.Context()))
				pausing := srv.On(fault.Match{Op: op, Client: "a"}, fault.Delay(time.Second))
				read := make(chan error, 1)
				go func() {
					_, _, _, err := c.GetW(t.Context(), "/d")
					read <- err
				}()
				synctest.Wait()
				setting.Release()
				require.NoError(t, pausing.Wait(t.Context()))
				synctest.Wait()
				require.NoError(t, srv.Create("/d/missed", nil))
				require.NoError(t, srv.Create("/d/below/told", nil))
				require.NoError(t, <-read)
				time.Sleep(2 * time.Second)
				require.NoError(t, srv.Create("/d/later", nil))
				time.Sleep(time.Second)
				const gap = "EventNotWatching "
				require.Equal(t, []string{gap, "Created /told"}, below.lines("/d/below"))
				require.Equal(t, []string{gap, gap, "Created /later"}, above.lines("/d"))
			})
		})
	}
}

// Until a server has set a watch, or has set one of a tree in the place of one of a node, its function gets
// no events, although those of a watch below it would be told: others are missing among them.
func TestNothingIsToldBeforeTheWatchIsSet(t *testing.T) {
	for what, before := range map[string][]framework.WatchMode{
		"no watch": nil, "a watch of the node": {framework.WatchNode},
	} {
		t.Run(what, func(t *testing.T) {
			onEachVersion(t, func(t *testing.T, srv *zktest.Server) {
				require.NoError(t, srv.Create("/d/below", nil))
				c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client("a").DialContext))
				for _, mode := range before {
					watchFor(t, c, "/d", mode)
				}
				_, below := watchFor(t, c, "/d/below", framework.WatchTree)

				setting := srv.On(fault.Match{Op: fault.OpAddWatch, Client: "a"}, fault.Hold())
				above, added := adding(t, c, "/d")
				require.NoError(t, setting.Wait(t.Context()))
				require.NoError(t, srv.Create("/d/missed", nil))
				require.NoError(t, srv.Create("/d/below/early", nil))
				time.Sleep(time.Second)
				setting.Release()
				require.NoError(t, <-added)
				require.NoError(t, srv.Create("/d/below/later", nil))
				time.Sleep(time.Second)
				require.Equal(t, []string{"Created /early", "Created /later"}, below.lines("/d/below"))
				require.Equal(t, []string{"Created /below/later"}, above.lines("/d"))
			})
		})
	}
}

// A busy server refuses to set a watch of a node in the place of that of a tree, which stays.
func TestStopOfATreeThatIsRefusedEndsNoWatch(t *testing.T) {
	onEachVersion(t, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.Create("/d", nil))
		c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client("a").DialContext))
		tree, _ := watchFor(t, c, "/d", framework.WatchTree)
		_, node := watchFor(t, c, "/d", framework.WatchNode)
		refusal := srv.On(fault.Match{Op: fault.OpAddWatch, Client: "a"}, fault.Fail(zktest.Throttled))
		tree.Stop()
		time.Sleep(time.Second)
		require.Equal(t, 1, refusal.Hits())
		require.NoError(t, srv.Set("/d", nil))
		time.Sleep(time.Minute)
		require.NoError(t, srv.Create("/d/x", nil))
		time.Sleep(time.Second)
		require.Equal(t, []string{"DataChanged ", "ChildrenChanged "}, node.lines("/d"))
	})
}

// What a Stop has decided on one connection ends no watch of the next one.
func TestStopEndsNoWatchOfTheNextConnection(t *testing.T) {
	for what, also := range map[string][]framework.WatchMode{
		"no other watch": nil, "a watch of the node": {framework.WatchNode},
	} {
		t.Run(what, func(t *testing.T) {
			onEachVersion(t, func(t *testing.T, srv *zktest.Server) {
				require.NoError(t, srv.Create("/d", nil))
				client := srv.Client("a")
				c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(client.DialContext))
				w, _ := watchFor(t, c, "/d", framework.WatchTree)
				for _, mode := range also {
					watchFor(t, c, "/d", mode)
				}
				send := framework.StopLater(w)
				next, added := adding(t, c, "/d")
				synctest.Wait()
				client.Drop()
				require.NoError(t, <-added)
				_, shot, err := c.ExistsW(t.Context(), "/d")
				require.NoError(t, err)
				send()
				time.Sleep(time.Second)
				require.NoError(t, srv.Create("/d/x", nil))
				require.NoError(t, srv.Create("/d/x/y", nil))
				require.NoError(t, srv.Set("/d", nil))
				time.Sleep(time.Second)
				require.Equal(t, []string{"Created /x", "Created /x/y", "DataChanged "}, slices.DeleteFunc(
					next.lines("/d"), func(line string) bool { return line == "EventNotWatching " }))
				require.Equal(t, zk.EventNodeDataChanged, shot.Event())
			})
		})
	}
}

// A call that gives up while another of the same path is in progress keeps no client from being
// closed.
func TestAbandonedAddWatchBesideAnotherIsForgotten(t *testing.T) {
	for name, lose := range map[string]func(*fault.Rule, *zktest.Client){
		"answered":            func(rule *fault.Rule, _ *zktest.Client) { rule.Release() },
		"connection was lost": func(_ *fault.Rule, client *zktest.Client) { client.Drop() },
	} {
		t.Run(name, func(t *testing.T) {
			sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
				require.NoError(t, srv.Create("/d", nil))
				client := srv.Client("a")
				c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(client.DialContext))
				held := srv.On(fault.Match{Op: fault.OpAddWatch, Client: "a"}, fault.Hold())
				added := make(chan error, 1)
				go func() {
					_, err := c.AddWatch(t.Context(), "/d", framework.WatchNode, func(framework.WatchEvent) {})
					added <- err
				}()
				require.NoError(t, held.Wait(t.Context()))
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, err := c.AddWatch(ctx, "/d", framework.WatchTree, func(framework.WatchEvent) {})
				require.ErrorIs(t, err, context.DeadlineExceeded)
				lose(held, client)
				require.NoError(t, <-added)
				require.NoError(t, c.Close()) // or the simulation reports that it hangs
			})
		})
	}
}

// While the server still has the watch of a tree that was stopped, a watch of its root alone is told
// the changes of the children.
func TestStopOfATreeWatchHidesNoChild(t *testing.T) {
	onEachVersion(t, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.Create("/d", nil))
		c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client("a").DialContext))
		tree, err := c.AddWatch(t.Context(), "/d", framework.WatchTree, func(framework.WatchEvent) {})
		require.NoError(t, err)
		_, node := watchFor(t, c, "/d", framework.WatchNode)
		held := srv.On(fault.Match{Op: fault.OpAddWatch, Client: "a"}, fault.Hold())
		tree.Stop()
		require.NoError(t, held.Wait(t.Context()))
		require.NoError(t, srv.Create("/d/x", nil))
		node.await(t, "/d", "ChildrenChanged ")
		held.Release()
	})
}

// A busy server refuses to set the watches again, and the first read of the check behind that.
func TestBusyServerDelaysTheCheckOfWatchesForSeconds(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		require.NoError(t, srv.Load(map[string]string{"/x": "", "/y": ""}))
		client := srv.Client("a")
		c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(client.DialContext))
		var watches []*framework.Watch
		for _, path := range []string{"/x", "/y"} {
			_, _, w, err := c.GetW(t.Context(), path)
			require.NoError(t, err)
			watches = append(watches, w)
		}
		for _, op := range []fault.Op{fault.OpSetWatches, fault.OpGetData} {
			srv.On(fault.Match{Op: op, Client: "a"}, fault.Fail(zktest.Throttled))
		}
		client.Drop()
		time.Sleep(10 * time.Second)
		for _, path := range []string{"/x", "/y"} {
			require.NoError(t, srv.Set(path, []byte("new")))
		}
		changed := time.Now()
		for _, w := range watches {
			closes(t, w.Fired(), "the watch")
		}
		require.Less(t, time.Since(changed), time.Second)
	})
}

// A busy server refuses the read that sets a one-shot watch when that of the path is removed.
func TestRefusedOneShotWatchBehindARemovalIsRepeated(t *testing.T) {
	for _, code := range []zktest.Code{zktest.Throttled, zktest.RequestTimeout} {
		onEachVersion(t, func(t *testing.T, srv *zktest.Server) {
			require.NoError(t, srv.Create("/d", nil))
			c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client("a").DialContext))
			w, err := c.AddWatch(t.Context(), "/d", framework.WatchNode, func(framework.WatchEvent) {})
			require.NoError(t, err)
			_, _, shot, err := c.GetW(t.Context(), "/d")
			require.NoError(t, err)
			refusal := srv.On(fault.Match{Op: fault.OpGetData, Client: "a"}, fault.Fail(code))
			w.Stop()
			time.Sleep(10 * time.Second)
			require.Equal(t, 1, refusal.Hits())
			require.NoError(t, srv.Set("/d", []byte("new")))
			time.Sleep(time.Second)
			require.NotZero(t, shot.Event(), "the change was not told")
		})
	}
}

// A busy server that has refused to remove a watch is asked again.
func TestRefusedRemovalOfAWatchIsRepeated(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client("a").DialContext))
		w, err := c.AddWatch(t.Context(), "/d", framework.WatchTree, func(framework.WatchEvent) {})
		require.NoError(t, err)
		srv.On(fault.Match{Op: fault.OpRemoveWatches, Client: "a"}, fault.Fail(zktest.Throttled))
		w.Stop()
		time.Sleep(10 * time.Second)
		words, err := srv.Command("wchp")
		require.NoError(t, err)
		require.NotContains(t, words, "/d")
	})
}

// Whatever becomes of one request of the client, no change is missed.
func TestPersistentWatchSurvivesAFaultOfEachRequest(t *testing.T) {
	faults := map[string]fault.Action{
		"lost": fault.DropBefore(), "answer lost": fault.DropAfter(), "reset": fault.Reset(),
		"throttled": fault.Fail(zktest.Throttled), "timed out": fault.Fail(zktest.RequestTimeout),
		"late": fault.Delay(time.Second), "never": fault.Delay(time.Hour), "truncated": fault.Truncate(3),
	}
	ops := []fault.Op{
		fault.OpAddWatch, fault.OpSetWatches2, fault.OpSetWatches, fault.OpRemoveWatches, fault.OpConnect,
		fault.OpExists, fault.OpGetChildren2,
	}
	for name, compat := range compats {
		for what, action := range faults {
			for _, op := range ops {
				if op == fault.OpConnect && strings.HasPrefix(what, "t") {
					continue // no server answers so
				}
				for skip := range 2 {
					t.Run(fmt.Sprintf("%s/%v %s after %d", name, op, what, skip), func(t *testing.T) {
						t.Parallel()
						sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
							srv.On(fault.Match{Op: op, Client: "a", Skip: skip}, action)
							followATree(t, srv, random)
						}, zktest.WithCompat(compat))
					})
				}
			}
		}
	}
}

// followATree follows a tree through changes, reconnects and another session, while other watches of
// the same paths come and go.
func followATree(t *testing.T, srv *zktest.Server, random *rand.Rand) {
	t.Helper()
	require.NoError(t, srv.Create("/d/0", nil))
	client := srv.Client("a")
	c := testzk.Client(t, srv.MemAddr(), framework.WithDialer(client.DialContext))
	v := viewOf(t, c, "/d")
	for step := range 6 {
		for range 5 {
			alter(srv, random, "/d")
		}
		switch step {
		case 1, 4:
			client.Drop()
		case 3:
			for _, s := range client.Sessions() {
				_ = s.Expire()
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		w, err := c.AddWatch(ctx, "/d", framework.WatchNode, func(framework.WatchEvent) {})
		cancel()
		if err == nil {
			w.Stop()
		}
		v.agrees(t, srv, fmt.Sprintf("step %d", step))
	}
}

const (
	flaps       = 12
	flapTimeout = 3 * time.Second // faults take up to twice this time
)

// On a network that flaps, views of trees and waits for one-shot watches of the same paths are right
// when it is quiet.
func TestWatchesOnAFlappingNetwork(t *testing.T) {
	for name, compat := range compats {
		t.Run(name, func(t *testing.T) {
			aim := aim(t)
			sim.Run(t, 40, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
				faults := aim.Faults(t, srv, random, flapTimeout)
				require.NoError(t, srv.Create("/d", nil))
				flap(t, srv, srv.MemAddr(), random, func(client *zktest.Client) {
					disturb(srv, client, faults, random)
				})
			}, zktest.WithCompat(compat))
		})
	}
}

// The same with three servers that fail too.
func TestWatchesInADisturbedEnsemble(t *testing.T) {
	for name, compat := range compats {
		t.Run(name, func(t *testing.T) {
			aim := aim(t)
			sim.Run(t, 20, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
				faults := aim.Faults(t, srv, random, flapTimeout)
				servers := sim.Ensemble(srv, random, 2)
				require.NoError(t, srv.Create("/d", nil))
				flap(t, srv, servers, random, func(client *zktest.Client) {
					if random.IntN(2) == 0 {
						sim.Disturb(srv, random, 8*time.Second)
						return
					}
					disturb(srv, client, faults, random)
				})
			}, zktest.WithCompat(compat))
		})
	}
}

// aim aims faults at the requests that set and remove persistent watches, and at those of reconnects.
func aim(t *testing.T) *testlock.Aim {
	return testlock.NewAim(t, fault.OpAddWatch, fault.OpSetWatches2, fault.OpSetWatches, fault.OpRemoveWatches,
		fault.AnyOp)
}

// disturb causes a random fault of one client.
func disturb(srv *zktest.Server, client *zktest.Client, faults *testlock.Faults, random *rand.Rand) {
	switch random.IntN(8) {
	case 0:
		for _, s := range client.Sessions() {
			_ = s.Expire()
		}
	case 1:
		srv.On(fault.Match{Client: client.Name(), Op: fault.OpAddWatch}, fault.Fail(zktest.Throttled))
	case 2: // a busy server
		for range 3 {
			op := []fault.Op{
				fault.OpSetWatches, fault.OpExists, fault.OpGetData, fault.OpGetChildren2, fault.OpSetWatches2,
			}[random.IntN(5)]
			srv.On(fault.Match{Client: client.Name(), Op: op, Times: 1 + random.IntN(3)}, fault.Fail(zktest.Throttled))
		}
		client.Drop()
	default:
		faults.Strike(client)
	}
}

func flap(t *testing.T, srv *zktest.Server, servers string, random *rand.Rand, disturb func(*zktest.Client)) {
	ctx, cancel := context.WithCancel(t.Context())
	changing, stop := context.WithCancel(ctx)
	var running, changes sync.WaitGroup
	defer running.Wait()
	defer cancel()
	var views []*treeView
	var children []*childView
	var ones []*oneShots
	for _, name := range []string{"a", "b"} {
		c := testzk.Client(t, servers, framework.WithDialer(srv.Client(name).DialContext))
		views, children = append(views, viewOf(t, c, "/d")), append(children, childrenOf(t, c, "/d"))
		for kind := range watchers {
			one := &oneShots{c: c, kind: kind}
			ones = append(ones, one)
			running.Go(func() { one.follow(ctx) })
		}
		own := rand.New(rand.NewPCG(random.Uint64(), 0))
		changes.Go(func() { comeAndGo(changing, c, srv, own) })
	}
	for range flaps {
		disturb(srv.Client([]string{"a", "b"}[random.IntN(2)]))
		for range random.IntN(6) {
			time.Sleep(time.Duration(random.Int64N(int64(time.Second))))
			if alter(srv, random, "/d"); random.IntN(2) == 0 {
				_ = srv.Set("/d", nil)
			}
		}
	}
	stop()
	changes.Wait()
	srv.ResetFaults()
	sim.Calm(srv)
	for _, v := range views {
		v.agrees(t, srv, "a view when all is quiet")
	}
	for _, v := range children {
		v.agrees(t, srv)
	}
	stat, err := srv.Stat("/d")
	require.NoError(t, err)
	for _, one := range ones {
		one.agrees(t, stat)
	}
}

// childView keeps the names of the children of a node, by a watch of the node alone.
type childView struct {
	*treeView // its nodes are the children
}

func childrenOf(t testing.TB, c *framework.Client, root string) *childView {
	t.Helper()
	v := &childView{&treeView{c: c, root: root, nodes: map[string]int64{}, busy: make(chan struct{}, 1)}}
	add := func() error { _, err := c.AddWatch(t.Context(), root, framework.WatchNode, v.hear); return err }
	for err := add(); err != nil; err = add() {
		require.True(t, framework.IsTransient(err), "%v", err)
	}
	v.list()
	return v
}

func (v *childView) hear(e framework.WatchEvent) {
	if e.Type == zk.EventNotWatching || e.Type == zk.EventNodeChildrenChanged {
		v.list()
	}
}

func (v *childView) list() {
	v.busy <- struct{}{}
	defer func() { <-v.busy }()
	var names []string
	if !v.insist(func(ctx context.Context) (err error) { names, _, err = v.c.Children(ctx, v.root); return err }) {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	clear(v.nodes)
	for _, name := range names {
		v.nodes[name] = 0
	}
}

func (v *childView) agrees(t testing.TB, srv *zktest.Server) {
	t.Helper()
	names, err := srv.Children(v.root)
	require.NoError(t, err)
	want := map[string]int64{}
	for _, name := range names {
		want[name] = 0
	}
	for range 30 {
		synctest.Wait()
		if maps.Equal(want, v.now()) {
			return
		}
		time.Sleep(time.Second)
	}
	require.Equal(t, want, v.now(), "the children that a watch of the node has shown")
}

// comeAndGo sets and stops persistent watches, some at once. Some calls end before they are answered,
// and the tree changes while some watches are being stopped.
func comeAndGo(ctx context.Context, c *framework.Client, srv *zktest.Server, random *rand.Rand) {
	var running sync.WaitGroup
	defer running.Wait()
	for ctx.Err() == nil {
		path := []string{"/d", "/d/0", "/d/1"}[random.IntN(3)]
		for range 1 + random.IntN(3) {
			mode, patience := framework.WatchMode(1+random.IntN(2)), time.Minute
			if random.IntN(2) == 0 {
				patience = time.Duration(random.Int64N(int64(10 * time.Millisecond)))
			}
			own := rand.New(rand.NewPCG(random.Uint64(), 0))
			running.Go(func() {
				adding, cancel := context.WithTimeout(ctx, patience)
				defer cancel()
				w, err := c.AddWatch(adding, path, mode, func(framework.WatchEvent) {})
				if err != nil {
					return
				}
				time.Sleep(time.Duration(own.Int64N(int64(3 * time.Second))))
				if w.Stop(); own.IntN(2) == 0 {
					time.Sleep(time.Duration(own.Int64N(int64(5 * time.Millisecond))))
					alter(srv, own, "/d")
				}
			})
		}
		time.Sleep(time.Duration(random.Int64N(int64(3 * time.Second))))
	}
}

// oneShots reads /d whenever a one-shot watch fires.
type oneShots struct {
	c    *framework.Client
	kind string

	mu   sync.Mutex
	seen int64
}

func (s *oneShots) follow(ctx context.Context) {
	for ctx.Err() == nil {
		stat, w, err := s.read(ctx)
		if err != nil {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		s.mu.Lock()
		if s.seen = stat.Mzxid; s.kind == "children" {
			s.seen = stat.Pzxid
		}
		s.mu.Unlock()
		select {
		case <-w.Fired():
		case <-ctx.Done():
		}
	}
}

func (s *oneShots) read(ctx context.Context) (stat *zk.Stat, w *framework.Watch, err error) {
	switch s.kind {
	case "data":
		_, stat, w, err = s.c.GetW(ctx, "/d")
	case "exists":
		stat, w, err = s.c.ExistsW(ctx, "/d")
	default:
		_, stat, w, err = s.c.ChildrenW(ctx, "/d")
	}
	return stat, w, err
}

// agrees waits for less time than the interval at which watches are checked.
func (s *oneShots) agrees(t testing.TB, now zktest.Stat) {
	t.Helper()
	want := now.Mzxid
	if s.kind == "children" {
		want = now.Pzxid
	}
	var seen int64
	for range 30 {
		synctest.Wait()
		s.mu.Lock()
		seen = s.seen
		s.mu.Unlock()
		if seen == want {
			return
		}
		time.Sleep(time.Second)
	}
	require.Equal(t, want, seen, "the last state that a %s watch of %s has shown", s.kind, "/d")
}
