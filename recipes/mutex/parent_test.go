package mutex_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// reaping runs a test on a server that deletes empty containers soon. c is the client of the lock
// one; the lock other is the same lock of another client.
func reaping(t *testing.T, test func(t *testing.T, srv *zktest.Server, c *framework.Client, one, other *mutex.Mutex)) {
	t.Helper()
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		c := dialled(t, srv, "one")
		test(t, srv, c, newMutex(t, c, "/accounts/17"), newMutex(t, dialled(t, srv, "other"), "/accounts/17"))
	}, zktest.WithConfig("znode.container.checkIntervalMs", "300"))
}

// A node that was deleted and created again has the same versions as before.
func TestDataOfARecreatedPathIsUnchanged(t *testing.T) {
	for acquires := range 3 {
		reaping(t, func(t *testing.T, srv *zktest.Server, c *framework.Client, _, lock *mutex.Mutex) {
			for range acquires {
				require.NoError(t, acquire(t, lock).Release())
			}
			time.Sleep(time.Second)
			require.False(t, srv.Exists("/accounts/17"))
			_, err := c.Create(t.Context(), "/accounts/17", []byte("0"), framework.Parents())
			require.NoError(t, err)
			for version := range int32(acquires) {
				_, err := c.Set(t.Context(), "/accounts/17", []byte("1"), version)
				require.NoError(t, err)
			}
			before, err := srv.Get("/accounts/17")
			require.NoError(t, err)
			require.NoError(t, acquire(t, lock).Release())
			after, err := srv.Get("/accounts/17")
			require.NoError(t, err)
			require.Equal(t, before, after)
		})
	}
}

func TestDataWrittenUnderTheLockIsUnchanged(t *testing.T) {
	reaping(t, func(t *testing.T, srv *zktest.Server, _ *framework.Client, reader, writer *mutex.Mutex) {
		for range 2 {
			require.NoError(t, acquire(t, reader).Release())
		}
		time.Sleep(time.Second)
		require.False(t, srv.Exists("/accounts/17"))
		hold := acquire(t, writer)
		_, err := hold.Guard(t.Context(),
			framework.SetOp("/accounts/17", []byte("1"), 0), framework.SetOp("/accounts/17", []byte("2"), 1))
		require.NoError(t, err)
		require.NoError(t, hold.Release())
		require.NoError(t, acquire(t, reader).Release())
		data, err := srv.Get("/accounts/17")
		require.NoError(t, err)
		require.Equal(t, "2", string(data))
	})
}

// The version of a node's data is a signed 32-bit number. A write with each acquire would exhaust
// it.
func TestAcquiresDoNotWriteTheParent(t *testing.T) {
	reaping(t, func(t *testing.T, srv *zktest.Server, c *framework.Client, one, other *mutex.Mutex) {
		_, err := c.Create(t.Context(), "/accounts/17", nil, framework.Parents())
		require.NoError(t, err)
		_, _, watch, err := c.GetW(t.Context(), "/accounts/17")
		require.NoError(t, err)
		for range 3 {
			hold := acquire(t, one)
			waiter := testlock.Start(t, other.Acquire)
			time.Sleep(100 * time.Millisecond)
			require.NoError(t, hold.Release())
			require.NoError(t, waiter.Won(t).Release())
		}
		stat, err := srv.Stat("/accounts/17")
		require.NoError(t, err)
		require.Zero(t, stat.Version)
		require.Zero(t, watch.Event(), "a watch on its data has fired")
	})
}
