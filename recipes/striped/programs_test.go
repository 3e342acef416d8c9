package striped_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/striped"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// virtually runs a test in virtual time on a server of its own, with the locks of two clients.
func virtually(t *testing.T, test func(t *testing.T, srv *zktest.Server, a, b *striped.Striped)) {
	t.Helper()
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		connect := func(name string) *striped.Striped {
			dialer := framework.WithDialer(srv.Client(name).DialContext)
			return newStriped(t, testzk.Connected(t, srv.MemAddr(), dialer), "/locks", 8)
		}
		test(t, srv, connect("a"), connect("b"))
	})
}

func registered(t testing.TB, srv *zktest.Server) []string {
	t.Helper()
	names, err := srv.Children("/locks/programs")
	require.NoError(t, err)
	return names
}

// A waiter whose session is lost has its hold in the next session, which is registered, too.
func TestNextSessionIsRegistered(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server, a, b *striped.Striped) {
		hold := acquire(t, a.For(key))
		waiting := testlock.Start(t, b.For(key).Acquire)
		time.Sleep(time.Second)
		require.Len(t, registered(t, srv), 2)
		for _, s := range srv.Client("b").Sessions() {
			require.NoError(t, s.Expire())
		}
		time.Sleep(time.Second)
		require.Len(t, registered(t, srv), 1)
		require.NoError(t, hold.Release())
		require.NoError(t, waiting.Won(t).Release())
		require.Len(t, registered(t, srv), 2)
	})
}

// A session is registered once, also after a reconnect, and again if its node is deleted.
func TestSessionIsRegisteredOnce(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server, a, _ *striped.Striped) {
		use := func() { require.NoError(t, acquire(t, a.For(key)).Release()) }
		use()
		first := registered(t, srv)
		require.Len(t, first, 1)
		srv.ResetCounts()
		use()
		require.Zero(t, srv.Requests()[fault.OpGetData], "the second acquire makes a request more")
		srv.Client("a").Drop()
		use()
		require.Equal(t, first, registered(t, srv))
		require.NoError(t, srv.Delete("/locks/programs/"+first[0]))
		time.Sleep(time.Second)
		use()
		require.Len(t, registered(t, srv), 1)
		require.NotEqual(t, first, registered(t, srv))
	})
}

// A client uses the locks in two namespaces. Its session has one node, which is found in each of them.
func TestNamespacesShareTheRegistration(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client("a").DialContext))
		all := []*striped.Striped{newStriped(t, c, "/app/locks", 8), newStriped(t, c.Namespace("app"), "/locks", 8)}
		for range 2 {
			for _, s := range all {
				require.NoError(t, acquire(t, s.For(key)).Release())
				names, err := srv.Children("/app/locks/programs")
				require.NoError(t, err)
				require.Len(t, names, 1)
				require.NoError(t, srv.Set("/app/locks/programs/"+names[0], nil)) // the watch fires
				time.Sleep(time.Second)
			}
		}
	})
}
