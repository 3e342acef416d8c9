package zktest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

// A request that the server has started on no longer needs its connection.
func TestHeldRequestIsCarriedOutAfterItsConnectionHasEnded(t *testing.T) {
	actions := map[string]fault.Action{"hold": fault.Hold(), "delay": fault.Delay(time.Hour)}
	for name, action := range actions {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zktest.Server) {
				conn := connect(t, srv, "a")
				rule := srv.On(fault.Match{Op: fault.OpCreate}, action)
				held := start(func() error { return create(conn, "/late") })
				srv.Client("a").Drop()
				require.ErrorIs(t, held.wait(t), zk.ErrConnectionClosed)
				require.False(t, srv.Exists("/late"))
				rule.Release()
				synctest.Wait()
				require.True(t, srv.Exists("/late"))
				time.Sleep(2 * reconnectPause)
				require.Equal(t, zk.StateHasSession, conn.State())
			})
		})
	}
}

func TestDelayedRequestOutlivesItsConnection(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		conn := connect(t, srv, "a")
		srv.On(fault.Match{Op: fault.OpCreate}, fault.Delay(reconnectPause/2))
		delayed := start(func() error { return create(conn, "/late") })
		srv.Client("a").Reset()
		require.ErrorIs(t, delayed.wait(t), zk.ErrConnectionClosed)
		require.Zero(t, delayed.took)
		time.Sleep(2 * reconnectPause)
		there, _, err := conn.Exists("/late")
		require.NoError(t, err)
		require.True(t, there)
	})
}

// Requests of one connection are never carried out after those of the client's next connection.
func TestHeldRequestIsNotCarriedOutAfterItsConnectionWasReplaced(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		conn := connect(t, srv, "a")
		rule := srv.On(fault.Match{Op: fault.OpCreate}, fault.Hold())
		held := start(func() error { return create(conn, "/late") })
		srv.Client("a").Drop()
		require.ErrorIs(t, held.wait(t), zk.ErrConnectionClosed)
		time.Sleep(2 * reconnectPause)
		there, _, err := conn.Exists("/late")
		require.NoError(t, err)
		require.False(t, there)
		rule.Release()
		synctest.Wait()
		require.False(t, srv.Exists("/late"))
	})
}

func TestHeldRequestIsNotCarriedOutAfterItsSessionOrServerHasEnded(t *testing.T) {
	ends := map[string]func(*testing.T, *zktest.Server){
		"session expires": func(t *testing.T, srv *zktest.Server) { require.NoError(t, srv.Sessions()[0].Expire()) },
		"server restarts": func(t *testing.T, srv *zktest.Server) { require.NoError(t, srv.Restart()) },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zktest.Server) {
				conn := connect(t, srv, "a")
				rule := srv.On(fault.Match{Op: fault.OpCreate}, fault.Hold())
				held := start(func() error { return create(conn, "/late") })
				require.Equal(t, 1, rule.Hits())
				end(t, srv)
				rule.Release()
				require.ErrorIs(t, held.wait(t), zk.ErrConnectionClosed)
				time.Sleep(time.Minute)
				require.False(t, srv.Exists("/late"))
			})
		})
	}
}
