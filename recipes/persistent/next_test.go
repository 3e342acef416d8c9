package persistent_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/persistent"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

var noAdmin = zk.WorldACL(zk.PermAll &^ zk.PermAdmin)

// kinds are the kinds of nodes at a fixed path, and what Server.Tree says of them.
var kinds = map[string]struct {
	opts []persistent.Option
	tree string
}{
	"ephemeral":  {nil, " ephemeral of a"},
	"container":  {[]persistent.Option{persistent.WithContainer()}, " container"},
	"persistent": {[]persistent.Option{persistent.WithPersistence()}, ""},
	"ttl":        {[]persistent.Option{persistent.WithTTL(time.Minute)}, " ttl 60000ms"},
	"longer ttl": {[]persistent.Option{persistent.WithTTL(time.Hour)}, " ttl 3600000ms"},
	"with ACL":   {[]persistent.Option{persistent.WithACL(noAdmin...)}, " ephemeral of a acl [{15 world anyone}]"},
}

// eachNext runs a scenario for each kind of a Node and each other kind of the next Node of its path.
func eachNext(t *testing.T, scenario func(t *testing.T, first, next string)) {
	for first := range kinds {
		for next := range kinds {
			if next != first {
				t.Run(first+", then "+next, func(t *testing.T) { scenario(t, first, next) })
			}
		}
	}
}

// requireKind requires that the next Node is there, of its kind.
func requireKind(t *testing.T, srv *zktest.Server, next *persistent.Node, kind string) {
	t.Helper()
	requireOne(t, srv, next, "next")
	require.Contains(t, srv.Tree(), fmt.Sprintf("\n%s %q%s\n", path, "next", kinds[kind].tree))
}

// refuseDeletions makes the server refuse the deletions of the client a for a time.
func refuseDeletions(srv *zktest.Server) *fault.Rule {
	return srv.On(fault.Match{Client: "a", Op: fault.OpDelete, Times: fault.Always}, fault.Fail(zktest.Throttled))
}

func startedNext(t *testing.T, c *framework.Client, kind string) *persistent.Node {
	t.Helper()
	next, err := persistent.New(c, path, []byte("next"), kinds[kind].opts...)
	require.NoError(t, err)
	require.NoError(t, next.Start(context.Background()))
	t.Cleanup(func() { _ = next.Close() })
	return next
}

func TestNextNodeOfAnotherKindReplacesWhatTheLastHasLeft(t *testing.T) {
	eachNext(t, func(t *testing.T, kind, nextKind string) {
		virtually(t, func(t *testing.T, srv *zktest.Server) {
			c := client(t, srv, "a")
			first := kept(t, c, path, kinds[kind].opts...)
			refused := refuseDeletions(srv)
			require.ErrorIs(t, first.Close(), persistent.ErrPending)
			next := startedNext(t, c, nextKind)
			settle()
			require.Equal(t, data, content(t, srv, path))
			require.Empty(t, next.Path())
			require.NoError(t, first.Close(), "the node is the next Node's")
			refused.Remove()
			settle()
			requireKind(t, srv, next, nextKind)
			require.NoError(t, next.Close())
			require.Empty(t, nodes(srv))
		})
	})
}

// The first session is lost before the next Node has replaced the node.
func TestNextNodeOfAnotherKindComesInTheNextSession(t *testing.T) {
	eachNext(t, func(t *testing.T, kind, nextKind string) {
		virtually(t, func(t *testing.T, srv *zktest.Server) {
			c := client(t, srv, "a")
			first := kept(t, c, path, kinds[kind].opts...)
			refused := refuseDeletions(srv)
			require.ErrorIs(t, first.Close(), persistent.ErrPending)
			next := startedNext(t, c, nextKind)
			settle()
			expire(t, srv, "a")
			settle()
			refused.Remove()
			settle()
			requireKind(t, srv, next, nextKind)
		})
	})
}

// The next Node is closed before it has replaced the node.
func TestNextNodeOfAnotherKindDeletesWhatTheLastHasLeft(t *testing.T) {
	eachNext(t, func(t *testing.T, kind, nextKind string) {
		virtually(t, func(t *testing.T, srv *zktest.Server) {
			c := client(t, srv, "a")
			first := kept(t, c, path, kinds[kind].opts...)
			refused := refuseDeletions(srv)
			require.ErrorIs(t, first.Close(), persistent.ErrPending)
			next := startedNext(t, c, nextKind)
			settle()
			require.ErrorIs(t, next.Close(), persistent.ErrPending)
			refused.Remove()
			settle()
			require.NoError(t, next.Close())
			require.Empty(t, nodes(srv))
		})
	})
}

// A create of the last Node is applied when the next Node has been started.
func TestLateCreateOfAnotherKindIsReplaced(t *testing.T) {
	eachNext(t, func(t *testing.T, kind, nextKind string) {
		runDetour(t, kinds[kind].opts, func(t *testing.T, d *detour, n *persistent.Node) {
			d.toLeader(n)
			require.NoError(t, n.Close())
			hold := d.srv.On(fault.Match{Client: "a", Path: "/services", Times: fault.Always}, fault.Hold())
			next := startedNext(t, d.Client, nextKind)
			d.back()
			hold.Remove()
			settle()
			requireKind(t, d.srv, next, nextKind)
			require.NoError(t, next.Close())
			settle()
			require.Empty(t, nodes(d.srv))
		})
	})
}

// A create of the last Node is applied after the next Node has been closed.
func TestLateCreateOfAnotherKindIsUndone(t *testing.T) {
	eachNext(t, func(t *testing.T, kind, nextKind string) {
		runDetour(t, kinds[kind].opts, func(t *testing.T, d *detour, n *persistent.Node) {
			d.toLeader(n)
			require.NoError(t, n.Close())
			next := startedNext(t, d.Client, nextKind)
			settle()
			requireKind(t, d.srv, next, nextKind)
			require.NoError(t, next.Close())
			require.Empty(t, nodes(d.srv))
			d.back()
			require.Empty(t, nodes(d.srv))
		})
	})
}

func TestCloseTellsThatANodeOfTheLastMayStay(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		c := client(t, srv, "a")
		first := kept(t, c, path, persistent.WithPersistence())
		refuseDeletions(srv)
		require.ErrorIs(t, first.Close(), persistent.ErrPending)
		next := startedNext(t, c, "ephemeral")
		settle()
		require.NoError(t, c.Close())
		require.ErrorIs(t, next.Close(), framework.ErrClosed)
		require.Equal(t, data, content(t, srv, path))
	})
}
