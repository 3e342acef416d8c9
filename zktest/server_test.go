package zktest_test

import (
	"context"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

func TestWatchOutlivesRestart(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		conn := connect(t, srv, "a")
		session := conn.SessionID()
		_, _, watch, err := conn.ExistsW("/x")
		require.NoError(t, err)
		srv.Stop()
		time.Sleep(3 * timeout)
		require.NotEqual(t, zk.StateHasSession, conn.State())
		require.NoError(t, srv.Start())
		time.Sleep(2 * reconnectPause)
		require.Equal(t, zk.StateHasSession, conn.State())
		require.Equal(t, session, conn.SessionID(), "no time passes on a stopped server")
		require.Empty(t, event(watch))
		require.NoError(t, srv.Create("/x", nil))
		require.Equal(t, "EventNodeCreated /x", event(watch))
	})
}

func TestWatchReportsAChangeWhileStopped(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		conn := connect(t, srv, "a")
		_, _, watch, err := conn.ExistsW("/x")
		require.NoError(t, err)
		srv.Stop()
		require.NoError(t, srv.Create("/x", nil))
		require.Empty(t, event(watch))
		require.NoError(t, srv.Start())
		time.Sleep(2 * reconnectPause)
		require.Equal(t, "EventNodeCreated /x", event(watch))
	})
}

func TestWaitingLockOutlivesRestart(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		first := zk.NewLock(connect(t, srv, "a"), "/lock", open)
		second := zk.NewLock(connect(t, srv, "b"), "/lock", open)
		require.NoError(t, first.Lock())
		waiting := start(second.Lock)
		require.NoError(t, srv.Restart())
		time.Sleep(2 * reconnectPause)
		require.False(t, waiting.ended())
		require.NoError(t, first.Unlock())
		require.NoError(t, waiting.wait(t))
		require.Equal(t, 2*reconnectPause, waiting.took)
	})
}

func TestStopEndsConnectionsAndRefusesNewOnes(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		connect(t, srv, "a")
		srv.Client("a").Cut() // has no effect on a stopped server
		srv.Stop()
		srv.Client("a").Heal()
		require.Zero(t, srv.Client("a").Connections())
		_, err := srv.DialContext(context.Background(), "tcp", srv.MemAddr())
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
	})
}

func TestStartWhileRunningAndStopWhileStoppedDoNothing(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		conn := connect(t, srv, "a")
		require.NoError(t, srv.Start())
		require.NoError(t, create(conn, "/x"))
		srv.Stop()
		srv.Stop()
		require.NoError(t, srv.Restart(), "of a stopped server")
		srv.Close()
		srv.Close()
		srv.Stop()
	})
}

func TestStartOfClosedServerIsError(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		srv.Close()
		require.ErrorContains(t, srv.Start(), "zktest: start: the server was closed")
		require.ErrorContains(t, srv.Restart(), "closed")
	})
}

func TestCloseEndsWaitingClientsAndHeldRequests(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		conn := connect(t, srv, "a")
		rule := srv.On(fault.Match{Op: fault.OpCreate}, fault.Hold())
		held := start(func() error { return create(conn, "/x") })
		require.Equal(t, 1, rule.Hits())
		srv.Pause()
		srv.Close()
		require.ErrorIs(t, held.wait(t), zk.ErrConnectionClosed)
		require.Zero(t, held.took)
		rule.Release()
		synctest.Wait()
		require.False(t, srv.Exists("/x"))
	})
}

func TestEphemeralNodesOutliveRestartAndSessionsHaveTheirWholeTimeAgain(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		createEphemeral(t, connect(t, srv, "a"), "/e")
		srv.Client("a").Refuse(true)
		srv.Stop()
		time.Sleep(time.Minute)
		require.NoError(t, srv.Start())
		time.Sleep(timeout)
		require.True(t, srv.Exists("/e"))
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		require.False(t, srv.Exists("/e"))
	})
}

func TestTransactionIDsGoOnAfterRestart(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.Create("/x", nil))
		before, err := srv.Stat("/x")
		require.NoError(t, err)
		require.NoError(t, srv.Restart())
		require.NoError(t, srv.Create("/y", nil))
		after, err := srv.Stat("/y")
		require.NoError(t, err)
		require.Equal(t, before.Czxid+1, after.Czxid)
	})
}

func TestWipeForgetsEverything(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		conn := connect(t, srv, "a")
		require.NoError(t, create(conn, "/x"))
		require.ErrorContains(t, srv.Wipe(), "zktest: wipe: the server is running")
		srv.Stop()
		require.NoError(t, srv.Wipe())
		require.Empty(t, srv.Tree())
		require.Empty(t, srv.Sessions())
		require.NoError(t, srv.Start())
		time.Sleep(time.Minute)
		require.NotEqual(t, zk.StateHasSession, conn.State(), "it has seen later transactions than the server")
		fresh := connect(t, srv, "b")
		require.NoError(t, create(fresh, "/x"))
		stat, err := srv.Stat("/x")
		require.NoError(t, err)
		require.Equal(t, int64(2), stat.Czxid, "after the session's transaction")
	})
}

func TestPausedServerDoesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		conn := connect(t, srv, "a")
		srv.Pause()
		waiting := start(func() error { return create(conn, "/x") })
		time.Sleep(silence / 2)
		require.False(t, waiting.ended())
		require.False(t, srv.Exists("/x"))
		nc, err := srv.DialContext(context.Background(), "tcp", srv.MemAddr())
		require.NoError(t, err, "the kernel accepts connections for a stopped process")
		require.NoError(t, nc.Close())
		srv.Resume(zktest.ExpireFirst)
		require.NoError(t, waiting.wait(t))
		require.Equal(t, silence/2, waiting.took)
	})
}

func TestPausedServerExpiresNoSession(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		createEphemeral(t, connect(t, srv, "a"), "/e")
		srv.Pause()
		time.Sleep(10 * timeout)
		require.True(t, srv.Exists("/e"))
	})
}

func TestResumeExpireFirst(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		conn, _ := pausedForLong(t, srv)
		srv.Resume(zktest.ExpireFirst)
		require.False(t, srv.Exists("/e"))
		require.Empty(t, srv.Sessions())
		time.Sleep(timeout)
		require.Equal(t, zk.StateHasSession, conn.State())
		require.Len(t, srv.Sessions(), 1, "a new session")
	})
}

func TestResumeRequestsFirst(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		conn, session := pausedForLong(t, srv)
		srv.Resume(zktest.RequestsFirst)
		time.Sleep(timeout)
		require.True(t, srv.Exists("/e"))
		require.Equal(t, zk.StateHasSession, conn.State())
		require.Equal(t, session, conn.SessionID())
	})
}

// pausedForLong returns a client with a node /e, on a server that was paused. When the server
// resumes, the client has been silent for longer than its session timeout.
func pausedForLong(t *testing.T, srv *zktest.Server) (conn *zk.Conn, session int64) {
	t.Helper()
	conn = connect(t, srv, "a")
	createEphemeral(t, conn, "/e")
	srv.Pause()
	time.Sleep(2*timeout + reconnectPause/2)
	return conn, conn.SessionID()
}

func TestReadOnlyServerEndsConnectionsAndRefusesNewOnes(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		conn := connect(t, srv, "a")
		session := conn.SessionID()
		srv.SetReadOnly(true)
		time.Sleep(timeout / 2)
		require.Zero(t, srv.Client("a").Connections())
		require.NotEqual(t, zk.StateHasSession, conn.State())
		srv.SetReadOnly(false)
		time.Sleep(2 * reconnectPause)
		require.Equal(t, zk.StateHasSession, conn.State())
		require.Equal(t, session, conn.SessionID())
	})
}

func TestDefaultClockFollowsTheBubble(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		time.Sleep(time.Hour)
		require.NoError(t, srv.Create("/x", nil))
		stat, err := srv.Stat("/x")
		require.NoError(t, err)
		require.Equal(t, time.Now().UnixMilli(), stat.Ctime)
		require.Equal(t, time.Hour, srv.Trace().Entries[0].At)
	})
}
