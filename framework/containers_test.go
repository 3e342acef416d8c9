package framework_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest/fault"
)

func TestParentsAreContainersThatTheServerDeletes(t *testing.T) {
	t.Parallel()
	e := testzk.Own(t, time.Second)
	c := testzk.Connected(t, e.Connect())
	ctx := testzk.Context(t)
	require.NoError(t, c.CreateContainers(ctx, "/a/b"))
	_, err := c.Create(ctx, "/x/y/n", nil, framework.Parents())
	require.NoError(t, err)
	_, err = c.Create(ctx, "/c", nil, framework.Container())
	require.NoError(t, err)
	_, err = c.Create(ctx, "/plain", nil)
	require.NoError(t, err)
	// The server deletes only containers that have had a child.
	for _, child := range []string{"/a/b/n", "/c/n", "/plain/n"} {
		_, err := c.Create(ctx, child, nil)
		require.NoError(t, err)
		require.NoError(t, c.Delete(ctx, child, -1))
	}
	require.NoError(t, c.Delete(ctx, "/x/y/n", -1))
	testzk.Eventually(t, func() bool {
		names, _, err := c.Children(ctx, "/")
		return err == nil && len(names) == 2
	}, "containers are left, or the plain node is missing")
	names, _, err := c.Children(ctx, "/")
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"plain", "zookeeper"}, names)
}

// The server refuses the operation as unknown and closes the connection. Other pending requests are
// lost.
func TestServersWithoutContainersGetPersistentNodes(t *testing.T) {
	for name, policy := range map[string]retry.Policy{
		"retries": retry.Times(5, time.Millisecond), "no retries": retry.Never(),
	} {
		t.Run(name, func(t *testing.T) {
			s := startOldServer(t)
			c := testzk.Connected(t, s.listener.Addr().String(), framework.WithRetry(policy),
				framework.WithConnectTimeout(testzk.Patience)) // without retries a request waits for no longer
			ctx := testzk.Context(t)
			made, err := c.Create(ctx, "/c", nil, framework.Container())
			require.NoError(t, err)
			require.Equal(t, "/c", made)
			require.NoError(t, c.CreateContainers(ctx, "/a/b"))
			_, err = c.Create(ctx, "/x/y/n", nil, framework.Parents())
			require.NoError(t, err)
			require.Equal(t, 1, s.count(fault.OpCreateContainer), "want one request")
			nodes := map[string]bool{"/c": true, "/a": true, "/a/b": true, "/x": true, "/x/y": true, "/x/y/n": true}
			require.Equal(t, nodes, s.nodes)
		})
	}
}

// The first request for a container is in a transaction. The server refuses the operation and keeps
// the connection.
func TestServersWithoutContainersGetPersistentNodesInTransactions(t *testing.T) {
	for name, create := range map[string]func(c *framework.Client, ctx context.Context) error{
		"create": func(c *framework.Client, ctx context.Context) error {
			made, err := c.Create(ctx, "/x/y/n", nil, framework.Parents())
			require.Equal(t, "/x/y/n", made)
			return err
		},
		"container": func(c *framework.Client, ctx context.Context) error {
			_, err := c.Create(ctx, "/x/y/n", nil, framework.Parents(), framework.Container())
			return err
		},
		"multi": func(c *framework.Client, ctx context.Context) error {
			results, err := c.Multi(ctx, framework.CreateOp("/x/y/n", nil, framework.Parents()))
			require.Len(t, results, 1)
			require.Equal(t, "/x/y/n", results[0].Path)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := startOldServer(t)
			c := testzk.Connected(t, s.listener.Addr().String())
			require.NoError(t, create(c, testzk.Context(t)))
			require.NoError(t, c.CreateContainers(testzk.Context(t), "/a"))
			require.Equal(t, 1, s.count(fault.OpCreateContainer), "want one request")
			require.Equal(t, map[string]bool{"/a": true, "/x": true, "/x/y": true, "/x/y/n": true}, s.nodes)
		})
	}
}

func TestParentsNeedNoPermissionAboveAnExistingNode(t *testing.T) {
	ctx, path := testzk.Context(t), testzk.Path(t)
	owner := testzk.Connected(t, testzk.Connect())
	require.NoError(t, owner.CreateContainers(ctx, path+"/open"))
	nothing := zk.DigestACL(zk.PermAll, "some", "body")
	_, err := owner.SetACL(ctx, path, nothing, -1)
	require.NoError(t, err)
	testzk.Everywhere(t)
	c, p := proxied(t)
	require.NoError(t, c.CreateContainers(ctx, path+"/open/a/b"))
	_, err = c.Create(ctx, path+"/open/c/n", nil, framework.Parents())
	require.NoError(t, err)
	require.NoError(t, c.CreateContainers(ctx, path+"/open"), "it exists")
	require.NoError(t, c.CreateContainers(ctx, path))
	require.Equal(t, 2, p.Requests()[fault.OpCreateContainer], "want creates of the missing nodes only")
	require.Equal(t, 1, p.Requests()[fault.OpMulti])
	failed(t, c.CreateContainers(ctx, path+"/closed"), framework.NotApplied, zk.ErrNoAuth)
}

func TestContainersAreMadeAfterALostRequestOrReply(t *testing.T) {
	for what, action := range faults {
		c, p := proxied(t)
		under := parent(t)
		p.On(fault.Match{Op: fault.OpCreateContainer, Path: under + "/x/y"}, action)
		require.NoError(t, c.CreateContainers(testzk.Context(t), under+"/x/y"), what)
		require.Equal(t, []string{"y"}, children(t, testzk.Observer(t), under+"/x"))
	}
}

// A container that exists at the search for parents may be deleted before a node is created in it.
func TestParentsAreSearchedAgainIfAnExistingOneIsDeleted(t *testing.T) {
	c, p := proxied(t)
	above, o := parent(t)+"/above", testzk.Observer(t)
	for _, n := range []int{1, 99, 100} {
		require.NoError(t, c.CreateContainers(testzk.Context(t), above))
		var vanish []*fault.Rule
		for range n {
			vanish = append(vanish, p.On(fault.Match{Op: fault.OpCreateContainer, Path: above + "/x"}, fault.Hold()))
		}
		result := make(chan error, 1)
		go func() { result <- c.CreateContainers(t.Context(), above+"/x") }()
		for _, held := range vanish {
			require.NoError(t, held.Wait(testzk.Context(t)))
			require.NoError(t, o.Delete(above, -1))
			held.Release()
		}
		if n == 100 {
			failed(t, <-result, framework.NotApplied, zk.ErrNoNode)
			continue
		}
		require.NoError(t, <-result)
		require.NoError(t, o.Delete(above+"/x", -1))
		testzk.Everywhere(t) // the client's server may not know of the deletion yet, and create nothing
	}
}
