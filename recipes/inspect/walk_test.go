package inspect_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/inspect"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// requests returns the kinds of requests of the client "reader" on a server since the last call.
func requests(srv *zktest.Server) func() map[string]int {
	read := len(srv.Trace().Entries)
	return func() map[string]int {
		counts := map[string]int{}
		entries := srv.Trace().Entries
		for _, e := range entries[read:] {
			if e.Client == "reader" && e.What != "sync" {
				counts[e.What]++
			}
		}
		read = len(entries)
		return counts
	}
}

// forest creates locks with a holder each, some with a waiter.
func forest(t testing.TB, c *framework.Client, root string, locks int) {
	t.Helper()
	for i := range locks {
		create(t, c, fmt.Sprintf("%s/%06d/%slock-0000000000", root, i, guid), "", framework.Ephemeral())
		if i%10 == 0 {
			create(t, c, fmt.Sprintf("%s/%06d/%slock-0000000001", root, i, otherGUID), "", framework.Ephemeral())
		}
	}
}

// A walk takes four requests for 128 locks: nodes, lists, children, and nodes again. It writes nothing
// and leaves no watch.
func TestWalkReadsManyNodesInOneRequest(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		forest(t, client(t, srv, "a"), "/locks", 640)
		c := client(t, srv, "reader")
		before := srv.Tree()
		count := requests(srv)
		require.Len(t, walk(t, c, "/locks"), 640)
		counts := count()
		require.Len(t, counts, 1, "%v", counts)
		require.LessOrEqual(t, counts["multiRead"], 4*640/128+20)
		require.Equal(t, before, srv.Tree())
		require.NoError(t, srv.Create("/locks/000000/new", nil))
		require.NoError(t, srv.Delete("/locks/000001"))
		time.Sleep(time.Second)
		require.Empty(t, count(), "no event comes")
	})
}

// Servers before 3.6 do not know requests of many reads, and close the connection after one.
func TestWalkOnServersWithoutRequestsOfManyReads(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		forest(t, client(t, srv, "a"), "/locks", 100)
		c := client(t, srv, "reader")
		recent := walk(t, c, "/locks")
		other := client(t, srv, "reader")
		srv.On(fault.Match{Op: fault.OpMultiRead, Times: fault.Always}, fault.Fail(zktest.Unimplemented))
		count := requests(srv)
		for _, want := range []int{1, 0} {
			old := walk(t, other, "/locks")
			require.Len(t, old, len(recent))
			for i, o := range old {
				o.At = recent[i].At
				require.Equal(t, recent[i], o)
			}
			require.Equal(t, want, count()["multiRead"], "it asks once")
		}
		_, err := inspect.Show(testzk.Context(t), other, "/none")
		require.ErrorIs(t, err, zk.ErrNoNode)
	})
}

func TestWalkGoesInOrderAndEndsWhenToldTo(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		c := client(t, srv, "a")
		for _, path := range []string{"/r/b/y", "/r/b/x", "/r/a", "/r/c/d/e"} {
			create(t, c, path+"/"+guid+"lock-0000000000", "", framework.Ephemeral())
		}
		create(t, c, "/r/a/below", "10.0.0.3")
		require.Equal(t, []string{"/r/a", "/r/a/below", "/r/b/x", "/r/b/y", "/r/c/d/e"}, paths(walk(t, c, "/r")))
		require.Equal(t, []string{"/r/a"}, paths(walk(t, c, "/r", inspect.WithDepth(1))))
		require.Equal(t, []string{"/r/a", "/r/a/below", "/r/b/x", "/r/b/y"},
			paths(walk(t, c, "/r", inspect.WithDepth(2))))
		require.Empty(t, walk(t, c, "/r", inspect.WithDepth(0)))
		require.Equal(t, []string{"/r/a"}, paths(walk(t, c, "/r/a", inspect.WithDepth(0))))
		require.Equal(t, []string{"/r", "/r/a", "/r/b", "/r/c"},
			paths(walk(t, c, "/r", inspect.WithAll(), inspect.WithDepth(1))))
		require.Equal(t, paths(walk(t, c, "/r")), paths(walk(t, c, "/")), "from the root, too")

		first := 0
		for o, err := range inspect.Walk(t.Context(), c, "/r") {
			require.NoError(t, err)
			require.Equal(t, "/r/a", o.Path)
			first++
			break
		}
		require.Equal(t, 1, first)

		_, err := all(inspect.Walk(t.Context(), c, "/none"))
		require.ErrorIs(t, err, zk.ErrNoNode)
		some, err := all(inspect.Walk(t.Context(), c, "/r", inspect.WithLimit(8)))
		require.ErrorIs(t, err, inspect.ErrLimit)
		require.Less(t, len(some), 5)
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		why := errors.New("why")
		seen := 0
		for o, err := range inspect.Walk(ctx, c, "/r") {
			if seen++; o == nil {
				require.ErrorIs(t, err, why)
				require.ErrorIs(t, err, context.Canceled)
				break
			}
			cancel(why)
		}
		require.Greater(t, seen, 1, "an incomplete walk says so")
		require.NoError(t, c.Close())
		_, err = all(inspect.Walk(t.Context(), c, "/r"))
		require.ErrorIs(t, err, framework.ErrClosed)
	})
}

func paths(objects []*inspect.Object) (all []string) {
	for _, o := range objects {
		all = append(all, o.Path)
	}
	return all
}

// all returns the objects of a walk and its error.
func all(objects func(func(*inspect.Object, error) bool)) (found []*inspect.Object, err error) {
	for o, failed := range objects {
		if err = failed; err == nil {
			found = append(found, o)
		}
	}
	return found, err
}

func TestWalkOutlastsALostConnection(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		forest(t, client(t, srv, "a"), "/locks", 300)
		c := client(t, srv, "reader")
		n := 0
		for o, err := range inspect.Walk(t.Context(), c, "/locks") {
			require.NoError(t, err)
			require.Equal(t, inspect.KindMutex, o.Kind)
			if n++; n == 100 {
				srv.Client("reader").Drop()
			}
			if n == 200 {
				for _, s := range srv.Client("reader").Sessions() {
					require.NoError(t, s.Expire())
				}
			}
		}
		require.Equal(t, 300, n)
	})
}

// changing has a lock get another node just before each of the given requests of the client "reader".
func changing(t *testing.T, srv *zktest.Server, lock string, numbers ...int) (done func()) {
	rules := make([]*fault.Rule, len(numbers))
	for i, n := range numbers { // a rule does not see the requests for which an earlier one fires
		rules[i] = srv.On(fault.Match{Client: "reader", Op: fault.OpMultiRead, Skip: n - 1 - i}, fault.Hold())
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for i, rule := range rules {
			if rule.Wait(t.Context()) != nil {
				return
			}
			check(t, srv.Create(fmt.Sprintf("%s/%slock-%010d", lock, otherGUID, i+1), nil))
			rule.Release()
		}
	}()
	return func() {
		for _, rule := range rules {
			rule.Remove()
		}
		<-ended
	}
}

// The requests of Show are those of the node, the list, the children and the node again, and then the
// last three again.
func TestObjectThatChangesWhileItIsReadIsReadAgain(t *testing.T) {
	for name, test := range map[string]struct {
		before []int
		nodes  int
		torn   bool
	}{
		"no change":                  {nil, 1, false},
		"before the list":            {[]int{2}, 2, false},
		"after the list":             {[]int{3}, 2, false},
		"after the children":         {[]int{4}, 2, false},
		"twice":                      {[]int{3, 7}, 3, false},
		"three times":                {[]int{3, 7, 10}, 3, true},
		"before the list, each time": {[]int{2, 5, 8}, 4, true},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, func(t *testing.T, srv *zktest.Server) {
				a, c := client(t, srv, "a"), client(t, srv, "reader")
				create(t, a, "/lock/"+guid+"lock-0000000000", "", framework.Ephemeral())
				done := changing(t, srv, "/lock", test.before...)
				o := show(t, c, "/lock")
				done()
				require.Equal(t, test.torn, o.Torn)
				require.Len(t, o.Nodes, test.nodes)
				require.Equal(t, o.Torn, o.Nodes[0].HeldSince.IsZero(), "since when is not proved")
			})
		})
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// At all times objects that are not torn are what the servers had at one moment, whatever changes.
func TestObjectsAreAsTheyWereAtOneTime(t *testing.T) {
	sim.Run(t, 20, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		writer, c := client(t, srv, "a"), client(t, srv, "reader")
		var mu sync.Mutex
		states := map[string]bool{} // of the children of all locks, ever
		children := map[string][]string{}
		srv.OnCommit(func(_ int64, changes []zktest.Change) {
			mu.Lock()
			defer mu.Unlock()
			for _, ch := range changes {
				dir, name := ch.Path[:strings.LastIndex(ch.Path, "/")], ch.Path[strings.LastIndex(ch.Path, "/")+1:]
				if !strings.Contains(name, "lock-") {
					continue
				}
				now := slices.DeleteFunc(slices.Clone(children[dir]), func(n string) bool { return n == name })
				if ch.Kind == zktest.NodeCreated {
					now = append(now, name)
				}
				slices.Sort(now)
				children[dir] = now
				states[dir+" "+strings.Join(now, " ")] = true
			}
		})
		const locks = 5
		var live []string
		for i := range locks {
			create(t, writer, fmt.Sprintf("/locks/%d", i), "")
		}
		stop, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			for {
				select {
				case <-stop:
					return
				default:
				}
				if len(live) > 0 && random.IntN(2) == 0 {
					k := random.IntN(len(live))
					check(t, writer.Delete(context.Background(), live[k], -1))
					live = slices.Delete(live, k, k+1)
					continue
				}
				name := fmt.Sprintf("/locks/%d/%slock-", random.IntN(locks), guid)
				path, err := writer.Create(context.Background(), name, nil, framework.Ephemeral(),
					framework.Sequential())
				check(t, err)
				live = append(live, path)
				time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond)
			}
		}()
		torn, whole := 0, 0
		for range 20 {
			for _, o := range walk(t, c, "/locks") {
				if o.Torn {
					torn++
					continue
				}
				whole++
				require.Zero(t, o.Unread)
				var names []string
				for _, n := range o.Nodes {
					names = append(names, strings.TrimPrefix(n.Path, o.Path+"/"))
				}
				slices.Sort(names)
				mu.Lock()
				was := states[o.Path+" "+strings.Join(names, " ")]
				mu.Unlock()
				require.True(t, was, "%s %v", o.Path, names)
			}
		}
		close(stop)
		<-done
		t.Logf("%d objects, and %d torn ones", whole, torn)
		require.Positive(t, whole)
	})
}

// Random trees: no panic, no error, no node twice, and everything that is below the root with WithAll.
func TestTreesOfNonsense(t *testing.T) {
	words := []string{
		"lock-", "__READ__", "__WRIT__", "latch-", "lease-", "__lock__", "__rlock__", "leases", "locks", "ready",
		"config", "-term", "0000000000", "0000000001", "-2147483648", "2147483647", "99999999999", guid,
		plainGUID, hex, uuid,
		hex + "__party__", "é", "\t", " ", "a", "{", "limit-", "slot-1-", "programs", "stripes-7-", "marker-", "wait-",
		"signal-1-", "all-1",
	}
	datas := []string{
		"", "10.0.0.1", "\x00\x00\x00\x01", "\xff\xff\xff\xff\xff\xff\xff\xff", "7", "-", "{}", "null", "[]",
		`{"name":"a","id":"a"}`, `{"name":1}`, `{"token":1,"resigned":false}`, `{"token":-1}`, "__REVOKE__",
		`{"host":"h","process":"p","pid":1}`, "\xff\xfe", `{"count":3}`,
		`{"parties":2,"generation":0,"passed":[]}`, strings.Repeat("x", 5000),
	}
	sim.Run(t, 30, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		c := client(t, srv, "a")
		dirs := []string{"/r"}
		create(t, c, "/r", "")
		for range 300 {
			var name strings.Builder
			for range 1 + random.IntN(3) {
				name.WriteString(words[random.IntN(len(words))])
			}
			path := dirs[random.IntN(len(dirs))] + "/" + name.String()
			var opts []framework.CreateOption
			if random.IntN(2) == 0 {
				opts = append(opts, framework.Ephemeral())
			}
			if _, err := c.Create(t.Context(), path, []byte(datas[random.IntN(len(datas))]), opts...); err != nil {
				continue
			}
			if len(opts) == 0 {
				dirs = append(dirs, path)
			}
			if random.IntN(20) == 0 {
				_, err := c.SetACL(t.Context(), path, acl(zk.PermAll&^zk.PermRead), -1)
				require.NoError(t, err)
			}
		}
		seen := map[string]bool{}
		last := ""
		few := inspect.WithMaxNodes(1 + random.IntN(20))
		for o, err := range inspect.Walk(t.Context(), c, "/r", inspect.WithAll(), few) {
			require.NotNil(t, o, "%v", err)
			require.False(t, seen[o.Path], o.Path)
			seen[o.Path] = true
			require.Less(t, strings.ReplaceAll(last, "/", "\x00"), strings.ReplaceAll(o.Path, "/", "\x00"))
			last = o.Path
			if err != nil {
				require.ErrorIs(t, err, zk.ErrNoAuth)
				continue
			}
			requireWell(t, o)
			for _, n := range o.Nodes {
				require.False(t, seen[n.Path], n.Path)
			}
		}
		objects := make([]*inspect.Object, 0, len(seen))
		for o, err := range inspect.Walk(t.Context(), c, "/r") {
			if err == nil {
				objects = append(objects, o)
			}
		}
		_, err := json.Marshal(inspect.Sessions(objects))
		require.NoError(t, err)
		require.Empty(t, inspect.Cycles(objects), "of one session")
	})
}
