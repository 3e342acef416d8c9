package framework_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/retry"
)

// views returns clients by name. Each has path as its root in another way. path does not exist yet.
func views(t testing.TB, path string) map[string]*framework.Client {
	t.Helper()
	server, name := testzk.Connect(), path[1:]
	dir, base, _ := strings.Cut(name, "/")
	return map[string]*framework.Client{
		"namespace":             testzk.Connected(t, server, framework.WithNamespace(name)),
		"view":                  testzk.Connected(t, server).Namespace(name),
		"view of a view":        testzk.Connected(t, server).Namespace(dir).Namespace(base),
		"view of a namespace":   testzk.Connected(t, server, framework.WithNamespace(dir)).Namespace(base),
		"namespace in a chroot": testzk.Connected(t, server+"/"+dir, framework.WithNamespace(base)),
		"view of an empty name": testzk.Connected(t, server).Namespace(name).Namespace(""),
	}
}

func TestViewsTranslateAllPaths(t *testing.T) {
	o := testzk.Observer(t)
	names := []string{
		"namespace", "view", "view of a view", "view of a namespace", "namespace in a chroot", "view of an empty name",
	}
	for _, name := range names {
		path, ctx := testzk.Path(t), testzk.Context(t)
		dir := path[:strings.LastIndexByte(path, '/')]
		if name == "view of a view" || strings.Contains(name, "chroot") || name == "view of a namespace" {
			_, err := testzk.Connected(t, testzk.Connect()).Create(ctx, dir, nil)
			require.NoError(t, err)
		}
		v := views(t, path)[name]
		made, err := v.Create(ctx, "/a", []byte("x"))
		require.NoError(t, err, "%s: the root was not created", name)
		require.Equal(t, "/a", made)
		data, _, there := observe(t, o, path+"/a")
		require.True(t, there, name)
		require.Equal(t, "x", string(data))

		made, err = v.Create(ctx, "/", nil, framework.Sequential())
		require.NoError(t, err)
		require.Regexp(t, "^/[0-9]{10}$", made, "want a node below the root")
		require.NoError(t, v.Delete(ctx, made, -1))
		_, err = v.Create(ctx, "/", nil)
		require.ErrorIs(t, err, zk.ErrNodeExists)
		list, _, err := v.Children(ctx, "/")
		require.NoError(t, err)
		require.Equal(t, []string{"a"}, list)
		results, err := v.Multi(ctx, framework.CheckOp("/", -1), framework.CreateOp("/b", nil))
		require.NoError(t, err)
		require.Equal(t, "/b", results[1].Path)
		s := session(t, v)
		_, _, err = s.Get(ctx, "/b")
		require.NoError(t, err, "the session does not have the root of its client")
		require.NoError(t, v.CreateContainers(ctx, "/c/d"))
		_, _, there = observe(t, o, path+"/c/d")
		require.True(t, there, name)
		_, _, err = v.Get(ctx, "/missing")
		var e *framework.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, "/missing", e.Path, "want the path of the caller")
		err = v.DeleteGuaranteed(ctx, "/missing")
		require.ErrorAs(t, err, &e)
		require.Equal(t, "/missing", e.Path, "want the path of the caller")
	}
}

func TestRootOfANamespaceIsAContainer(t *testing.T) {
	ctx, path := testzk.Context(t), testzk.Path(t)
	c := testzk.Connected(t, testzk.Connect())
	v := c.Namespace(path[1:])
	require.NoError(t, v.CreateContainers(ctx, "/"))
	_, stat, there := observe(t, testzk.Observer(t), path)
	require.True(t, there)
	require.Zero(t, stat.DataLength)
}

func TestKeysAreEqualForTheSameNodeOnly(t *testing.T) {
	c, other := refusedClient(t), refusedClient(t)
	require.Equal(t, bridge.Of(c).Key("/a/b/c"), bridge.Of(c.Namespace("a")).Key("/b/c"))
	require.Equal(t, bridge.Of(c).Key("/a/b/c"), bridge.Of(c.Namespace("a/b")).Key("/c"))
	require.Equal(t, bridge.Of(c).Key("/a"), bridge.Of(c.Namespace("a")).Key("/"))
	require.NotEqual(t, bridge.Of(c).Key("/a"), bridge.Of(other).Key("/a"))
	require.NotEqual(t, bridge.Of(c).Key("/a"), bridge.Of(c).Key("/b"))
}

func TestViewOfAnInvalidPathCannotBeUsed(t *testing.T) {
	c := testzk.Connected(t, testzk.Connect())
	for _, name := range []string{"/a", "a/", "a//b", "..", "a\x00"} {
		v := c.Namespace(name)
		for what, op := range each {
			err := op(testzk.Context(t), v, "/a")
			require.ErrorIs(t, err, framework.ErrInvalidPath, "%s in %q", what, name)
			require.ErrorContains(t, err, "namespace ")
			require.Equal(t, framework.NotApplied, framework.OutcomeOf(err))
		}
		require.ErrorIs(t, bridge.Of(v).Validate(), framework.ErrInvalidPath)
		require.ErrorIs(t, bridge.Of(v.Namespace("fine")).Validate(), framework.ErrInvalidPath, "a view of the view")
		require.ErrorIs(t, v.WaitConnected(testzk.Context(t)), framework.ErrInvalidPath)
	}
	require.NoError(t, bridge.Of(c).Validate())
}

func TestViewsCannotBeClosed(t *testing.T) {
	c := testzk.Connected(t, testzk.Connect(), framework.WithNamespace("a"))
	v := c.Namespace("b")
	require.ErrorContains(t, v.Close(), `close of the view of namespace "/a/b"`)
	require.NoError(t, c.Sync(testzk.Context(t), "/"))
	require.Equal(t, framework.Connected, v.State())
	require.NoError(t, c.Close())
	require.Equal(t, framework.Closed, v.State())
	require.Error(t, v.Close())
}

// aclRecorder records the paths for which an ACL was requested.
type aclRecorder struct {
	mu    sync.Mutex
	paths []string
}

func (a *aclRecorder) provide(path string) []zk.ACL {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.paths = append(a.paths, path)
	if strings.HasSuffix(path, "/world") {
		return zk.WorldACL(zk.PermAll)
	}
	return zk.WorldACL(zk.PermAll &^ zk.PermAdmin)
}

// A path that the function has forgotten is not open to all clients.
func TestNoNodeIsCreatedWithoutAnACL(t *testing.T) {
	under := parent(t)
	c := testzk.Connected(t, testzk.Connect(), framework.WithACL(func(path string) []zk.ACL {
		if strings.HasSuffix(path, "/listed") {
			return zk.WorldACL(zk.PermAll)
		}
		return nil
	}))
	ctx := testzk.Context(t)
	for path, opts := range map[string][]framework.CreateOption{
		"/forgotten":      nil,
		"/container":      {framework.Container()},
		"/parents/listed": {framework.Parents()},
		"/lock-":          kinds["lock node"],
	} {
		_, err := c.Create(ctx, under+path, nil, opts...)
		failed(t, err, framework.NotApplied, zk.ErrInvalidACL)
	}
	_, err := c.Multi(ctx, framework.CreateOp(under+"/listed", nil), framework.CreateOp(under+"/forgotten", nil))
	failed(t, err, framework.NotApplied, zk.ErrInvalidACL)
	require.Empty(t, children(t, testzk.Observer(t), under))
	_, err = c.Create(ctx, under+"/listed", nil)
	require.NoError(t, err)
}

func TestACLProviderGetsFullPathsAndParents(t *testing.T) {
	under, provider := parent(t), &aclRecorder{}
	c := testzk.Connected(t, testzk.Connect(), framework.WithNamespace(under[1:]), framework.WithACL(provider.provide),
		framework.WithRetry(retry.Never()))
	ctx := testzk.Context(t)
	made, err := c.Create(ctx, "/p/q/lock-", nil, append(kinds["lock node"], framework.Parents())...)
	require.NoError(t, err)
	_, err = c.Create(ctx, "/world", nil)
	require.NoError(t, err)
	_, err = c.Create(ctx, "/own", nil, framework.ACL(zk.WorldACL(zk.PermAll)...))
	require.NoError(t, err)
	_, err = c.Multi(ctx, framework.CreateOp("/m", nil))
	require.NoError(t, err)
	numbered := made[:len(made)-10]
	paths := []string{under + numbered, under + "/p/q", under + "/p", under + "/world", under + "/m"}
	require.Equal(t, paths, provider.paths)
	for path, want := range map[string]int32{
		made: zk.PermAll &^ zk.PermAdmin, "/p": zk.PermAll &^ zk.PermAdmin, "/p/q": zk.PermAll &^ zk.PermAdmin,
		"/m": zk.PermAll &^ zk.PermAdmin, "/world": zk.PermAll, "/own": zk.PermAll,
	} {
		acl, _, err := c.GetACL(ctx, path)
		require.NoError(t, err)
		require.Equal(t, want, acl[0].Perms, path)
	}
}
