package framework_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

// makeTree creates a tree of nodes of several depths below a new parent, and a node beside it.
func makeTree(t testing.TB) (under string) {
	t.Helper()
	under = parent(t)
	o := testzk.Observer(t)
	for _, path := range []string{
		"/tree", "/tree/a", "/tree/a/1", "/tree/a/2", "/tree/a/2/x", "/tree/b", "/tree/c", "/tree/c/1", "/treetop",
	} {
		require.NoError(t, create(o, under+path))
	}
	return under
}

func TestTreeIsDeletedAndNothingElse(t *testing.T) {
	o := testzk.Observer(t)
	c := testzk.Connected(t, testzk.Connect())
	for name, on := range map[string]func(under string) (operations, string){
		"client":  func(under string) (operations, string) { return c, under + "/tree" },
		"session": func(under string) (operations, string) { return session(t, c), under + "/tree" },
		"view":    func(under string) (operations, string) { return c.Namespace(under[1:]), "/tree" },
	} {
		under := makeTree(t)
		testzk.Everywhere(t)
		o1, path := on(under)
		require.NoError(t, o1.DeleteRecursive(testzk.Context(t), path), name)
		require.Equal(t, []string{"treetop"}, children(t, o, under), name)
		failed(t, o1.DeleteRecursive(testzk.Context(t), path), framework.NotApplied, zk.ErrNoNode)
		require.NoError(t, o1.DeleteRecursive(testzk.Context(t), path+"top"), "a leaf")
		require.Empty(t, children(t, o, under))
	}
}

func TestRootAndNodesOfTheServersAreNotDeletedRecursively(t *testing.T) {
	c := refusedClient(t)
	for name, row := range map[string]struct {
		client *framework.Client
		path   string
	}{
		"root":               {c, "/"},
		"root of a view":     {c.Namespace("app"), "/"},
		"of the servers":     {c, "/zookeeper"},
		"below":              {c, "/zookeeper/quota/app"},
		"below, from a view": {c.Namespace("zookeeper"), "/quota"},
	} {
		err := row.client.DeleteRecursive(testzk.Context(t), row.path)
		failed(t, err, framework.NotApplied)
		require.ErrorContains(t, err, "not deleted recursively", name)
		require.False(t, framework.IsTransient(err), name)
	}
}

// The number of requests that a tree takes is known, so each of them is lost once.
func TestTreeIsDeletedAfterALostRequestOrReply(t *testing.T) {
	t.Parallel()
	o := testzk.Observer(t)
	for name, action := range faults {
		for _, op := range []fault.Op{fault.OpDelete, fault.OpMulti, fault.OpGetChildren2} {
			for skip := range 2 {
				c, p := proxied(t)
				under := makeTree(t)
				testzk.Everywhere(t)
				rule := p.On(fault.Match{Op: op, Skip: skip}, action)
				require.NoError(t, c.DeleteRecursive(testzk.Context(t), under+"/tree"), "%s of %v", name, op)
				require.Equal(t, 1, rule.Hits(), "%s of %v %d", name, op, skip)
				require.Equal(t, []string{"treetop"}, children(t, o, under))
				require.NoError(t, c.Close())
			}
		}
	}
}

func TestTreeIsNotDeletedAgainWithoutRetries(t *testing.T) {
	c, p := proxied(t, framework.WithRetry(retry.Never()), framework.WithConnectTimeout(testzk.Patience))
	under := makeTree(t)
	testzk.Everywhere(t)
	p.On(fault.Match{Op: fault.OpMulti, Skip: 1}, fault.DropAfter())
	failed(t, c.DeleteRecursive(testzk.Context(t), under+"/tree"), framework.Unknown, zk.ErrConnectionClosed)
	require.NoError(t, c.DeleteRecursive(testzk.Context(t), under+"/tree"), "it continues")
	require.Equal(t, []string{"treetop"}, children(t, testzk.Observer(t), under))
}

func TestNodesThatOthersCreateInATreeAreDeletedUpToALimit(t *testing.T) {
	o := testzk.Observer(t)
	for rounds, want := range map[int]error{1: nil, 10: nil, 11: zk.ErrNotEmpty} {
		c, p := proxied(t)
		ctx, under := testzk.Context(t), parent(t)
		require.NoError(t, create(o, under+"/tree"))
		testzk.Everywhere(t)
		var held []*fault.Rule
		for range rounds {
			held = append(held, p.On(fault.Match{Op: fault.OpDelete, Path: under + "/tree"}, fault.Hold()))
		}
		result := make(chan error, 1)
		go func() { result <- c.DeleteRecursive(ctx, under+"/tree") }()
		for i, rule := range held {
			require.NoError(t, rule.Wait(ctx))
			for j := range 2 {
				require.NoError(t, create(o, fmt.Sprintf("%s/tree/%d-%d", under, i, j)))
			}
			rule.Release()
		}
		err := <-result
		if want == nil {
			require.NoError(t, err, rounds)
			require.Empty(t, children(t, o, under))
			continue
		}
		failed(t, err, framework.Unknown, want)
		require.False(t, framework.IsTransient(err))
		require.Len(t, children(t, o, under+"/tree"), 2)
	}
}

// Others delete the nodes of a tree at the same time, in any order.
func TestTreesAreDeletedByTwoClientsAtOnce(t *testing.T) {
	o := testzk.Observer(t)
	one, two := testzk.Connected(t, testzk.Connect()), testzk.Connected(t, testzk.Connect())
	under := makeTree(t)
	for i := range 300 {
		require.NoError(t, create(o, fmt.Sprintf("%s/tree/n%d", under, i)))
	}
	testzk.Everywhere(t)
	result := make(chan error, 1)
	go func() { result <- one.DeleteRecursive(testzk.Context(t), under+"/tree") }()
	for _, err := range []error{two.DeleteRecursive(testzk.Context(t), under+"/tree"), <-result} {
		if err != nil {
			require.ErrorIs(t, err, zk.ErrNoNode)
		}
	}
	require.Equal(t, []string{"treetop"}, children(t, o, under))
}

func TestRefusedNodeEndsTheDeletionOfATree(t *testing.T) {
	o := testzk.Observer(t)
	for name, row := range map[string]struct {
		perms int32 // of /tree/a/2
		says  string
	}{
		"delete": {zk.PermAll &^ zk.PermDelete, "/tree/a/2/x: zk: no permission"},
		"list":   {zk.PermAll &^ zk.PermRead, "/tree/a/2: zk: no permission"},
	} {
		c := testzk.Connected(t, testzk.Connect())
		under := makeTree(t)
		_, err := o.SetACL(under+"/tree/a/2", zk.WorldACL(row.perms), -1)
		require.NoError(t, err)
		testzk.Everywhere(t)
		err = c.Namespace(under[1:]).DeleteRecursive(testzk.Context(t), "/tree")
		require.ErrorIs(t, err, zk.ErrNoAuth, name)
		require.ErrorContains(t, err, "delete recursively /tree: "+row.says, name)
		require.False(t, framework.IsTransient(err), name)
		_, _, there := observe(t, o, under+"/tree/a/2/x")
		require.True(t, there, "%s: nodes above it are left, and it is", name)
	}
}

func TestDeletionOfATreeEndsWithItsContext(t *testing.T) {
	for _, op := range []fault.Op{fault.OpDelete, fault.OpGetChildren2, fault.OpMulti} {
		c, p := proxied(t, longSession())
		under := makeTree(t)
		testzk.Everywhere(t)
		held := p.On(fault.Match{Op: op}, fault.Hold())
		ctx, cancel := context.WithCancel(context.Background())
		result := make(chan error, 1)
		go func() { result <- c.DeleteRecursive(ctx, under+"/tree") }()
		require.NoError(t, held.Wait(testzk.Context(t)))
		cancel()
		require.ErrorIs(t, <-result, context.Canceled)
		held.Release()
		require.NoError(t, c.Close())
	}
}

// The servers answer a list of 100,000 names with more than a megabyte, the default limit of a
// request.
func TestWideTreeIsDeletedInFewRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const width = 100_000
		srv := zktest.Start(t)
		require.NoError(t, srv.Create("/wide", nil))
		for i := range width {
			require.NoError(t, srv.Create(fmt.Sprintf("/wide/a-name-that-is-not-so-short-%010d", i), nil))
		}
		c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client("c").DialContext))
		srv.ResetCounts()
		require.NoError(t, c.DeleteRecursive(t.Context(), "/wide"))
		require.Empty(t, srv.Tree())
		counts := srv.Client("c").Requests()
		require.Equal(t, width/100, counts[fault.OpMulti])
		require.Equal(t, 1, counts[fault.OpGetChildren2])
		require.Equal(t, 2, counts[fault.OpDelete])
		time.Sleep(time.Second)
	})
}
