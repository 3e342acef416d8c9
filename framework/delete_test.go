package framework_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest/fault"
)

// protectedName is a format for protected node names. Each name is used once.
const protectedName = "_c_00000000-0000-4000-8000-%012d-n"

// makeNodes creates nodes below a new parent: n protected ones and one with a name of its own.
func makeNodes(t testing.TB, n int) (under string, paths []string) {
	t.Helper()
	under = parent(t)
	for i := range n {
		paths = append(paths, under+"/"+fmt.Sprintf(protectedName, i))
	}
	paths = append(paths, under+"/name")
	o := testzk.Observer(t)
	for _, path := range paths {
		require.NoError(t, create(o, path))
	}
	return under, paths
}

func TestGuaranteedDeleteOfSeveralNodesIsOneTransaction(t *testing.T) {
	for _, namespaced := range []bool{false, true} {
		c, p := proxied(t)
		under, paths := makeNodes(t, 3)
		view, names := c, paths
		if namespaced {
			view, names = c.Namespace(under[1:]), nil
			for _, path := range paths {
				names = append(names, strings.TrimPrefix(path, under))
			}
		}
		p.ResetCounts()
		require.NoError(t, view.DeleteGuaranteed(testzk.Context(t), names...))
		require.Equal(t, 1, p.Requests()[fault.OpMulti])
		require.Zero(t, p.Requests()[fault.OpDelete])
		require.Empty(t, children(t, testzk.Observer(t), under))
	}
}

func TestGuaranteedDeleteOfSeveralNodesDeletesTheExistingOnes(t *testing.T) {
	o := testzk.Observer(t)
	for missing := range 3 {
		c, _ := proxied(t)
		under, paths := makeNodes(t, 2)
		require.NoError(t, o.Delete(paths[missing], -1))
		err := c.DeleteGuaranteed(testzk.Context(t), paths...)
		failed(t, err, framework.NotApplied, zk.ErrNoNode)
		require.Empty(t, children(t, o, under), "node %d was missing", missing)
	}
	c, _ := proxied(t)
	under := parent(t)
	err := c.DeleteGuaranteed(testzk.Context(t), under+"/a", under+"/b")
	failed(t, err, framework.NotApplied, zk.ErrNoNode)
}

func TestGuaranteedDeleteOfSeveralNodesDeletesAllThatTheServerAllows(t *testing.T) {
	o := testzk.Observer(t)
	c, _ := proxied(t)
	under, paths := makeNodes(t, 2)
	require.NoError(t, create(o, paths[1]+"/child"))
	err := c.DeleteGuaranteed(testzk.Context(t), paths...)
	failed(t, err, framework.NotApplied, zk.ErrNotEmpty)
	require.Len(t, children(t, o, under), 1)

	locked := parent(t)
	require.NoError(t, create(o, locked+"/a"))
	_, err = o.SetACL(locked, zk.WorldACL(zk.PermAll&^zk.PermDelete), -1)
	require.NoError(t, err)
	open, others := makeNodes(t, 1)
	err = c.DeleteGuaranteed(testzk.Context(t), append([]string{locked + "/a"}, others...)...)
	failed(t, err, framework.NotApplied, zk.ErrNoAuth)
	require.Empty(t, children(t, o, open))
	require.Len(t, children(t, o, locked), 1)
}

// A recipe that deletes a node in the background cannot return the error.
func TestRefusedDeletionIsLogged(t *testing.T) {
	o := testzk.Observer(t)
	core, logs := observer.New(zap.DebugLevel)
	c := testzk.Connected(t, testzk.Connect(), framework.WithLogger(zap.New(core)))
	locked := parent(t)
	require.NoError(t, create(o, locked+"/a"))
	_, err := o.SetACL(locked, zk.WorldACL(zk.PermAll&^zk.PermDelete), -1)
	require.NoError(t, err)
	s := session(t, c)
	for _, node := range []string{locked + "/a", parent(t) + "/missing"} {
		require.Error(t, s.DeleteGuaranteed(testzk.Context(t), node))
	}
	closedAndLogged(t, c, logs)
	failed := logs.FilterMessage("background deletion failed").All()
	require.Len(t, failed, 1, "a node that is missing is no failure")
	require.Equal(t, locked+"/a", failed[0].ContextMap()["path"])
}

func TestGuaranteedDeleteOfSeveralNodesAfterALostRequestOrReply(t *testing.T) {
	o := testzk.Observer(t)
	for what, action := range faults {
		c, p := proxied(t, framework.WithRetry(retry.Never()))
		under, paths := makeNodes(t, 2)
		p.On(fault.Match{Op: fault.OpMulti, Times: 2}, action)
		require.NoError(t, c.DeleteGuaranteed(testzk.Context(t), paths...), "%s: NoNode means success", what)
		require.Empty(t, children(t, o, under), what)
	}
}

// Some of the nodes may have names that are used again. That does not stop the deletion of the
// others.
func TestLostRequestDoesNotEndTheDeletionOfNodesWithoutProtection(t *testing.T) {
	o := testzk.Observer(t)
	c, p := proxied(t)
	under := parent(t)
	for _, name := range []string{"/n-1", "/n-2"} {
		require.NoError(t, create(o, under+name))
	}
	p.On(fault.Match{Op: fault.OpMulti}, fault.DropBefore())
	_ = c.DeleteGuaranteed(testzk.Context(t), under+"/n-0", under+"/n-1", under+"/n-2")
	require.Empty(t, children(t, o, under))
}

func TestGuaranteedDeleteRefusesBadPathsAndReportsThem(t *testing.T) {
	c, p := proxied(t)
	p.ResetCounts()
	many := make([]string, 20_000)
	for i := range many {
		many[i] = fmt.Sprintf("/a-path-that-is-not-so-short/%010d", i)
	}
	for name, row := range map[string]struct {
		paths []string
		says  string
		is    error
	}{
		"none":     {nil, "no paths", nil},
		"bad":      {[]string{"/a", "b"}, `"b"`, framework.ErrInvalidPath},
		"too many": {many, "limit", framework.ErrTooLarge},
	} {
		err := c.DeleteGuaranteed(testzk.Context(t), row.paths...)
		failed(t, err, framework.NotApplied)
		require.ErrorContains(t, err, row.says, name)
		if row.is != nil {
			require.ErrorIs(t, err, row.is, name)
		}
		bridge.OfSession(session(t, c)).DeleteLater(row.paths...) // it does not return an error
	}
	require.Zero(t, p.Requests()[fault.OpMulti]+p.Requests()[fault.OpDelete])
	var none context.Context
	require.ErrorIs(t, c.DeleteGuaranteed(none, "/a"), framework.ErrNilContext)
}

func TestGuaranteedDeleteOfSeveralNodesGoesOnAfterItsContextHasEnded(t *testing.T) {
	c, p := proxied(t, framework.WithRetry(retry.Never()))
	under, paths := makeNodes(t, 2)
	require.NoError(t, p.Refuse(true))
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	failed(t, c.DeleteGuaranteed(ctx, paths...), framework.Unknown, context.DeadlineExceeded)
	require.NoError(t, p.Refuse(false))
	testzk.Empty(t, under)
}

func TestDeleteLaterDeletesWithoutWaiting(t *testing.T) {
	c, p := proxied(t)
	under, paths := makeNodes(t, 2)
	held := p.On(fault.Match{Op: fault.OpMulti}, fault.Hold())
	s := bridge.OfSession(session(t, c))
	within(t, "DeleteLater", func() { s.DeleteLater(paths...) })
	require.NoError(t, held.Wait(testzk.Context(t)))
	require.Len(t, children(t, testzk.Observer(t), under), len(paths))
	held.Release()
	testzk.Empty(t, under)
	require.NoError(t, c.Close())
	s.DeleteLater(paths...) // does nothing once the client is closed
}
