package persistent_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/persistent"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// incident is what happens to one request of the client a.
type incident struct {
	action fault.Action
	after  func(srv *zktest.Server) // when the rule has fired
}

var incidents = map[string]incident{
	"connection drops before":    {action: fault.DropBefore()},
	"connection drops after":     {action: fault.DropAfter()},
	"connection is reset before": {action: fault.Reset()},
	"reply is cut short":         {action: fault.Truncate(6)},
	"request is late":            {action: fault.Delay(testzk.SessionTimeout / 2)},
	"session expires": {fault.Hold(), func(srv *zktest.Server) {
		for _, session := range srv.Client("a").Sessions() {
			_ = session.Expire()
		}
	}},
	"nothing gets through":  {fault.Hold(), func(srv *zktest.Server) { srv.Client("a").Cut() }},
	"no reply gets through": {fault.Hold(), func(srv *zktest.Server) { srv.Client("a").CutReplies() }},
	"another client deletes the node": {fault.Hold(), func(srv *zktest.Server) {
		for _, node := range nodes(srv) {
			_ = srv.Delete(node)
		}
	}},
}

// nodes returns the paths of all nodes that are kept.
func nodes(srv *zktest.Server) (all []string) {
	names, _ := srv.Children("/services/orders")
	for _, name := range names {
		all = append(all, "/services/orders/"+name)
	}
	return all
}

// A Node starts, gets other data, is mended and is closed. Each request in turn meets each fault.
func TestEachRequestMayFail(t *testing.T) {
	for mode, opts := range modes {
		for what, f := range incidents {
			t.Run(mode+" when "+what, func(t *testing.T) {
				t.Parallel()
				for n := 0; ; n++ {
					reached := false
					t.Run(fmt.Sprintf("request %d", n+1), func(t *testing.T) {
						sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
							reached = livesDespite(t, srv, f, n, opts)
						})
					})
					if !reached {
						require.Greater(t, n, 8)
						return
					}
				}
			})
		}
	}
}

func livesDespite(t *testing.T, srv *zktest.Server, f incident, skip int, opts []persistent.Option) (reached bool) {
	n := newNode(t, client(t, srv, "a"), path, opts...)
	rule := srv.On(fault.Match{Client: "a", Path: "/services", Skip: skip}, f.action)
	over := make(chan struct{})
	go func() {
		defer close(over)
		if rule.Wait(t.Context()) != nil {
			return // removed
		}
		if f.after != nil {
			f.after(srv)
		}
		rule.Release()
	}()
	outlast := func() {
		if rule.Hits() > 0 && !reached {
			reached = true
			<-over
			time.Sleep(3 * testzk.SessionTimeout)
			srv.ResetFaults()
			time.Sleep(3 * testzk.SessionTimeout)
			synctest.Wait()
		}
	}
	require.NoError(t, n.Start(t.Context()))
	settle()
	outlast()
	require.NoError(t, n.SetData([]byte("new")))
	settle()
	outlast()
	requireOne(t, srv, n, "new")
	_ = srv.Delete(n.Path())
	settle()
	outlast()
	requireOne(t, srv, n, "new")
	if err := n.Close(); err == nil && !reached && rule.Hits() == 0 {
		require.Empty(t, nodes(srv))
	} else if err != nil {
		require.ErrorIs(t, err, persistent.ErrPending)
	}
	outlast()
	rule.Remove()
	<-over
	require.Empty(t, nodes(srv))
	require.NoError(t, n.Close())
	return reached
}

// requireOne requires that the node is there once, with the data.
func requireOne(t *testing.T, srv *zktest.Server, n *persistent.Node, text string) {
	t.Helper()
	await(t, n)
	require.Equal(t, []string{n.Path()}, nodes(srv))
	require.Equal(t, text, content(t, srv, n.Path()))
}

// detour is a client that leaves a follower where a create waits, connects to the ZooKeeper leader,
// and comes back.
type detour struct {
	*framework.Client
	t        *testing.T
	srv      *zktest.Server
	follower *zktest.Follower
}

// runDetour runs a scenario with a Node whose first create waits at the follower.
func runDetour(t *testing.T, opts []persistent.Option, scenario func(t *testing.T, d *detour, n *persistent.Node)) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		d := &detour{t: t, srv: srv, follower: srv.Follower(0)}
		inOrder := func(int64) int64 { return 0 }
		var err error
		d.Client, err = framework.New(d.follower.MemAddr()+","+srv.MemAddr(),
			framework.WithDialer(srv.Client("a").DialContext), framework.WithRandom(inOrder),
			framework.WithSessionTimeout(20*time.Second))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, d.Close()) })
		require.NoError(t, d.CreateContainers(t.Context(), "/services/orders"))
		n := newNode(t, d.Client, path, opts...)
		d.follower.HoldRequests()
		require.NoError(t, n.Start(t.Context()))
		time.Sleep(100 * time.Millisecond)
		require.Positive(t, d.follower.Waiting())
		scenario(t, d, n)
	})
}

// toLeader connects to the ZooKeeper leader, where the Node creates its node.
func (d *detour) toLeader(n *persistent.Node) {
	d.srv.Client("a").Drop()
	settle()
	requireOne(d.t, d.srv, n, data)
}

// back connects to the follower again and lets it forward the create.
func (d *detour) back() {
	d.srv.Client("a").Drop()
	time.Sleep(time.Second)
	before := len(d.srv.Trace().Entries)
	d.follower.ReleaseRequests()
	settle()
	late := 0
	for _, e := range d.srv.Trace().Entries[before:] {
		if strings.HasPrefix(e.What, "create") && e.Code == zktest.OK {
			late++
		}
	}
	require.Positive(d.t, late, "the create was not applied late")
}

// A create is applied after Close.
func TestLateCreateIsUndone(t *testing.T) {
	for mode, opts := range modes {
		t.Run(mode, func(t *testing.T) {
			runDetour(t, opts, func(t *testing.T, d *detour, n *persistent.Node) {
				d.toLeader(n)
				require.NoError(t, n.Close())
				require.Empty(t, nodes(d.srv))
				d.back()
				require.Empty(t, nodes(d.srv))
				require.NoError(t, d.srv.Create(path, []byte("theirs")))
				settle()
				require.Equal(t, "theirs", content(t, d.srv, path), "it is another program's")
			})
		})
	}
}

// No create was applied before Close.
func TestCreateThatIsFirstAppliedAfterCloseIsUndone(t *testing.T) {
	const throttled = zktest.Code(-127)
	for mode, opts := range modes {
		t.Run(mode, func(t *testing.T) {
			runDetour(t, opts, func(t *testing.T, d *detour, n *persistent.Node) {
				for _, op := range []fault.Op{fault.OpCreate, fault.OpCreateContainer, fault.OpCreateTTL} {
					match := fault.Match{Client: "a", Op: op, Path: "/services/orders/", Times: fault.Always}
					d.srv.On(match, fault.Fail(throttled))
				}
				d.srv.Client("a").Drop()
				settle()
				require.Empty(t, nodes(d.srv))
				begun := time.Now()
				d.srv.ResetFaults()
				require.NoError(t, n.Close())
				require.Less(t, time.Since(begun), time.Second)
				require.Empty(t, nodes(d.srv))
				d.back()
				require.Empty(t, nodes(d.srv))
			})
		})
	}
}

// A create is applied after another client has deleted the node.
func TestLateCreateIsMended(t *testing.T) {
	for mode, opts := range modes {
		t.Run(mode, func(t *testing.T) {
			runDetour(t, opts, func(t *testing.T, d *detour, n *persistent.Node) {
				d.toLeader(n)
				require.NoError(t, n.SetData([]byte("new")))
				settle()
				hold := d.srv.On(fault.Match{Client: "a", Path: "/services", Times: fault.Always}, fault.Hold())
				_ = d.srv.Delete(n.Path())
				d.back()
				hold.Remove()
				settle()
				requireOne(t, d.srv, n, "new")
				require.NoError(t, n.Close())
				settle()
				require.Empty(t, nodes(d.srv))
			})
		})
	}
}

// The next Node of the client gets what the last one has left.
func TestLateCreateIsTheNextNodes(t *testing.T) {
	for mode, opts := range modes {
		t.Run(mode, func(t *testing.T) {
			runDetour(t, opts, func(t *testing.T, d *detour, n *persistent.Node) {
				d.toLeader(n)
				require.NoError(t, n.Close())
				next, err := persistent.New(d.Client, path, []byte("next"), opts...)
				require.NoError(t, err)
				hold := d.srv.On(fault.Match{Client: "a", Path: "/services", Times: fault.Always}, fault.Hold())
				require.NoError(t, next.Start(t.Context()))
				d.back()
				hold.Remove()
				settle()
				requireOne(t, d.srv, next, "next")
				require.NoError(t, next.Close())
				settle()
				require.Empty(t, nodes(d.srv))
			})
		})
	}
}
