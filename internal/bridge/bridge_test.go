package bridge_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest"
)

type kept struct{ value int }

type other struct{ value int }

func TestLocalIsOneForAllViewsOfAClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		first, second := connect(t, srv), connect(t, srv)
		bridge.Local[kept](bridge.Of(first)).value = 1
		require.Equal(t, 1, bridge.Local[kept](bridge.Of(first.Namespace("view"))).value)
		require.Zero(t, bridge.Local[other](bridge.Of(first)).value, "another type is another value")
		require.Zero(t, bridge.Local[kept](bridge.Of(second)).value, "another client has its own")
	})
}

func TestLocalOfASessionEndsWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		c := connect(t, srv)
		session, err := c.Session(t.Context())
		require.NoError(t, err)
		bridge.Local[kept](bridge.OfSession(session)).value = 1
		same, err := c.Namespace("view").Session(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, bridge.Local[kept](bridge.OfSession(same)).value)
		require.Zero(t, bridge.Local[kept](bridge.Of(c)).value, "the client has its own")
		for _, s := range srv.Sessions() {
			require.NoError(t, s.Expire())
		}
		<-session.Done()
		next, err := c.Session(t.Context())
		require.NoError(t, err)
		require.Zero(t, bridge.Local[kept](bridge.OfSession(next)).value)
	})
}

func TestThenCanBeStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		c := connect(t, srv)
		_, err := c.Create(t.Context(), "/a", nil)
		require.NoError(t, err)
		_, _, w, err := c.GetW(t.Context(), "/a")
		require.NoError(t, err)
		called, last := 0, make(chan struct{})
		count := func() { called++ }
		watch := bridge.OfWatch(w)
		stop := watch.Then(count)
		kept := watch.Then(count)
		watch.Then(func() { close(last) })
		stop()
		stop()
		_, err = c.Set(t.Context(), "/a", nil, -1)
		require.NoError(t, err)
		<-last
		require.Equal(t, 1, called, "the one that was not stopped")
		kept()
		watch.Then(count)()
		require.Equal(t, 2, called, "the watch has fired already")
	})
}

func connect(t *testing.T, srv *zktest.Server) *framework.Client {
	t.Helper()
	return testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client("c").DialContext))
}
