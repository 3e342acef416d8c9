package persistent_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/persistent"
)

// These tests run on real servers too.

// stat waits until the node is there with the data, and returns its Stat.
func stat(t *testing.T, observer *testzk.Conn, path, want string) *zk.Stat {
	t.Helper()
	var found *zk.Stat
	testzk.Eventually(t, func() bool {
		data, stat, err := observer.Get(path)
		found = stat
		return err == nil && string(data) == want
	}, "the node is not there with %q", want)
	return found
}

func gone(t *testing.T, observer *testzk.Conn, path string) {
	t.Helper()
	exists, _, err := observer.Exists(path)
	require.NoError(t, err)
	require.False(t, exists)
}

func TestModesOnServers(t *testing.T) {
	for name, opts := range modes {
		if name == "ttl" {
			continue // needs a setting of the servers
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, observer := testzk.Connected(t, testzk.Connect()), testzk.Observer(t)
			n := kept(t, c, testzk.Path(t), opts...)
			at := n.Path()
			stat(t, observer, at, data)
			require.NoError(t, n.SetData([]byte("new")))
			await(t, n)
			before := stat(t, observer, at, "new")
			require.EqualValues(t, 1, before.Version)
			require.NoError(t, observer.Delete(at, -1))
			testzk.Eventually(t, func() bool {
				exists, after, err := observer.Exists(n.Path() + map[bool]string{true: "x"}[n.Path() == ""])
				return err == nil && exists && after.Czxid > before.Czxid
			}, "the node does not come back")
			await(t, n)
			at = n.Path()
			require.NoError(t, n.Close())
			gone(t, observer, at)
		})
	}
}

// The next Node starts as soon as the last one is told to end.
func TestNextNodeOfAnotherKindOnServers(t *testing.T) {
	c, observer, at := testzk.Connected(t, testzk.Connect()), testzk.Observer(t), testzk.Path(t)
	var last *persistent.Node
	end := func() {}
	order := []string{"persistent", "ephemeral", "container", "persistent", "container", "ephemeral", "persistent"}
	for i, mode := range order {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		n, err := persistent.New(c, at, fmt.Append(nil, i), modes[mode]...)
		require.NoError(t, err)
		end()
		require.NoError(t, n.Start(ctx))
		await(t, n)
		require.Equal(t, mode == "ephemeral", stat(t, observer, at, fmt.Sprint(i)).EphemeralOwner != 0)
		if last != nil {
			require.NoError(t, last.Close())
		}
		last, end = n, cancel
	}
	require.NoError(t, last.Close())
	gone(t, observer, at)
}

func TestNodeComesBackInTheNextSession(t *testing.T) {
	t.Parallel()
	p, observer, path := testzk.Proxy(t), testzk.Observer(t), testzk.Path(t)
	c := testzk.Connected(t, p.Addr(), testzk.Mortal())
	n := kept(t, c, path)
	before := stat(t, observer, path, data)
	session, err := c.Session(t.Context())
	require.NoError(t, err)
	p.Blackhole(true)
	closes(t, session.Done(), "the session does not end")
	require.Empty(t, n.Path())
	require.NoError(t, n.SetData([]byte("new")))
	p.Blackhole(false)
	await(t, n)
	after := stat(t, observer, path, "new")
	require.NotEqual(t, before.EphemeralOwner, after.EphemeralOwner)
	require.NoError(t, n.Close())
	gone(t, observer, path)
}

func TestNodeStaysOnAReconnect(t *testing.T) {
	t.Parallel()
	p, observer, path := testzk.Proxy(t), testzk.Observer(t), testzk.Path(t)
	c := testzk.Connected(t, p.Addr())
	states := make(chan framework.State, 10)
	defer c.Listen(func(s framework.StateChange) { states <- s.State })()
	n := kept(t, c, path)
	before := stat(t, observer, path, data)
	p.DropConnections()
	for s := range states {
		if s == framework.Reconnected {
			break
		}
	}
	await(t, n)
	require.Equal(t, before, stat(t, observer, path, data))
}

func TestNodeOutlastsItsServer(t *testing.T) {
	t.Parallel()
	server := testzk.Own(t, testzk.Seldom)
	c, path := testzk.Connected(t, server.Connect(), testzk.Mortal()), testzk.Path(t)
	n := kept(t, c, path)
	server.Kill(t)
	require.NoError(t, n.SetData([]byte("killed")))
	server.Start(t)
	await(t, n)
	observer := testzk.ObserverOf(t, server.Connect())
	stat(t, observer, path, "killed")
	server.Pause(t)
	require.NoError(t, n.SetData([]byte("paused")))
	server.Resume(t)
	await(t, n)
	stat(t, observer, path, "paused")
	server.Kill(t)
	server.Wipe(t)
	server.Start(t)
	testzk.Eventually(t, func() bool { return c.State().IsConnected() }, "no connection")
	await(t, n)
	stat(t, testzk.ObserverOf(t, server.Connect()), path, "paused")
	require.NoError(t, n.Close())
}

// A program crashes and starts again, twice.
func TestNodeOfACrashedProgram(t *testing.T) {
	t.Parallel()
	observer, path := testzk.Observer(t), testzk.Path(t)
	p := testzk.Proxy(t)
	crashed := testzk.Connected(t, p.Addr(), testzk.Mortal())
	kept(t, crashed, path)
	before := stat(t, observer, path, data)
	p.Blackhole(true)
	next := testzk.Connected(t, testzk.Connect(), testzk.Mortal())
	n := kept(t, next, path) // waits for the session of the crashed program to expire
	after := stat(t, observer, path, data)
	require.Greater(t, after.Czxid, before.Czxid)
	ours := func(found []byte, stat zk.Stat) bool {
		return string(found) == data && stat.EphemeralOwner == after.EphemeralOwner
	}
	third := kept(t, testzk.Connected(t, testzk.Connect()), path, persistent.WithTakeover(ours))
	require.Greater(t, stat(t, observer, path, data).Czxid, after.Czxid)
	require.NoError(t, third.Err())
	require.NoError(t, n.Close())
	require.NoError(t, third.Close())
	gone(t, observer, path)
}
