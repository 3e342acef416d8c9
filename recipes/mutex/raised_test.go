package mutex_test

import (
	"context"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

const short = longTimeout / 6 // what servers grant a client that asks for longTimeout

// asking returns a connected client that asks for longTimeout.
func asking(t *testing.T, srv *zktest.Server, name string) *framework.Client {
	return testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client(name).DialContext),
		framework.WithSessionTimeout(longTimeout))
}

// moving returns a dialer of a client, and the server to which its connections go. The test may store another one.
func moving(
	srv *zktest.Server, name string, first *zktest.Follower,
) (server *atomic.Pointer[zktest.Follower], dialer framework.Option) {
	server = &atomic.Pointer[zktest.Follower]{}
	server.Store(first)
	return server, framework.WithDialer(func(ctx context.Context, network, _ string) (net.Conn, error) {
		return srv.Client(name).DialContext(ctx, network, server.Load().MemAddr())
	})
}

// requireGranted checks the last timeout that the servers have granted the session of a client.
func requireGranted(t *testing.T, srv *zktest.Server, client string, want time.Duration) {
	t.Helper()
	for _, s := range srv.Sessions() {
		if s.Client == client {
			require.Equal(t, want, s.Timeout)
			return
		}
	}
	require.Fail(t, "the client has no session", client)
}

// A ZooKeeper leader begins with the timeout that each session was created with. The servers have granted a
// longer one since, and the client cannot reach the new leader.
func TestHoldEndsByTheTimeoutOfTheFirstConnection(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		holder, waiter := asking(t, srv, "holder"), asking(t, srv, "waiter")
		hold := mustAcquire(t, newMutex(t, holder, "/lock"))
		srv.SetSessionTimeouts(time.Second, time.Hour)
		srv.Client("holder").Drop()
		time.Sleep(longTimeout)
		requireGranted(t, srv, "holder", longTimeout)
		require.NoError(t, hold.Err())
		srv.Client("holder").Refuse(true)
		require.NoError(t, srv.Restart())
		next := mustAcquire(t, newMutex(t, waiter, "/lock"))
		require.ErrorIs(t, hold.Err(), framework.ErrSessionLost, "the other hold is valid")
		require.NoError(t, next.Release())
		srv.Client("holder").Refuse(false)
	}, zktest.WithSessionTimeouts(time.Second, short))
}

// The ZooKeeper leader has long ticks, and has granted more than the client asks for. A follower grants what the
// client asks for, and tells the leader of the session less often than the deadline of that timeout allows. Then it
// loses its connection to the leader. The time is tried at which the leader was elected, and that of the loss.
func TestHoldEndsByTheMinimumOfAnEarlierServer(t *testing.T) {
	const tick, step = 7 * time.Second, time.Second / 2
	for elected := time.Duration(0); elected < tick/2; elected += step {
		for lost := time.Duration(0); lost < tick; lost += step {
			sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
				sim.Ensemble(srv, random, 2)
				time.Sleep(elected)
				require.NoError(t, srv.Restart())
				holdBelowTheMinimum(t, srv, 2*tick, tick+lost)
			}, zktest.WithTick(tick))
		}
	}
}

// holdBelowTheMinimum acquires a hold through the leader, which grants least, and has it go on through a follower,
// which is cut off later.
func holdBelowTheMinimum(t *testing.T, srv *zktest.Server, least, later time.Duration) {
	leader, follower, third := srv.Members()[0], srv.Members()[1], srv.Members()[2]
	leader.SetSessionTimeouts(least, time.Hour)
	follower.SetSessionTimeouts(time.Second, time.Hour)
	waiter := testzk.Connected(t, third.MemAddr(), framework.WithDialer(srv.Client("waiter").DialContext),
		framework.WithSessionTimeout(4*least))
	server, dialer := moving(srv, "holder", leader)
	holder := testzk.Connected(t, srv.MemAddr(), framework.WithSessionTimeout(least/3), dialer)
	hold := mustAcquire(t, newMutex(t, holder, "/lock"))
	requireGranted(t, srv, "holder", least)
	server.Store(follower)
	srv.Client("holder").Drop()
	time.Sleep(later)
	srv.Client("holder").Refuse(true)
	follower.CutToLeader()
	next := mustAcquire(t, newMutex(t, waiter, "/lock"))
	require.ErrorIs(t, hold.Err(), framework.ErrSessionLost, "the other hold is valid")
	require.NoError(t, next.Release())
	follower.Restore()
	srv.Client("holder").Refuse(false)
}

// A follower tells the ZooKeeper leader late of a request on a connection with a shorter timeout. The client has
// been granted a longer one since, and cannot reach a server any more.
func TestHoldEndsByTheTimeoutOfAnEarlierConnection(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		sim.Ensemble(srv, random, 2)
		waiter := asking(t, srv, "waiter")
		late, other := srv.Members()[1], srv.Members()[2]
		late.SetSessionTimeouts(time.Second, short)
		server, dialer := moving(srv, "holder", late)
		holder := testzk.Connected(t, srv.MemAddr(), framework.WithSessionTimeout(longTimeout), dialer)
		hold := mustAcquire(t, newMutex(t, holder, "/lock"))
		late.CutToLeader()
		_, err := holder.Exists(t.Context(), "/lock")
		require.NoError(t, err)
		server.Store(other)
		srv.Client("holder").Drop()
		time.Sleep(time.Second)
		requireGranted(t, srv, "holder", longTimeout)
		require.NoError(t, hold.Err())
		srv.Client("holder").Refuse(true)
		srv.Client("holder").Drop()
		late.Restore()
		next := mustAcquire(t, newMutex(t, waiter, "/lock"))
		require.ErrorIs(t, hold.Err(), framework.ErrSessionLost, "the other hold is valid")
		require.NoError(t, next.Release())
		srv.Client("holder").Refuse(false)
	}, zktest.WithTick(time.Second))
}
