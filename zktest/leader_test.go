package zktest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/zktest"
)

// leading runs a test with a leader that learns of nothing, a client of it, and one of a follower.
func leading(t *testing.T, test func(t *testing.T, srv *zktest.Server, of, elsewhere *zk.Conn)) {
	t.Helper()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		f := srv.Follower(0)
		require.NoError(t, srv.Create("/old", nil))
		of, elsewhere := connect(t, srv, "a"), connectTo(t, f.MemAddr(), srv.Client("b"))
		srv.Leader().Freeze()
		test(t, srv, of, elsewhere)
	})
}

func TestLeaderAnswersASyncBeforeItHasAppliedWhatFollowersShow(t *testing.T) {
	leading(t, func(t *testing.T, srv *zktest.Server, of, elsewhere *zk.Conn) {
		require.NoError(t, create(elsewhere, "/new"))
		require.True(t, srv.Exists("/new"))
		_, err := of.Sync("/")
		require.NoError(t, err)
		require.False(t, exists(t, of, "/new"))
		require.True(t, exists(t, of, "/old"))
		_, _, watch, err := of.ExistsW("/new")
		require.NoError(t, err)
		srv.Leader().Thaw()
		require.Equal(t, zk.EventNodeCreated, (<-watch).Type)
		require.True(t, exists(t, of, "/new"))
	})
}

func TestWriteThroughALeaderThatIsBehindWaitsForAllBeforeIt(t *testing.T) {
	leading(t, func(t *testing.T, srv *zktest.Server, of, elsewhere *zk.Conn) {
		require.NoError(t, create(elsewhere, "/new"))
		failing := start(func() error { return create(of, "/new") })
		require.False(t, failing.ended())
		srv.Leader().Thaw()
		require.Equal(t, zk.ErrNodeExists, failing.wait(t))
		require.True(t, exists(t, of, "/new"))
	})
}

// Real servers: 18 to 32 of 1,000 writes were allowed that another client sent when a setACL against them had
// been answered. Each followed a create of the node at once.
func TestLeaderAllowsWritesByTheACLThatItHasApplied(t *testing.T) {
	leading(t, func(t *testing.T, srv *zktest.Server, of, elsewhere *zk.Conn) {
		deny := func(path string, perms int32) {
			t.Helper()
			_, err := elsewhere.SetACL(path, zk.WorldACL(perms), -1)
			require.NoError(t, err)
		}
		set := func() error {
			_, err := elsewhere.Set("/old", nil, -1)
			return err
		}
		deny("/old", zk.PermAdmin)
		_, _, err := elsewhere.Get("/old")
		require.Equal(t, zk.ErrNoAuth, err, "the follower has applied it")
		require.NoError(t, set())
		require.NoError(t, create(elsewhere, "/old/child"))
		srv.Leader().Thaw()
		require.Equal(t, zk.ErrNoAuth, set())
		require.Equal(t, zk.ErrNoAuth, create(elsewhere, "/old/other"))
		srv.Leader().Freeze()
		deny("/old", zk.PermAll)
		require.Equal(t, zk.ErrNoAuth, set())
		require.Equal(t, zk.ErrNoAuth, elsewhere.Delete("/old/child", -1))
		require.NoError(t, create(elsewhere, "/new"))
		deny("/new", zk.PermAdmin)
		_, err = elsewhere.Set("/new", nil, -1)
		require.NoError(t, err, "also of a node that the leader does not show")
		srv.Leader().Thaw()
		require.NoError(t, set())
		require.NoError(t, elsewhere.Delete("/old/child", -1))
	})
}

// With each later change, the leader keeps the ACL of the one before, until it has applied the last.
func TestLeaderAllowsWritesByAnOldACLWhileChangesFollow(t *testing.T) {
	leading(t, func(t *testing.T, srv *zktest.Server, _, elsewhere *zk.Conn) {
		srv.Leader().SetLag(lag)
		srv.Leader().Thaw()
		_, err := elsewhere.SetACL("/old", zk.WorldACL(zk.PermAdmin), -1)
		require.NoError(t, err)
		for range 10 {
			time.Sleep(lag / 2)
			_, err := elsewhere.Set("/old", nil, -1)
			require.NoError(t, err)
		}
		time.Sleep(lag)
		synctest.Wait()
		_, err = elsewhere.Set("/old", nil, -1)
		require.Equal(t, zk.ErrNoAuth, err)
	})
}

func TestLeaderIsBehindByItsLag(t *testing.T) {
	leading(t, func(t *testing.T, srv *zktest.Server, of, elsewhere *zk.Conn) {
		srv.Leader().SetLag(lag)
		srv.Leader().Thaw()
		require.NoError(t, create(elsewhere, "/new"))
		require.False(t, exists(t, of, "/new"))
		time.Sleep(lag)
		synctest.Wait()
		require.True(t, exists(t, of, "/new"))
		srv.Leader().SetLag(0)
		require.NoError(t, create(elsewhere, "/newer"))
		require.True(t, exists(t, of, "/newer"))
	})
}

func TestNextLeaderHasWhatTheLastOneHadNotApplied(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		second, third := srv.Follower(0), srv.Follower(0)
		srv.Leader().Freeze()
		elsewhere := connectTo(t, third.MemAddr(), srv.Client("b"))
		require.NoError(t, create(elsewhere, "/new"))
		srv.Members()[0].Restart()
		require.Eventually(t, func() bool { return srv.Leader() != nil }, time.Minute, time.Second)
		require.True(t, srv.Exists("/new"))
		for _, f := range []*zktest.Follower{second, third} {
			require.True(t, exists(t, connectTo(t, f.MemAddr(), srv.Client("c")), "/new"), f)
		}
		require.NoError(t, srv.Create("/newer", nil))
		srv.Members()[0].Thaw()
		first := connectTo(t, srv.Members()[0].MemAddr(), srv.Client("d"))
		require.True(t, exists(t, first, "/new"))
		require.True(t, exists(t, first, "/newer"))
	})
}

func TestLeaderThatIsBehindHasEverythingAfterAWipeAndAfterARestart(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		srv.Leader().Freeze()
		require.NoError(t, srv.Create("/new", nil))
		srv.Stop()
		require.NoError(t, srv.Wipe())
		require.NoError(t, srv.Start())
		require.False(t, srv.Exists("/new"))
		require.NoError(t, srv.Create("/newer", nil))
		srv.Leader().Thaw()
		require.NoError(t, srv.Restart())
		require.True(t, exists(t, connect(t, srv, "a"), "/newer"))
	})
}

// SetVersion and SetSequence change all servers: also a leader that is behind, and a server that does
// not lead any more.
func TestVersionsAreSetOnEachServer(t *testing.T) {
	requireVersion := func(t *testing.T, srv *zktest.Server, f *zktest.Follower, want int32) {
		t.Helper()
		_, stat, err := connectTo(t, f.MemAddr(), srv.Client("reader")).Get("/p")
		require.NoError(t, err)
		require.Equal(t, want, stat.Version)
		require.Equal(t, 2*want, stat.Cversion)
	}
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		srv.Follower(0)
		srv.Follower(0)
		require.NoError(t, srv.Create("/p", nil))
		srv.Leader().SetLag(time.Millisecond)
		for version := int32(7); version < 9; version++ {
			require.NoError(t, srv.SetVersion("/p", version))
			require.NoError(t, srv.SetSequence("/p", version))
			for _, f := range srv.Members() {
				requireVersion(t, srv, f, version)
			}
			srv.Members()[0].Restart()
			require.Eventually(t, func() bool { return srv.Leader() != nil }, time.Minute, time.Second)
			require.NotEqual(t, srv.Members()[0], srv.Leader())
		}
	})
}
