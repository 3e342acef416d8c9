package persistent_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/persistent"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// virtually runs a test in virtual time on a server of its own.
func virtually(t *testing.T, test func(t *testing.T, srv *zktest.Server), opts ...zktest.Option) {
	t.Helper()
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) { test(t, srv) }, opts...)
}

// client returns a client of srv with a name.
func client(t testing.TB, srv *zktest.Server, name string, opts ...framework.Option) *framework.Client {
	t.Helper()
	dialer := framework.WithDialer(srv.Client(name).DialContext)
	return testzk.Connected(t, srv.MemAddr(), append([]framework.Option{dialer}, opts...)...)
}

// expire expires the sessions of a client of srv.
func expire(t testing.TB, srv *zktest.Server, name string) {
	t.Helper()
	for _, s := range srv.Client(name).Sessions() {
		require.NoError(t, s.Expire())
	}
}

// settle waits for everything that happens without the end of a session.
func settle() {
	time.Sleep(2 * time.Second)
	synctest.Wait()
}

// outage waits for longer than the session timeout.
func outage() {
	time.Sleep(2 * testzk.SessionTimeout)
	synctest.Wait()
}

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
	require.NoError(t, n.Await(testzk.Context(t)))
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
