package framework_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

func TestEphemeralsAreThoseOfTheSessionBelowThePrefix(t *testing.T) {
	c, other := testzk.Connected(t, testzk.Connect()), testzk.Connected(t, testzk.Connect())
	dir := parent(t)
	ctx := testzk.Context(t)
	for _, name := range []string{"a", "ab", "b"} {
		_, err := c.Create(ctx, dir+"/"+name, nil, framework.Ephemeral())
		require.NoError(t, err)
	}
	_, err := c.Create(ctx, dir+"/a-persistent", nil)
	require.NoError(t, err)
	_, err = other.Create(ctx, dir+"/a-other", nil, framework.Ephemeral())
	require.NoError(t, err)
	for prefix, want := range map[string][]string{
		dir + "/a": {dir + "/a", dir + "/ab"}, dir + "/": {dir + "/a", dir + "/ab", dir + "/b"},
		"/": {dir + "/a", dir + "/ab", dir + "/b"}, dir + "/c": {},
	} {
		got, err := c.Ephemerals(ctx, prefix)
		require.NoError(t, err)
		require.ElementsMatch(t, want, got, prefix)
		got, err = session(t, c).Ephemerals(ctx, prefix)
		require.NoError(t, err)
		require.ElementsMatch(t, want, got, prefix)
	}
	view := c.Namespace(dir[1:])
	got, err := view.Ephemerals(ctx, "/")
	require.NoError(t, err)
	slices.Sort(got)
	require.Equal(t, []string{"/a", "/ab", "/b"}, got)
	for _, prefix := range []string{"", "a"} {
		_, err := c.Ephemerals(ctx, prefix)
		failed(t, err, framework.NotApplied, framework.ErrInvalidPath)
	}
}

func TestCountAllCountsAllLevels(t *testing.T) {
	c, dir := testzk.Connected(t, testzk.Connect()), parent(t)
	ctx := testzk.Context(t)
	count := func(path string) int {
		n, err := c.CountAll(ctx, path)
		require.NoError(t, err)
		return n
	}
	require.Zero(t, count(dir))
	_, err := c.Create(ctx, dir+"/a/b/c", nil, framework.Parents())
	require.NoError(t, err)
	_, err = c.Create(ctx, dir+"/ab", nil)
	require.NoError(t, err)
	require.Equal(t, 4, count(dir))
	require.Equal(t, 2, count(dir+"/a"))
	_, err = c.CountAll(ctx, dir+"/none")
	failed(t, err, framework.NotApplied, zk.ErrNoNode)
}

func TestMultiReadReadsEachNodeOnItsOwn(t *testing.T) {
	c, dir := testzk.Connected(t, testzk.Connect()), parent(t)
	ctx, view := testzk.Context(t), c.Namespace(dir[1:])
	_, err := view.Create(ctx, "/a", []byte("data"))
	require.NoError(t, err)
	_, err = view.Create(ctx, "/a/b", nil)
	require.NoError(t, err)
	_, stat, err := view.Get(ctx, "/a")
	require.NoError(t, err)
	results, err := view.MultiRead(ctx, framework.GetOp("/a"), framework.ChildrenOp("/a"), framework.GetOp("/none"),
		framework.ChildrenOp("/none"), framework.ChildrenOp("/a/b"), framework.GetOp("/a/b"))
	require.NoError(t, err)
	require.Len(t, results, 6)
	require.Equal(t, framework.ReadResult{Data: []byte("data"), Stat: stat}, results[0])
	require.Equal(t, framework.ReadResult{Children: []string{"b"}}, results[1])
	for _, r := range results[2:4] {
		failed(t, r.Err, framework.NotApplied, zk.ErrNoNode)
		require.Nil(t, r.Stat)
	}
	require.NoError(t, results[4].Err)
	require.Empty(t, results[4].Children)
	require.Empty(t, results[5].Data)
	require.NotNil(t, results[5].Stat)

	for _, list := range [][]framework.ReadOp{
		nil, {framework.GetOp("a")}, {framework.GetOp("/a"), framework.ReadOp{}},
	} {
		_, err := view.MultiRead(ctx, list...)
		failed(t, err, framework.NotApplied)
	}
	var many []framework.ReadOp
	for i := range 40_000 {
		many = append(many, framework.GetOp(fmt.Sprintf("/%d", i)))
	}
	_, err = view.MultiRead(ctx, many...)
	failed(t, err, framework.NotApplied, framework.ErrTooLarge)
}

// recentReads are the reads that servers before 3.6 do not know.
var recentReads = map[fault.Op]func(ctx context.Context, c *framework.Client) error{
	fault.OpGetEphemerals: func(ctx context.Context, c *framework.Client) error {
		_, err := c.Ephemerals(ctx, "/")
		return err
	},
	fault.OpGetAllChildrenNumber: func(ctx context.Context, c *framework.Client) error {
		_, err := c.CountAll(ctx, "/")
		return err
	},
	fault.OpMultiRead: func(ctx context.Context, c *framework.Client) error {
		_, err := c.MultiRead(ctx, framework.GetOp("/"))
		return err
	},
}

func TestReadsThatAnOldServerDoesNotKnow(t *testing.T) {
	s := startOldServer(t)
	c := testzk.Connected(t, s.listener.Addr().String())
	for op, read := range recentReads {
		failed(t, read(testzk.Context(t), c), framework.NotApplied, framework.ErrUnimplemented)
		require.Equal(t, 1, s.count(op), op)
	}
	_, err := c.Create(testzk.Context(t), "/a", nil)
	require.NoError(t, err)
}

func TestReadsAreRepeatedAfterALostAnswer(t *testing.T) {
	srv := zktest.Start(t)
	c := testzk.Connected(t, srv.Addr())
	for op, read := range recentReads {
		for _, action := range []fault.Action{fault.DropBefore(), fault.DropAfter(), fault.Truncate(2)} {
			rule := srv.On(fault.Match{Op: op}, action)
			require.NoError(t, read(testzk.Context(t), c), "%v: %v", op, action)
			require.Equal(t, 1, rule.Hits())
		}
	}
}
