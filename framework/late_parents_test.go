package framework_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/zktest/fault"
)

// abandonBelow makes a create below each of the parents. The creates wait at the follower when their callers
// leave.
func (d *detour) abandonBelow(parents []string, opts ...framework.CreateOption) {
	for _, parent := range parents {
		require.NoError(d.t, d.srv.Create(parent, nil))
	}
	d.follower.HoldRequests()
	ctx, cancel := context.WithTimeout(d.t.Context(), 100*time.Millisecond)
	defer cancel()
	opts = append(opts, framework.Protected(), framework.Sequential())
	errs := make(chan error, len(parents))
	for _, parent := range parents {
		go func() {
			_, err := d.Create(ctx, parent+"/n-", nil, opts...)
			errs <- err
		}()
	}
	for range parents {
		failed(d.t, <-errs, framework.Unknown, context.DeadlineExceeded)
	}
}

// releaseAll brings the client back to the follower, which forwards the requests.
func (d *detour) releaseAll() {
	d.toLeader()
	d.srv.Client("a").Drop()
	time.Sleep(50 * time.Millisecond)
	d.follower.ReleaseRequests()
}

func (d *detour) requireEmpty(parents ...string) {
	d.t.Helper()
	for _, parent := range parents {
		nodes, err := d.srv.Children(parent)
		require.NoError(d.t, err)
		require.Empty(d.t, nodes, parent)
	}
}

// A connection lasts a second, and not all parents can be listed in that time.
func TestLateNodesOfManyParentsAreDeletedOnShortConnections(t *testing.T) {
	runDetour(t, func(d *detour) {
		var parents []string
		for i := range 200 {
			parents = append(parents, fmt.Sprintf("/p%03d", i))
		}
		d.abandonBelow(parents, framework.Ephemeral())
		d.releaseAll()
		d.srv.On(fault.Match{Op: fault.OpGetChildren2, Client: "a", Times: 10_000}, fault.Delay(10*time.Millisecond))
		for range 60 {
			time.Sleep(time.Second)
			d.srv.Client("a").Drop()
		}
		d.requireEmpty(parents...)
	})
}

// The connection is lost whenever the client lists the children of one parent.
func TestParentThatCannotBeListedKeepsNoOtherFromTheSearchForLateNodes(t *testing.T) {
	for name, opts := range lateKinds {
		t.Run(name, func(t *testing.T) {
			runDetour(t, func(d *detour) {
				d.abandonBelow([]string{"/p", "/q"}, opts...)
				lists := fault.Match{Op: fault.OpGetChildren2, Client: "a", Path: "/p", Times: 10_000}
				d.srv.On(lists, fault.DropBefore())
				d.releaseAll()
				time.Sleep(time.Minute)
				d.requireEmpty("/q")
			})
		})
	}
}

// The same in the session after that of the creates, where persistent nodes are looked for.
func TestParentThatCannotBeListedKeepsNoOtherFromTheSearchInTheNextSession(t *testing.T) {
	runDetour(t, func(d *detour) {
		d.abandonBelow([]string{"/p", "/q"})
		d.srv.On(fault.Match{Op: fault.OpGetChildren2, Client: "a", Times: 1}, fault.DropBefore())
		d.srv.On(fault.Match{Op: fault.OpGetChildren2, Client: "a", Path: "/p", Times: 10_000}, fault.DropBefore())
		first := session(d.t, d.Client).ID()
		d.releaseAll()
		for _, s := range d.srv.Client("a").Sessions() {
			require.NoError(d.t, s.Expire())
		}
		time.Sleep(time.Minute)
		require.NotEqual(d.t, first, session(d.t, d.Client).ID())
		d.requireEmpty("/q")
	})
}

// Each connection lasts for one look. On each, a create below another parent is given up.
func TestNewParentsKeepNoOtherFromTheSearchForLateNodes(t *testing.T) {
	runDetour(t, func(d *detour) {
		d.abandonBelow([]string{"/old"}, framework.Ephemeral())
		lists := fault.Match{Op: fault.OpGetChildren2, Client: "a", Path: "/old", Times: 2}
		d.srv.On(lists, fault.DropBefore())
		d.releaseAll()
		lists.Path, lists.Times = "", 10_000
		d.srv.On(lists, fault.Delay(300*time.Millisecond))
		for i := range 50 {
			d.lookOnce(fmt.Sprintf("/new%02d", i))
		}
		d.requireEmpty("/old")
	})
}

// lookOnce gives up a create below a new parent, and ends the next connection after a look.
func (d *detour) lookOnce(parent string) {
	require.NoError(d.t, d.srv.Create(parent, nil))
	require.NoError(d.t, d.WaitConnected(d.t.Context()))
	d.srv.On(fault.Match{Op: fault.OpCreate, Client: "a", Times: 1}, fault.DropBefore())
	ctx, cancel := context.WithTimeout(d.t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := d.Create(ctx, parent+"/n-", nil, framework.Protected(), framework.Sequential(), framework.Ephemeral())
	failed(d.t, err, framework.Unknown)
	time.Sleep(time.Millisecond)
	require.NoError(d.t, d.WaitConnected(d.t.Context()))
	time.Sleep(400 * time.Millisecond)
	d.srv.Client("a").Drop()
	time.Sleep(time.Millisecond)
}
