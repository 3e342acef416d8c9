package framework_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/retry"
)

func TestOperationsHaveTheirEffects(t *testing.T) {
	c := testzk.Connected(t, testzk.Connect())
	for name, o := range map[string]operations{"client": c, "session": session(t, c)} {
		t.Run(name, func(t *testing.T) {
			ctx, path := testzk.Context(t), parent(t)
			require.NoError(t, o.Sync(ctx, path))
			made, err := o.Create(ctx, path+"/a", []byte("one"))
			require.NoError(t, err)
			require.Equal(t, path+"/a", made)

			data, stat, err := o.Get(ctx, made)
			require.NoError(t, err)
			require.Equal(t, "one", string(data))
			require.Zero(t, stat.Version)

			stat, err = o.Set(ctx, made, []byte("two"), 0)
			require.NoError(t, err)
			require.Equal(t, int32(1), stat.Version)
			stat, err = o.Set(ctx, made, []byte("three"), -1)
			require.NoError(t, err)
			require.Equal(t, int32(2), stat.Version)

			stat, err = o.Exists(ctx, made)
			require.NoError(t, err)
			require.Equal(t, int32(len("three")), stat.DataLength)

			names, stat, err := o.Children(ctx, path)
			require.NoError(t, err)
			require.Equal(t, []string{"a"}, names)
			require.Equal(t, int32(1), stat.NumChildren)

			readOnly := zk.WorldACL(zk.PermRead | zk.PermAdmin)
			stat, err = o.SetACL(ctx, made, readOnly, 0)
			require.NoError(t, err)
			require.Equal(t, int32(1), stat.Aversion)
			acl, stat, err := o.GetACL(ctx, made)
			require.NoError(t, err)
			require.Equal(t, readOnly, acl)
			require.Equal(t, int32(1), stat.Aversion)

			require.NoError(t, o.Delete(ctx, made, 2))
			require.NoError(t, o.CreateContainers(ctx, path+"/b/c"))
			require.NoError(t, o.CreateContainers(ctx, path+"/b/c"), "existing nodes are kept")
			require.NoError(t, o.DeleteGuaranteed(ctx, path+"/b/c"))
			require.NoError(t, o.Delete(ctx, path+"/b", -1))
			names, _, err = o.Children(ctx, path)
			require.NoError(t, err)
			require.Empty(t, names)
		})
	}
}

func TestKindsOfNodes(t *testing.T) {
	c := testzk.Connected(t, testzk.Connect())
	id := session(t, c).ID()
	require.NotZero(t, id)
	for name, row := range map[string]struct {
		path  string
		opts  []framework.CreateOption
		want  string // a pattern: # is a digit, G a GUID
		owner int64
	}{
		"persistent":    {"/n", nil, "/n", 0},
		"ephemeral":     {"/n", []framework.CreateOption{framework.Ephemeral()}, "/n", id},
		"sequential":    {"/n-", []framework.CreateOption{framework.Sequential()}, "/n-##########", 0},
		"only a number": {"/", []framework.CreateOption{framework.Sequential()}, "/##########", 0},
		"ephemeral sequential": {
			"/n-", []framework.CreateOption{framework.Ephemeral(), framework.Sequential()}, "/n-##########", id,
		},
		"protected": {"/n", []framework.CreateOption{framework.Protected()}, "/_c_G-n", 0},
		"protected lock": {
			"/lock-",
			[]framework.CreateOption{framework.Protected(), framework.Ephemeral(), framework.Sequential()},
			"/_c_G-lock-##########", id,
		},
		"protected number": {
			"/", []framework.CreateOption{framework.Protected(), framework.Sequential()}, "/_c_G-##########", 0,
		},
		"container": {"/n", []framework.CreateOption{framework.Container()}, "/n", 0},
		"protected container": {
			"/n", []framework.CreateOption{framework.Container(), framework.Protected()}, "/_c_G-n", 0,
		},
		"with a time to live": {"/n", []framework.CreateOption{framework.TTL(time.Hour)}, "/n", 0},
		"sequential, with a time to live": {
			"/n-", []framework.CreateOption{framework.TTL(time.Hour), framework.Sequential()}, "/n-##########", 0,
		},
		"with parents": {
			"/x/y/n", []framework.CreateOption{framework.Parents(), framework.Ephemeral()}, "/x/y/n", id,
		},
		"with an ACL": {"/n", []framework.CreateOption{framework.ACL(zk.WorldACL(zk.PermRead)...)}, "/n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, path := testzk.Context(t), parent(t)
			made, err := c.Create(ctx, path+row.path, []byte("data"), row.opts...)
			require.NoError(t, err)
			digit, hex := "[0-9]", "[0-9a-f]{%d}"
			guid := fmt.Sprintf(strings.Join([]string{hex, hex, hex, hex, hex}, "-"), 8, 4, 4, 4, 12)
			require.Regexp(t, "^"+path+strings.NewReplacer("#", digit, "G", guid).Replace(row.want)+"$", made)
			data, stat, err := c.Get(ctx, made)
			require.NoError(t, err)
			require.Equal(t, "data", string(data))
			require.Equal(t, row.owner, stat.EphemeralOwner)
		})
	}
}

func TestErrorsOfTheServerAreReturned(t *testing.T) {
	c := testzk.Connected(t, testzk.Connect())
	ctx, path := testzk.Context(t), parent(t)
	full, missing, ephemeral := path+"/full", path+"/missing", path+"/ephemeral"
	for _, child := range []string{full, full + "/child"} {
		_, err := c.Create(ctx, child, nil)
		require.NoError(t, err)
	}
	_, err := c.Create(ctx, ephemeral, nil, framework.Ephemeral())
	require.NoError(t, err)
	_, err = c.Create(ctx, path+"/secret", nil, framework.ACL(zk.DigestACL(zk.PermAll, "some", "body")...))
	require.NoError(t, err)

	for name, row := range map[string]struct {
		op   string
		path string
		want error
	}{
		"get":               {"get", missing, zk.ErrNoNode},
		"get secret":        {"get", path + "/secret", zk.ErrNoAuth},
		"get watched":       {"get watched", missing, zk.ErrNoNode},
		"exists":            {"exists", missing, zk.ErrNoNode},
		"children":          {"children", missing, zk.ErrNoNode},
		"children watched":  {"children watched", missing, zk.ErrNoNode},
		"set":               {"set", missing, zk.ErrNoNode},
		"set secret":        {"set", path + "/secret", zk.ErrNoAuth},
		"delete":            {"delete", missing, zk.ErrNoNode},
		"delete full":       {"delete", full, zk.ErrNotEmpty},
		"delete guaranteed": {"delete guaranteed", missing, zk.ErrNoNode},
		"guaranteed full":   {"delete guaranteed", full, zk.ErrNotEmpty},
		"get ACL":           {"get ACL", missing, zk.ErrNoNode},
		"set ACL":           {"set ACL", missing, zk.ErrNoNode},
		"create":            {"create", full, zk.ErrNodeExists},
		"create the root":   {"create", "/", zk.ErrNodeExists},
		"create below":      {"create", missing + "/a", zk.ErrNoNode},
		"create ephemeral":  {"create ephemeral", ephemeral, zk.ErrNodeExists},
		"below ephemeral":   {"create", ephemeral + "/a", zk.ErrNoChildrenForEphemerals},
		"multi create":      {"multi create", full, zk.ErrNodeExists},
		"multi set":         {"multi set", missing, zk.ErrNoNode},
		"multi delete":      {"multi delete", full, zk.ErrNotEmpty},
		"multi check":       {"multi check", missing, zk.ErrNoNode},
	} {
		err := each[row.op](ctx, c, row.path)
		failed(t, err, framework.NotApplied, row.want)
		require.False(t, framework.IsTransient(err), name)
		var e *framework.Error
		require.ErrorAs(t, err, &e, name)
		if !strings.HasPrefix(row.op, "multi") {
			require.Equal(t, row.path, e.Path, name)
			require.ErrorContains(t, err, row.path)
		}
	}
	_, err = c.Set(ctx, full, nil, 7)
	failed(t, err, framework.NotApplied, zk.ErrBadVersion)
	failed(t, c.Delete(ctx, full+"/child", 7), framework.NotApplied, zk.ErrBadVersion)
	_, err = c.SetACL(ctx, full, zk.WorldACL(zk.PermAll), 7)
	failed(t, err, framework.NotApplied, zk.ErrBadVersion)
	_, err = c.SetACL(ctx, full, []zk.ACL{}, -1)
	failed(t, err, framework.NotApplied, zk.ErrInvalidACL)
}

func TestMultiAppliesAllAndReturnsTheirResults(t *testing.T) {
	c := testzk.Connected(t, testzk.Connect())
	ctx, path := testzk.Context(t), parent(t)
	results, err := c.Multi(ctx,
		framework.CheckOp(path, 0),
		framework.CreateOp(path+"/a", []byte("1")),
		framework.CreateOp(path+"/s-", nil, framework.Ephemeral(), framework.Sequential()),
		framework.SetOp(path+"/a", []byte("22"), 0),
		framework.CreateOp(path+"/b", nil),
		framework.DeleteOp(path+"/b", -1))
	require.NoError(t, err)
	require.Len(t, results, 6)
	require.Equal(t, path+"/a", results[1].Path)
	require.Regexp(t, path+"/s-[0-9]{10}$", results[2].Path)
	require.Equal(t, int32(1), results[3].Stat.Version)
	require.Equal(t, path+"/b", results[4].Path)
	for i, r := range results {
		require.NoError(t, r.Err, "result %d", i)
	}
}

func TestFailedMultiAppliesNothingAndReturnsTheCause(t *testing.T) {
	c := testzk.Connected(t, testzk.Connect())
	ctx, path := testzk.Context(t), parent(t)
	results, err := c.Multi(ctx,
		framework.CreateOp(path+"/a", nil),
		framework.SetOp(path+"/missing", nil, -1),
		framework.DeleteOp(path, -1))
	failed(t, err, framework.NotApplied, zk.ErrNoNode)
	require.Len(t, results, 3)
	require.ErrorIs(t, results[0].Err, framework.ErrRolledBack)
	require.ErrorIs(t, results[1].Err, zk.ErrNoNode)
	require.NotErrorIs(t, results[1].Err, framework.ErrRolledBack)
	require.ErrorIs(t, results[2].Err, framework.ErrRolledBack)
	_, err = c.Exists(ctx, path+"/a")
	require.ErrorIs(t, err, zk.ErrNoNode)
}

func TestOperationsFailIfTheContextHasEnded(t *testing.T) {
	c := testzk.Connected(t, testzk.Connect())
	path := parent(t)
	cause := fmt.Errorf("the caller's reason")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	for name, op := range each {
		if name == "delete guaranteed" {
			continue // it goes on in the background and may have succeeded
		}
		err := op(ctx, c, path)
		failed(t, err, framework.NotApplied, context.Canceled, cause)
	}
	failed(t, c.WaitConnected(ctx), framework.NotApplied, context.Canceled, cause)
	_, err := c.Session(ctx)
	failed(t, err, framework.NotApplied, context.Canceled, cause)
}

// The length of a list in a reply may be wrong.
func TestACLThatIsLongerThanTheReplyIsAnError(t *testing.T) {
	for _, entries := range []uint32{math.MaxUint32, math.MaxInt32, 1} {
		server := startOldServer(t)
		server.entries = entries
		c := testzk.Connected(t, server.listener.Addr().String(), framework.WithRetry(retry.Never()))
		_, _, err := c.GetACL(testzk.Context(t), "/a")
		require.ErrorContains(t, err, "malformed reply")
	}
}

// The transaction may have been applied, but the reply does not say what it created.
func TestMultiWithTooFewResultsHasAnUnknownOutcome(t *testing.T) {
	server := startOldServer(t)
	c := testzk.Connected(t, server.listener.Addr().String(), framework.WithRetry(retry.Never()))
	results, err := c.Multi(testzk.Context(t), framework.CreateOp("/a", nil), framework.CheckOp("/", -1))
	require.ErrorContains(t, err, "malformed reply")
	require.Equal(t, framework.Unknown, framework.OutcomeOf(err))
	require.Empty(t, results)
}
