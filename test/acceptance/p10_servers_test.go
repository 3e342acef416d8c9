package acceptance_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/proxy"
)

// SetServers replaces the servers at run time. The client leaves a server that is not among the new
// ones, and continues on one of them with the same session and the same lock. This is repeated 10
// times.
func TestP10_ServersAreReplacedWithoutLosingTheSession(t *testing.T) {
	first, _, _ := strings.Cut(testzk.Connect(), ",")
	fronts := []*proxy.Proxy{proxy.Start(t, first), proxy.Start(t, first)}
	ctx, path := testzk.Context(t), testzk.Path(t)
	c := testzk.Connected(t, fronts[0].Addr(), long())
	mu, err := mutex.New(c, path)
	require.NoError(t, err)
	hold, err := mu.Acquire(ctx)
	require.NoError(t, err)
	for i := range 10 {
		to := fronts[(i+1)%2]
		to.ResetCounts()
		require.NoError(t, c.SetServers(to.Addr()))
		require.NoError(t, c.Sync(ctx, "/"))
		testzk.Eventually(t, func() bool { return to.Requests()[fault.OpMulti] > 0 }, "the new server is not used")
		require.NoError(t, hold.Err())
	}
	require.NoError(t, c.SetServers(fronts[0].Addr()+","+fronts[1].Addr()))
	fronts[0].ResetCounts()
	require.NoError(t, c.Sync(ctx, "/"), "the client must not leave a server that is still in the list")
	require.Equal(t, 1, fronts[0].Requests()[fault.OpMulti])
	require.NoError(t, hold.Release())
}

// A client whose servers are all wrong connects as soon as SetServers names a right one. Invalid
// strings and another chroot are refused with an error that has them, and change nothing.
func TestP10_ServersAreReplacedWhileNoneIsReachable(t *testing.T) {
	c := testzk.Client(t, "127.0.0.1:1/app")
	ctx := testzk.Context(t)
	connected := make(chan error, 1)
	go func() { connected <- c.WaitConnected(ctx) }()
	require.ErrorContains(t, c.SetServers(testzk.Connect()+"/other"), `"/other"`)
	require.ErrorContains(t, c.SetServers(testzk.Connect()), `"/app"`)
	require.ErrorContains(t, c.SetServers("a:b:c/app"), "a:b:c")
	require.NoError(t, c.SetServers(testzk.Connect()+"/app"))
	require.NoError(t, <-connected)
	require.NoError(t, c.Close())
	require.ErrorIs(t, c.SetServers(testzk.Connect()+"/app"), framework.ErrClosed)
	require.ErrorIs(t, (&framework.Client{}).SetServers("a:1"), framework.ErrZeroValue)
}

// Many concurrent calls of SetServers leave one of their lists in use, and a connection.
func TestP10_ServersAreReplacedByManyAtOnce(t *testing.T) {
	first, _, _ := strings.Cut(testzk.Connect(), ",")
	fronts := []*proxy.Proxy{proxy.Start(t, first), proxy.Start(t, first)}
	c := testzk.Connected(t, fronts[0].Addr(), long())
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() { require.NoError(t, c.SetServers(fronts[i%2].Addr())) })
	}
	all.Wait()
	ctx, cancel := context.WithCancel(testzk.Context(t))
	defer cancel()
	require.NoError(t, c.Sync(ctx, "/"))
}
