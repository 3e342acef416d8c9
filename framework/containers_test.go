package framework_test

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest/proxy"
)

func TestParentsAreContainersThatTheServerReaps(t *testing.T) {
	t.Parallel()
	e := testzk.Own(t, time.Second)
	c := testzk.Connected(t, e.Connect())
	ctx := testzk.Context(t)
	require.NoError(t, c.CreateContainers(ctx, "/a/b"))
	_, err := c.Create(ctx, "/x/y/n", nil, framework.WithParents())
	require.NoError(t, err)
	_, err = c.Create(ctx, "/c", nil, framework.Container())
	require.NoError(t, err)
	_, err = c.Create(ctx, "/plain", nil)
	require.NoError(t, err)
	for _, child := range []string{"/a/b/n", "/c/n", "/plain/n"} { // only what has had a child is reaped
		_, err := c.Create(ctx, child, nil)
		require.NoError(t, err)
		require.NoError(t, c.Delete(ctx, child, -1))
	}
	require.NoError(t, c.Delete(ctx, "/x/y/n", -1))
	testzk.Eventually(t, func() bool {
		names, _, err := c.Children(ctx, "/")
		return err == nil && len(names) == 2
	}, "the containers are left, or the plain node was not")
	names, _, err := c.Children(ctx, "/")
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"plain", "zookeeper"}, names)
}

// The server that says that it does not know an operation hangs up, and whatever is under way is lost.
func TestServersWithoutContainersGetPersistentNodes(t *testing.T) {
	for name, policy := range map[string]retry.Policy{"patient": retry.Times(5, time.Millisecond), "never": retry.Never()} {
		t.Run(name, func(t *testing.T) {
			s := startOldServer(t)
			c := testzk.Connected(t, s.listener.Addr().String(), framework.WithRetry(policy))
			ctx := testzk.Context(t)
			made, err := c.Create(ctx, "/c", nil, framework.Container())
			require.NoError(t, err)
			require.Equal(t, "/c", made)
			require.NoError(t, c.CreateContainers(ctx, "/a/b"))
			_, err = c.Create(ctx, "/x/y/n", nil, framework.WithParents())
			require.NoError(t, err)
			require.Equal(t, 1, s.count(proxy.OpCreateContainer), "asked once")
			require.Equal(t, map[string]bool{"/c": true, "/a": true, "/a/b": true, "/x": true, "/x/y": true, "/x/y/n": true}, s.nodes)
		})
	}
}

func TestParentsNeedNoPermissionAboveWhatExists(t *testing.T) {
	ctx, path := testzk.Context(t), testzk.Path(t)
	owner := testzk.Connected(t, testzk.Connect())
	require.NoError(t, owner.CreateContainers(ctx, path+"/open"))
	nothing := zk.DigestACL(zk.PermAll, "some", "body")
	_, err := owner.SetACL(ctx, path, nothing, -1)
	require.NoError(t, err)
	testzk.Everywhere(t)
	c, p := through(t)
	require.NoError(t, c.CreateContainers(ctx, path+"/open/a/b"))
	_, err = c.Create(ctx, path+"/open/c/n", nil, framework.WithParents())
	require.NoError(t, err)
	require.NoError(t, c.CreateContainers(ctx, path+"/open"), "it exists")
	require.NoError(t, c.CreateContainers(ctx, path))
	require.Equal(t, 3, p.Requests()[proxy.OpCreateContainer], "only what was missing")
	failed(t, c.CreateContainers(ctx, path+"/closed"), framework.NotApplied, zk.ErrNoAuth)
}

func TestParentsAreMadeWhateverIsLost(t *testing.T) {
	for fault, action := range faults {
		c, p := through(t)
		under := parent(t)
		p.On(proxy.Match{Op: proxy.OpCreateContainer, Path: under + "/x/y"}, action)
		made, err := c.Create(testzk.Context(t), under+"/x/y/n", nil, framework.WithParents())
		require.NoError(t, err, "an answer about a parent says nothing about the node: %s", fault)
		require.Equal(t, under+"/x/y/n", made)
	}
}

func TestParentsThatVanishInBetweenAreMadeAgain(t *testing.T) {
	c, p := through(t)
	ctx, under, o := testzk.Context(t), parent(t), testzk.Observer(t)
	second := p.On(proxy.Match{Op: proxy.OpCreate, Path: under, Skip: 1}, proxy.Hold())
	result := make(chan error, 1)
	go func() {
		_, err := c.Create(ctx, under+"/x/n", nil, framework.WithParents())
		result <- err
	}()
	require.NoError(t, second.Wait(ctx))
	require.NoError(t, o.Delete(under+"/x", -1))
	second.Release()
	require.NoError(t, <-result)
	require.Equal(t, []string{"n"}, children(t, o, under+"/x"))
}

// What exists when the parents are looked for may be reaped before anything is made in it.
func TestParentsAreLookedForAgainWhenTheOneAboveVanishes(t *testing.T) {
	c, p := through(t)
	ctx, above, o := testzk.Context(t), parent(t)+"/above", testzk.Observer(t)
	for _, n := range []int{1, 9, 10} {
		require.NoError(t, c.CreateContainers(ctx, above))
		var vanish []*proxy.Rule
		for range n {
			vanish = append(vanish, p.On(proxy.Match{Op: proxy.OpCreateContainer, Path: above + "/x"}, proxy.Hold()))
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
	}
}
