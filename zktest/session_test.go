package zktest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/zktest"
)

// expired returns the time at which the only expired session has expired.
func expired(t *testing.T, srv *zktest.Server) time.Duration {
	t.Helper()
	synctest.Wait()
	all := traced(srv, "expired")
	require.Len(t, all, 1)
	return all[0].At
}

func TestSessionExpiresAtTheFirstTickAfterItsTimeout(t *testing.T) {
	tests := map[string]struct {
		cut  time.Duration // time of the cut
		tick time.Duration
		want time.Duration
	}{
		"never heard from again": {0, 100 * time.Millisecond, timeout + 100*time.Millisecond},
		"long ticks":             {0, 7 * time.Second, 14 * time.Second},
		"after a ping":           {ping + time.Second, 100 * time.Millisecond, ping + timeout + 100*time.Millisecond},
		"after many pings": {
			time.Hour + time.Second, 100 * time.Millisecond, time.Hour + timeout + 100*time.Millisecond,
		},
		"between two ticks": {ping + time.Second, 2500 * time.Millisecond, 12500 * time.Millisecond},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zktest.Server) {
				connect(t, srv, "a")
				time.Sleep(test.cut)
				synctest.Wait()
				srv.Client("a").Cut()
				time.Sleep(time.Minute)
				require.Equal(t, test.want, expired(t, srv))
			}, zktest.WithTick(test.tick), zktest.WithSessionTimeouts(time.Second, time.Minute))
		})
	}
}

func TestRequestsKeepASession(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		conn := connect(t, srv, "a")
		time.Sleep(ping - time.Second/2)
		require.NoError(t, create(conn, "/x"))
		srv.Client("a").Cut()
		time.Sleep(time.Minute)
		require.Equal(t, ping-time.Second/2+timeout+100*time.Millisecond, expired(t, srv))
	})
}

func TestIdleClientKeepsItsSession(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		conn := connect(t, srv, "a")
		session := conn.SessionID()
		time.Sleep(24 * time.Hour)
		require.Equal(t, session, conn.SessionID())
		require.Len(t, traced(srv, "connected"), 1)
	})
}

func TestSessionTimeoutIsBetweenTheBounds(t *testing.T) {
	tests := map[string]struct{ least, most, want time.Duration }{
		"as asked for": {time.Second, time.Minute, timeout},
		"not less":     {time.Minute, time.Hour, time.Minute},
		"not more":     {time.Second, 6 * time.Second, 6 * time.Second},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zktest.Server) {
				connect(t, srv, "a")
				require.Equal(t, test.want, srv.Sessions()[0].Timeout)
			}, zktest.WithSessionTimeouts(test.least, test.most))
		})
	}
}

func TestExpireEndsASessionInOneTransaction(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.Create("/parent", nil))
		a, b := connect(t, srv, "a"), connect(t, srv, "b")
		old := a.SessionID()
		createEphemeral(t, a, "/parent/1")
		createEphemeral(t, a, "/parent/2")
		created, err := srv.Stat("/parent")
		require.NoError(t, err)
		_, _, watch, err := b.ExistsW("/parent/1")
		require.NoError(t, err)
		require.NoError(t, srv.Sessions()[0].Expire())
		require.Equal(t, "/parent\n", srv.Tree())
		deleted, err := srv.Stat("/parent")
		require.NoError(t, err)
		require.Equal(t, created.Pzxid+1, deleted.Pzxid)
		require.Equal(t, "EventNodeDeleted /parent/1", event(watch))
		require.Zero(t, srv.Client("a").Connections())
		_, found := srv.Session(old)
		require.False(t, found)

		time.Sleep(4 * reconnectPause)
		require.Equal(t, zk.StateHasSession, a.State())
		require.NotEqual(t, old, a.SessionID())
		require.NoError(t, create(a, "/x"))
	})
}

func TestSessionOutlivesItsConnection(t *testing.T) {
	ends := map[string]func(zktest.Session) error{"drop": zktest.Session.Drop, "reset": zktest.Session.Reset}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zktest.Server) {
				conn, other := connect(t, srv, "a"), connect(t, srv, "a")
				session := conn.SessionID()
				createEphemeral(t, conn, "/e")
				require.NoError(t, end(srv.Sessions()[0]))
				synctest.Wait()
				require.Equal(t, []bool{false, true}, []bool{srv.Sessions()[0].Connected, srv.Sessions()[1].Connected})
				require.Equal(t, 1, srv.Client("a").Connections())
				require.NoError(t, end(srv.Sessions()[0]), "without a connection")
				require.NoError(t, create(other, "/x"))
				time.Sleep(2 * reconnectPause)
				require.True(t, srv.Sessions()[0].Connected)
				require.Equal(t, session, conn.SessionID())
				require.True(t, srv.Exists("/e"))
			})
		})
	}
}

func TestConnectionOfAMovedSessionCarriesNothingOut(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		conn := connect(t, srv, "a")
		session := conn.SessionID()
		require.NoError(t, srv.Sessions()[0].Move())
		synctest.Wait()
		require.Equal(t, 1, srv.Client("a").Connections(), "until it is used")
		require.ErrorIs(t, create(conn, "/x"), zk.ErrConnectionClosed)
		require.False(t, srv.Exists("/x"))
		time.Sleep(2 * reconnectPause)
		require.NoError(t, create(conn, "/x"))
		require.Equal(t, session, conn.SessionID())
	})
}

func TestSessionIsASnapshot(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		conn := connect(t, srv, "a")
		connect(t, srv, "b")
		createEphemeral(t, conn, "/2")
		createEphemeral(t, conn, "/1")
		require.NoError(t, create(conn, "/persistent"))
		session, found := srv.Session(conn.SessionID())
		require.True(t, found)
		require.Equal(t, conn.SessionID(), session.ID)
		require.Equal(t, "a", session.Client)
		require.Equal(t, timeout, session.Timeout)
		require.True(t, session.Connected)
		require.Equal(t, []string{"/1", "/2"}, session.Ephemerals)
		require.Equal(t, "s1", session.String())
		all := srv.Sessions()
		require.Len(t, all, 2)
		require.Equal(t, session, all[0])
		require.Equal(t, "s2", all[1].String())
		conn.Close()
		synctest.Wait()
		require.True(t, session.Connected, "it was")
		require.Equal(t, "/persistent\n", srv.Tree())
	})
}

func TestMethodsOfEndedSessionAreErrors(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		connect(t, srv, "a")
		session := srv.Sessions()[0]
		require.NoError(t, session.Expire())
		methods := map[string]func() error{
			"expire": session.Expire, "drop": session.Drop, "reset": session.Reset, "move": session.Move,
		}
		for verb, method := range methods {
			err := method()
			require.ErrorContains(t, err, "zktest: "+verb+" session s1 (0x1")
			require.ErrorIs(t, err, zktest.SessionExpired)
		}
	})
}

func TestSessionWithoutConnectionExpiresOnAStoppedServerToo(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		createEphemeral(t, connect(t, srv, "a"), "/e")
		srv.Stop()
		require.NoError(t, srv.Sessions()[0].Expire())
		require.Empty(t, srv.Tree())
	})
}

// Outside of bubbles clients have the real time, and the server is ahead of it. So no ping comes meanwhile.
func TestAdvanceExpiresSessions(t *testing.T) {
	const timeout = time.Hour
	srv := zktest.Start(t, zktest.WithConfig("maxSessionTimeout", "3600000"))
	createEphemeral(t, connectTCPFor(t, srv.Addr(), timeout), "/e")
	srv.Advance(timeout / 2)
	require.True(t, srv.Exists("/e"))
	srv.Advance(timeout)
	require.False(t, srv.Exists("/e"))
	require.Empty(t, srv.Sessions())
	require.GreaterOrEqual(t, traced(srv, "expired")[0].At, timeout)
	require.LessOrEqual(t, traced(srv, "expired")[0].At, timeout*3/2)
}

func TestAdvanceDeletesWhatIsOverdue(t *testing.T) {
	srv := zktest.Start(t, zktest.WithConfig("znode.container.checkIntervalMs", "60000"))
	conn := connectTCP(t, srv.Addr())
	_, err := conn.CreateTTL("/ttl", nil, zk.FlagTTL, open, time.Hour)
	require.NoError(t, err)
	srv.Advance(59 * time.Minute)
	require.True(t, srv.Exists("/ttl"))
	srv.Advance(3 * time.Minute)
	require.False(t, srv.Exists("/ttl"))
	srv.Advance(-time.Hour)
	require.NoError(t, srv.Create("/x", nil))
	stat, err := srv.Stat("/x")
	require.NoError(t, err)
	require.GreaterOrEqual(t, stat.Ctime, time.Now().Add(time.Hour).UnixMilli(), "the clock does not go back")
}

func TestNodesWithATimeToLiveEndInABubble(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		conn := connect(t, srv, "a")
		_, err := conn.CreateTTL("/ttl", nil, zk.FlagTTL, open, 90*time.Second)
		require.NoError(t, err)
		time.Sleep(2*time.Minute - 1)
		require.True(t, srv.Exists("/ttl"))
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.False(t, srv.Exists("/ttl"))
	}, zktest.WithConfig("znode.container.checkIntervalMs", "60000"))
}
