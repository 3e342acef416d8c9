package persistent_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/persistent"
	"github.com/docent-zk/docent/zktest"
)

// The helpers of all recipes.
var (
	virtually = testlock.Virtually
	client    = testlock.Named
	expire    = testlock.Expire
	settle    = testlock.Rest
	outage    = testlock.Outage
)

const (
	path = "/services/orders/host-3"
	data = "10.0.0.3:8080"
)

func newNode(t testing.TB, c *framework.Client, path string, opts ...persistent.Option) *persistent.Node {
	t.Helper()
	n, err := persistent.New(c, path, []byte(data), opts...)
	require.NoError(t, err)
	return n
}

// started returns a Node that is kept until the test ends.
func started(t testing.TB, c *framework.Client, path string, opts ...persistent.Option) *persistent.Node {
	t.Helper()
	n := newNode(t, c, path, opts...)
	require.NoError(t, n.Start(context.Background()))
	t.Cleanup(func() { _ = n.Close() })
	return n
}

// kept returns a Node that is there.
func kept(t testing.TB, c *framework.Client, path string, opts ...persistent.Option) *persistent.Node {
	t.Helper()
	n := started(t, c, path, opts...)
	await(t, n)
	return n
}

func await(t testing.TB, n *persistent.Node) {
	t.Helper()
	require.NoError(t, n.WaitReady(testzk.Context(t)))
}

// owner returns the session that owns the node.
func owner(t testing.TB, srv *zktest.Server, path string) int64 {
	t.Helper()
	stat, err := srv.Stat(path)
	require.NoError(t, err)
	return stat.EphemeralOwner
}

func content(t testing.TB, srv *zktest.Server, path string) string {
	t.Helper()
	got, err := srv.Get(path)
	require.NoError(t, err)
	return string(got)
}

func closes(t testing.TB, c <-chan struct{}, message string) {
	t.Helper()
	select {
	case <-c:
	case <-testzk.Context(t).Done():
		require.FailNow(t, message)
	}
}
