package zktest_test

import (
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/zktest"
)

const lag = time.Second

// following runs a test with a server, a follower, and a client of the follower.
func following(t *testing.T, test func(t *testing.T, srv *zktest.Server, f *zktest.Follower, conn *zk.Conn)) {
	t.Helper()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.Create("/old", nil))
		f := srv.Follower(lag)
		test(t, srv, f, connectTo(t, f.MemAddr(), srv.Client("a")))
	})
}

func exists(t *testing.T, conn *zk.Conn, path string) bool {
	t.Helper()
	there, _, err := conn.Exists(path)
	require.NoError(t, err)
	return there
}

func TestFollowerIsBehindByItsLag(t *testing.T) {
	following(t, func(t *testing.T, srv *zktest.Server, f *zktest.Follower, conn *zk.Conn) {
		leader := connect(t, srv, "b")
		require.True(t, exists(t, conn, "/old"), "created before the follower")
		require.NoError(t, create(leader, "/new"))
		require.True(t, exists(t, leader, "/new"))
		time.Sleep(lag - 1)
		require.False(t, exists(t, conn, "/new"))
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.True(t, exists(t, conn, "/new"))
	})
}

func TestFollowersClientSeesItsOwnWrites(t *testing.T) {
	following(t, func(t *testing.T, srv *zktest.Server, f *zktest.Follower, conn *zk.Conn) {
		writing := start(func() error { return create(conn, "/own") })
		require.True(t, srv.Exists("/own"), "on the leader at once")
		require.NoError(t, writing.wait(t))
		require.Equal(t, lag, writing.took)
		require.True(t, exists(t, conn, "/own"))
	})
}

func TestSyncWaitsForWhatTheLeaderHas(t *testing.T) {
	following(t, func(t *testing.T, srv *zktest.Server, f *zktest.Follower, conn *zk.Conn) {
		require.NoError(t, srv.Create("/new", nil))
		time.Sleep(lag / 4)
		syncing := start(func() error { _, err := conn.Sync("/"); return err })
		require.NoError(t, syncing.wait(t))
		require.Equal(t, lag*3/4, syncing.took)
		require.True(t, exists(t, conn, "/new"))
	})
}

func TestFollowerRefusesAClientThatHasSeenMore(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		f := srv.Follower(lag)
		f.Freeze()
		var target atomic.Value
		target.Store(srv.MemAddr())
		dial := srv.Client("a").Dialer()
		conn, events, err := zk.Connect([]string{srv.MemAddr()}, timeout, zk.WithLogger(quiet{}),
			zk.WithDialer(func(network, _ string, timeout time.Duration) (net.Conn, error) {
				return dial(network, target.Load().(string), timeout)
			}))
		require.NoError(t, err)
		t.Cleanup(conn.Close)
		await(t, events, zk.StateHasSession)
		require.NoError(t, create(conn, "/x"))
		session := conn.SessionID()

		target.Store(f.MemAddr())
		srv.Client("a").Drop()
		time.Sleep(timeout / 2)
		require.NotEqual(t, zk.StateHasSession, conn.State())
		f.Thaw()
		time.Sleep(2 * reconnectPause)
		require.Equal(t, zk.StateHasSession, conn.State())
		require.Equal(t, session, conn.SessionID())
		require.True(t, exists(t, conn, "/x"))
	})
}

func TestFollowersWatchesFireLate(t *testing.T) {
	following(t, func(t *testing.T, srv *zktest.Server, f *zktest.Follower, conn *zk.Conn) {
		_, _, watch, err := conn.GetW("/old")
		require.NoError(t, err)
		leader := connect(t, srv, "b")
		_, _, early, err := leader.GetW("/old")
		require.NoError(t, err)
		time.Sleep(lag)
		require.NoError(t, srv.Set("/old", []byte("new")))
		require.Equal(t, "EventNodeDataChanged /old", event(early))
		time.Sleep(lag - 1)
		require.Empty(t, event(watch))
		time.Sleep(time.Nanosecond)
		require.Equal(t, "EventNodeDataChanged /old", event(watch))
	})
}

func TestHeldFollowerLearnsNothing(t *testing.T) {
	following(t, func(t *testing.T, srv *zktest.Server, f *zktest.Follower, conn *zk.Conn) {
		f.Freeze()
		require.NoError(t, srv.Create("/1", nil))
		require.NoError(t, srv.Create("/2", nil))
		time.Sleep(time.Hour)
		require.False(t, exists(t, conn, "/1"))
		f.Thaw()
		require.True(t, exists(t, conn, "/1"))
		require.True(t, exists(t, conn, "/2"))
	})
}

func TestLagCanChange(t *testing.T) {
	following(t, func(t *testing.T, srv *zktest.Server, f *zktest.Follower, conn *zk.Conn) {
		f.SetLag(time.Minute)
		require.NoError(t, srv.Create("/1", nil))
		time.Sleep(time.Minute - 1)
		require.False(t, exists(t, conn, "/1"))
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.True(t, exists(t, conn, "/1"))
		f.SetLag(0)
		require.NoError(t, srv.Create("/2", nil))
		require.True(t, exists(t, conn, "/2"))
		f.SetLag(-time.Second)
		require.NoError(t, srv.Create("/3", nil))
		require.True(t, exists(t, conn, "/3"))
	})
}

func TestFollowersClientIsDroppedWhenTheFollowerLearnsOfItsSessionsEnd(t *testing.T) {
	following(t, func(t *testing.T, srv *zktest.Server, f *zktest.Follower, conn *zk.Conn) {
		createEphemeral(t, conn, "/e")
		old := conn.SessionID()
		require.NoError(t, srv.Sessions()[0].Expire())
		require.False(t, srv.Exists("/e"))
		time.Sleep(lag - 1)
		require.Equal(t, 1, srv.Client("a").Connections())
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.Zero(t, srv.Client("a").Connections())
		time.Sleep(4*reconnectPause + lag)
		require.Equal(t, zk.StateHasSession, conn.State())
		require.NotEqual(t, old, conn.SessionID())
		require.False(t, exists(t, conn, "/e"))
	})
}

func TestFollowerAnswersReadsOfASessionThatHasEndedOnTheLeader(t *testing.T) {
	following(t, func(t *testing.T, srv *zktest.Server, f *zktest.Follower, conn *zk.Conn) {
		createEphemeral(t, conn, "/e")
		require.NoError(t, srv.Sessions()[0].Expire())
		require.False(t, srv.Exists("/e"))
		require.True(t, exists(t, conn, "/e"), "the follower does not know yet")
		require.ErrorIs(t, create(conn, "/x"), zk.ErrSessionExpired)
		require.False(t, srv.Exists("/x"))
	})
}

func TestFollowerHasEverythingAfterRestart(t *testing.T) {
	following(t, func(t *testing.T, srv *zktest.Server, f *zktest.Follower, conn *zk.Conn) {
		session := conn.SessionID()
		require.NoError(t, srv.Create("/new", nil))
		require.NoError(t, srv.Restart())
		time.Sleep(2 * reconnectPause)
		require.Equal(t, session, conn.SessionID())
		require.True(t, exists(t, conn, "/new"))
		require.NoError(t, srv.Create("/newer", nil))
		require.False(t, exists(t, conn, "/newer"))
		time.Sleep(lag)
		synctest.Wait()
		require.True(t, exists(t, conn, "/newer"))
	})
}

func TestWipedFollowerForgetsTogetherWithTheLeader(t *testing.T) {
	following(t, func(t *testing.T, srv *zktest.Server, f *zktest.Follower, conn *zk.Conn) {
		conn.Close()
		require.NoError(t, srv.Create("/new", nil))
		srv.Stop()
		require.NoError(t, srv.Wipe())
		require.NoError(t, srv.Start())
		time.Sleep(2 * lag)
		fresh := connectTo(t, f.MemAddr(), srv.Client("fresh"))
		require.False(t, exists(t, fresh, "/old"))
		require.False(t, exists(t, fresh, "/new"))
		require.NoError(t, create(fresh, "/own"))
	})
}

func TestFollowersHaveAddressesOfTheirOwn(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		one, two := srv.Follower(lag), srv.Follower(0)
		require.NotEqual(t, srv.MemAddr(), one.MemAddr())
		require.NotEqual(t, one.MemAddr(), two.MemAddr())
		late, fast := connectTo(t, one.MemAddr(), srv.Client("late")), connectTo(t, two.MemAddr(), srv.Client("fast"))
		require.NoError(t, srv.Create("/x", nil))
		require.True(t, exists(t, fast, "/x"))
		require.False(t, exists(t, late, "/x"))
	})
}
