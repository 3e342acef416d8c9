package framework_test

import (
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
			c := testzk.Connected(t, s.listener.Addr().String(), framework.WithRetry(policy))
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
	require.Equal(t, 3, p.Requests()[fault.OpCreateContainer], "want creates of the missing nodes only")
	failed(t, c.CreateContainers(ctx, path+"/closed"), framework.NotApplied, zk.ErrNoAuth)
}

func TestParentsAreMadeAfterALostRequestOrReply(t *testing.T) {
	for what, action := range faults {
		c, p := proxied(t)
		under := parent(t)
		p.On(fault.Match{Op: fault.OpCreateContainer, Path: under + "/x/y"}, action)
		made, err := c.Create(testzk.Context(t), under+"/x/y/n", nil, framework.Parents())
		require.NoError(t, err, "a lost reply about a parent makes the create of the node fail: %s", what)
		require.Equal(t, under+"/x/y/n", made)
	}
}

func TestParentsDeletedInBetweenAreMadeAgain(t *testing.T) {
	c, p := proxied(t)
	ctx, under, o := testzk.Context(t), parent(t), testzk.Observer(t)
	second := p.On(fault.Match{Op: fault.OpCreate, Path: under, Skip: 1}, fault.Hold())
	result := make(chan error, 1)
	go func() {
		_, err := c.Create(ctx, under+"/x/n", nil, framework.Parents())
		result <- err
	}()
	require.NoError(t, second.Wait(ctx))
	require.NoError(t, o.Delete(under+"/x", -1))
	second.Release()
	require.NoError(t, <-result)
	require.Equal(t, []string{"n"}, children(t, o, under+"/x"))
}

// A container that exists at the search for parents may be deleted before a node is created in it.
func TestParentsAreSearchedAgainIfAnExistingOneIsDeleted(t *testing.T) {
	c, p := proxied(t)
	ctx, above, o := testzk.Context(t), parent(t)+"/above", testzk.Observer(t)
	for _, n := range []int{1, 9, 10} {
		require.NoError(t, c.CreateContainers(ctx, above))
		var vanish []*fault.Rule
		for range n {
			vanish = append(vanish, p.On(fault.Match{Op: fault.OpCreateContainer, Path: above + "/x"}, fault.Hold()))
		}
		result := make(chan error, 1)
		go func() { result <- c.CreateContainers(ctx, above+"/x") }()
		for _, held := range vanish {
			require.NoError(t, held.Wait(ctx))
			require.NoError(t, o.Delete(above, -1))
			held.Release()
		}
		if n == 10 {
			failed(t, <-result, framework.NotApplied, zk.ErrNoNode)
			continue
		}
		require.NoError(t, <-result)
		require.NoError(t, o.Delete(above+"/x", -1))
		testzk.Everywhere(t) // the client's server may not know of the deletion yet, and create nothing
	}
}
