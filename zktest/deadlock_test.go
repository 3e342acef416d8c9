package zktest_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/zktest"
)

// inChild is set in the process that must crash.
const inChild = "ZKTEST_DEADLOCK_CHILD"

// The driver sends its credentials first on each connection. If the connection breaks after the
// server's answer to the handshake and before that, the driver hangs forever. In virtual time this
// shows at once.
func TestDriverHangsIfItsConnectionBreaksBeforeItsCredentials(t *testing.T) {
	if os.Getenv(inChild) != "" {
		bubble(t, hangDriver)
		return
	}
	child := exec.CommandContext(soon(t), os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), inChild+"=1")
	out, err := child.CombinedOutput()
	var died *exec.ExitError
	require.ErrorAs(t, err, &died)
	require.Contains(t, string(out), "an hour later: no answer, 2 connections ever", "%s", out)
	const deadlock = "deadlock: main bubble goroutine has exited but blocked goroutines remain"
	require.Contains(t, string(out), deadlock, "%s", out)
	require.Contains(t, string(out), "flushRequests", "where the driver waits for itself")
}

func TestDriverSurvivesTheSameWithoutCredentials(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		conn, dials := connectFragile(t, srv)
		srv.Client("a").Drop()
		time.Sleep(time.Minute)
		require.Equal(t, int64(3), dials.Load(), "the second connection died over a ping")
		require.NoError(t, create(conn, "/x"))
	})
}

func hangDriver(t *testing.T, srv *zktest.Server) {
	conn, dials := connectFragile(t, srv)
	require.NoError(t, conn.AddAuth("digest", []byte("user:secret")))
	srv.Client("a").Drop()
	answer := start(func() error { time.Sleep(time.Minute); return create(conn, "/x") })
	time.Sleep(time.Hour)
	if !answer.ended() {
		fmt.Printf("an hour later: no answer, %d connections ever\n", dials.Load())
	}
}

// connectFragile returns a client with a session. Its second connection breaks when it sends
// something after the handshake.
func connectFragile(t *testing.T, srv *zktest.Server) (conn *zk.Conn, dials *atomic.Int64) {
	t.Helper()
	dials = new(atomic.Int64)
	dial := srv.Client("a").Dialer()
	conn, events, err := zk.Connect([]string{srv.MemAddr()}, timeout, zk.WithLogger(quiet{}),
		zk.WithDialer(func(network, address string, timeout time.Duration) (net.Conn, error) {
			number := dials.Add(1)
			nc, err := dial(network, address, timeout)
			if err != nil || number != 2 {
				return nc, err
			}
			return &fragile{Conn: nc, die: srv.Client("a").Reset}, nil
		}))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	await(t, events, zk.StateHasSession)
	return conn, dials
}

// fragile breaks when something is written after the handshake.
type fragile struct {
	net.Conn
	writes int
	die    func()
}

func (f *fragile) Write(p []byte) (int, error) {
	if f.writes++; f.writes == 2 {
		f.die()
		time.Sleep(time.Millisecond) // until the server knows
	}
	return f.Conn.Write(p)
}
