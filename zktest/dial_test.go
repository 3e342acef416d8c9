package zktest_test

import (
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/zktest"
)

// dialing returns a function that dials with a timeout of a minute.
func dialing(srv *zktest.Server) func() error {
	return func() error {
		_, err := srv.Client("a").Dialer()("tcp", srv.MemAddr(), time.Minute)
		return err
	}
}

func TestDialThatWaitsForACableEndsWithTheServer(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		srv.Client("a").Cut()
		dial := start(dialing(srv))
		time.Sleep(time.Second)
		require.False(t, dial.ended())
		srv.Stop()
		require.ErrorIs(t, dial.wait(t), syscall.ECONNREFUSED)
		require.Equal(t, time.Second, dial.took)
	})
}

func TestDialOfAStoppedServerIsRefusedThoughCut(t *testing.T) {
	ends := map[string]func(*zktest.Server){"stopped": (*zktest.Server).Stop, "closed": (*zktest.Server).Close}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zktest.Server) {
				srv.Client("a").Cut()
				end(srv)
				dial := start(dialing(srv))
				require.ErrorIs(t, dial.wait(t), syscall.ECONNREFUSED)
				require.Zero(t, dial.took)
			})
		})
	}
}

func TestPortOutlivesTheServer(t *testing.T) {
	srv := zktest.Start(t)
	f := srv.Follower(0)
	addr, own, followers := srv.Addr(), srv.Client("a").Addr(), f.Addr()
	srv.Close()
	require.Equal(t, []string{addr, own, followers}, []string{srv.Addr(), srv.Client("a").Addr(), f.Addr()})
	_, err := net.Dial("tcp", addr)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}

func TestFirstAddrOfAClosedServerPanics(t *testing.T) {
	srv := zktest.Start(t)
	f := srv.Follower(0)
	srv.Close()
	const message = "zktest: first Addr of a server that was closed"
	require.PanicsWithValue(t, message, func() { srv.Addr() })
	require.PanicsWithValue(t, message, func() { srv.Client("a").Addr() })
	require.PanicsWithValue(t, message, func() { f.Addr() })
}

func TestAddrInABubblePanics(t *testing.T) {
	outside := zktest.Start(t)
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		f := srv.Follower(0)
		for _, addr := range []func() string{srv.Addr, srv.Client("a").Addr, f.Addr, outside.Addr} {
			require.Panics(t, func() { addr() })
		}
	})
}

func TestDialIntoOrOutOfABubblePanics(t *testing.T) {
	var inside *zktest.Server
	outside := zktest.Start(t)
	synctest.Test(t, func(t *testing.T) {
		inside = zktest.Start(t)
		require.Panics(t, func() { _ = dialing(outside)() })
	})
	require.Panics(t, func() { _ = dialing(inside)() })
	require.Zero(t, outside.Client("a").Connections())
}
