package zktest_test

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/rawzk"
	"github.com/docent-zk/docent/zktest"
)

// unread is the size of an answer that is larger than the buffers of sockets.
const unread = 60 << 20

// enterAndReadNothing returns a client over TCP that does not read an answer. The server has sent a
// part of the answer, and cannot continue.
func enterAndReadNothing(t *testing.T, srv *zktest.Server) *rawzk.Conn {
	t.Helper()
	require.NoError(t, srv.Create("/big", make([]byte, unread)))
	nc, err := net.Dial("tcp", srv.Addr())
	require.NoError(t, err)
	c := greet(t, rawOver(t, nc), newSession)
	c.send(t, 1, rawzk.GetData("/big", false))
	_, err = io.ReadFull(nc, make([]byte, 1))
	require.NoError(t, err)
	return c.Conn
}

func TestClientThatDoesNotReadKeepsNoServerFromStopping(t *testing.T) {
	stops := map[string]func(*zktest.Server) error{
		"close":   func(srv *zktest.Server) error { srv.Close(); return nil },
		"stop":    func(srv *zktest.Server) error { srv.Stop(); return nil },
		"restart": (*zktest.Server).Restart,
	}
	for name, stop := range stops {
		t.Run(name, func(t *testing.T) {
			srv := zktest.Start(t)
			c := enterAndReadNothing(t, srv)
			stopped := make(chan error, 1)
			go func() { stopped <- stop(srv) }()
			select {
			case err := <-stopped:
				require.NoError(t, err)
			case <-time.After(enough):
				require.NoError(t, c.Close(), "otherwise nothing ever ends")
				require.NoError(t, <-stopped)
				require.Fail(t, "it waits for a client that does not read")
			}
		})
	}
}

func TestClientThatReadsNothingIsCutOffWhenTooMuchIsUnread(t *testing.T) {
	srv := zktest.Start(t)
	require.NoError(t, srv.Create("/data", make([]byte, 4<<20)))
	nc, err := net.Dial("tcp", srv.Addr())
	require.NoError(t, err)
	lasting := newSession
	lasting.Timeout = int32((2 * enough).Milliseconds()) // so that the session does not expire before
	c := greet(t, rawOver(t, nc), lasting)
	for n := range int32(60) {
		if c.Send(n+1, rawzk.GetData("/data", false)) != nil {
			break // the server has ended the connection
		}
	}
	eventually(t, "the connection is served no more", func() bool { return zktest.Served(srv) == 0 })
	servesAnother(t, srv)
}

func TestResetEndsAConnectionWhoseClientDoesNotRead(t *testing.T) {
	srv := zktest.Start(t)
	c := enterAndReadNothing(t, srv)
	srv.Client("").Reset()
	eventually(t, "the connection is served no more", func() bool { return zktest.Served(srv) == 0 })
	_, err := c.ReadAll(enough)
	require.ErrorIs(t, err, rawzk.ErrReset)
}
