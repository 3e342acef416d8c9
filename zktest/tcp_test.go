package zktest_test

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

// eventually waits for something that takes real time.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, enough, time.Millisecond, what)
}

func hasSession(conn *zk.Conn) func() bool {
	return func() bool { return conn.State() == zk.StateHasSession }
}

func TestClientsOverTCPHaveAddressesAndFaultsOfTheirOwn(t *testing.T) {
	srv := zktest.Start(t)
	a, b := srv.Client("a"), srv.Client("b")
	require.NotEqual(t, a.Addr(), b.Addr())
	require.Equal(t, a.Addr(), a.Addr())
	require.NotEqual(t, srv.Addr(), a.Addr())
	one, two := connectTCP(t, a.Addr()), connectTCP(t, b.Addr())
	srv.On(fault.Match{Client: "a"}, fault.Fail(zktest.NoAuth))
	require.NoError(t, create(two, "/two"))
	require.ErrorIs(t, create(one, "/one"), zk.ErrNoAuth)
	require.Equal(t, one.SessionID(), a.Sessions()[0].ID)
	require.Equal(t, 1, b.Requests()[fault.OpCreate])
}

func TestConnectionsOverTCPEndAndComeBack(t *testing.T) {
	ends := map[string]func(*zktest.Client){"drop": (*zktest.Client).Drop, "reset": (*zktest.Client).Reset}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			srv := zktest.Start(t)
			conn := connectTCP(t, srv.Client("a").Addr())
			session := conn.SessionID()
			end(srv.Client("a"))
			eventually(t, "the client comes back", func() bool {
				return len(traced(srv, "connected again")) > 0 && hasSession(conn)()
			})
			require.Equal(t, session, conn.SessionID())
		})
	}
}

func TestRestartKeepsThePort(t *testing.T) {
	srv := zktest.Start(t)
	addr := srv.Addr()
	conn := connectTCP(t, addr)
	_, _, watch, err := conn.ExistsW("/x")
	require.NoError(t, err)
	srv.Stop()
	_, err = net.Dial("tcp", addr)
	require.Error(t, err)
	require.NoError(t, srv.Start())
	require.Equal(t, addr, srv.Addr())
	require.NoError(t, srv.Create("/x", nil))
	select {
	case e := <-watch:
		require.Equal(t, zk.EventNodeCreated, e.Type)
	case <-time.After(enough):
		require.Fail(t, "no event")
	}
}

func TestAddressIsKnownWhileStopped(t *testing.T) {
	srv := zktest.Start(t)
	srv.Stop()
	addr := srv.Client("a").Addr()
	_, err := net.Dial("tcp", addr)
	require.Error(t, err)
	require.NoError(t, srv.Start())
	require.NoError(t, create(connectTCP(t, addr), "/x"))
}

func TestRefusedClientOverTCPSeesItsConnectionsEnd(t *testing.T) {
	srv := zktest.Start(t)
	addr := srv.Client("a").Addr()
	conn := connectTCP(t, addr)
	srv.Client("a").Refuse(true)
	require.NoError(t, create(conn, "/x"), "existing connections stay")
	nc, err := net.Dial("tcp", addr)
	if err == nil { // a listener cannot refuse
		defer nc.Close()
		require.NoError(t, nc.SetReadDeadline(time.Now().Add(enough)))
		_, err = nc.Read(make([]byte, 1))
		require.NotErrorIs(t, err, timeoutError(t))
	}
	require.Error(t, err)
	connectTCP(t, srv.Client("b").Addr())
}

// timeoutError returns the error of a read that has timed out.
func timeoutError(t *testing.T) error {
	t.Helper()
	one, other := net.Pipe()
	defer one.Close()
	defer other.Close()
	require.NoError(t, one.SetReadDeadline(time.Unix(1, 0)))
	_, err := one.Read(make([]byte, 1))
	return err
}

func TestFrozenClientOverTCPGoesOnWhenThawed(t *testing.T) {
	srv := zktest.Start(t, zktest.WithConfig("maxSessionTimeout", "3600000"))
	conn := connectTCPFor(t, srv.Client("a").Addr(), time.Hour)
	srv.Client("a").Freeze()
	done := make(chan error, 1)
	go func() { done <- create(conn, "/x") }()
	other := connectTCP(t, srv.Client("b").Addr())
	require.NoError(t, create(other, "/y"))
	require.False(t, srv.Exists("/x"))
	srv.Client("a").Thaw()
	require.NoError(t, <-done)
}

func TestTruncatedAnswerOverTCP(t *testing.T) {
	srv := zktest.Start(t)
	conn := connectTCP(t, srv.Addr())
	srv.On(fault.Match{Op: fault.OpCreate}, fault.Truncate(3))
	require.ErrorIs(t, create(conn, "/x"), zk.ErrConnectionClosed)
	require.True(t, srv.Exists("/x"))
	eventually(t, "the client comes back", hasSession(conn))
}

func TestFollowerOverTCP(t *testing.T) {
	srv := zktest.Start(t)
	f := srv.Follower(0)
	f.Freeze()
	require.NotEqual(t, srv.Addr(), f.Addr())
	addr := f.Addr()
	require.NoError(t, srv.Create("/x", nil))
	f.Thaw()
	f.Freeze()
	require.NoError(t, srv.Create("/y", nil))
	srv.Stop()
	require.NoError(t, srv.Start())
	require.Equal(t, addr, f.Addr())
	f.Thaw()
	conn := connectTCP(t, addr)
	there, _, err := conn.Exists("/y")
	require.NoError(t, err)
	require.True(t, there)
}

func TestTooManyConnectionsFromOneAddressAreTurnedAway(t *testing.T) {
	srv := zktest.Start(t, zktest.WithConfig("maxClientCnxns", "1"))
	first, err := net.Dial("tcp", srv.Addr())
	require.NoError(t, err)
	defer first.Close()
	eventually(t, "the first is let in", func() bool { return srv.Client("").Connections() == 1 })
	second, err := net.Dial("tcp", srv.Addr())
	if err == nil {
		defer second.Close()
		require.NoError(t, second.SetReadDeadline(time.Now().Add(enough)))
		_, err = io.ReadAll(second)
		require.NotErrorIs(t, err, timeoutError(t))
	}
	require.Equal(t, 1, srv.Client("").Connections())
}

func TestServerOfAProgram(t *testing.T) {
	srv, err := zktest.New(zktest.WithListener("127.0.0.1:0"))
	require.NoError(t, err)
	defer srv.Close()
	require.NoError(t, create(connectTCP(t, srv.Addr()), "/x"))
}
