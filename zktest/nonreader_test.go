package zktest_test

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/rawzk"
	"github.com/docent-zk/docent/zktest"
)

// More than sockets hold back.
const (
	unread     = 60
	unreadSize = 1 << 20
)

// enterAndReadNothing is a client over TCP that has asked for a lot and does not read it. The server has begun to send.
func enterAndReadNothing(t *testing.T, srv *zktest.Server) *rawzk.Conn {
	t.Helper()
	require.NoError(t, srv.Create("/big", make([]byte, unreadSize-1024)))
	nc, err := net.Dial("tcp", srv.Addr())
	require.NoError(t, err)
	c := greet(t, rawOver(t, nc), newcomer)
	rule := srv.On(zktest.Match{Op: zktest.OpGetData, Times: zktest.Always}, zktest.Pass())
	for i := range unread {
		c.send(t, int32(i+1), rawzk.GetData("/big", false))
	}
	require.NoError(t, rule.WaitHits(soon(t), unread))
	c.hears(t, 1)
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
				require.NoError(t, c.Close(), "or else nothing ever ends")
				require.NoError(t, <-stopped)
				require.Fail(t, "it waits for a client that does not read")
			}
		})
	}
}

func TestResetEndsAConnectionWhoseClientDoesNotRead(t *testing.T) {
	srv := zktest.Start(t)
	c := enterAndReadNothing(t, srv)
	srv.Client("").Reset()
	eventually(t, "the connection is served no more", func() bool { return zktest.Served(srv) == 0 })
	_, err := c.ReadAll(enough)
	require.ErrorIs(t, err, rawzk.ErrReset)
}
