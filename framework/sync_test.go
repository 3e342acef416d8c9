package framework_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// A ZooKeeper leader may apply a transaction later than its followers, and answers a request named
// sync nevertheless.
func TestSyncWaitsUntilALeaderHasAppliedWhatFollowersShow(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		srv.Follower(0)
		s := sessionOn(t, srv)
		srv.Leader().Freeze()
		require.NoError(t, srv.Create("/new", nil))
		_, err := s.Exists(t.Context(), "/new")
		require.ErrorIs(t, err, zk.ErrNoNode, "the leader shows it too early for this test")
		synced := make(chan error, 1)
		go func() { synced <- s.Sync(context.WithoutCancel(t.Context()), "/new") }()
		time.Sleep(time.Second)
		require.Empty(t, synced)
		srv.Leader().Thaw()
		require.NoError(t, <-synced)
		_, err = s.Exists(t.Context(), "/new")
		require.NoError(t, err)
	})
}

// A leader that was replaced, and does not know it yet, answers reads and requests named sync.
func TestSyncFailsOnALeaderThatWasReplaced(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		srv.Follower(0)
		s := sessionOn(t, srv)
		srv.IsolateLeader()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, s.Sync(ctx, "/"), context.DeadlineExceeded)
		srv.RestoreAll()
		require.NoError(t, s.Sync(t.Context(), "/"))
	})
}

func TestSyncNeedsNoNodeAndNoPermission(t *testing.T) {
	c := testzk.Connected(t, testzk.Connect())
	ctx, path := testzk.Context(t), parent(t)
	require.NoError(t, c.Sync(ctx, path+"/none/below"))
	_, err := c.Create(ctx, path+"/closed", nil, framework.ACL(zk.DigestACL(zk.PermAll, "user", "password")...))
	require.NoError(t, err)
	_, _, err = c.Get(ctx, path+"/closed")
	require.ErrorIs(t, err, zk.ErrNoAuth)
	require.NoError(t, c.Sync(ctx, path+"/closed"))
	require.NoError(t, c.Namespace(path[1:]).Sync(ctx, "/none"))
}
