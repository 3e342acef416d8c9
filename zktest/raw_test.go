package zktest_test

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/rawzk"
	"github.com/docent-zk/docent/zktest"
)

// raw is a client that does what a test tells it to, and nothing else: it neither pings nor connects again.
type raw struct {
	*rawzk.Conn
	session  int64
	password []byte
}

// newcomer is the handshake of a client that wants a session.
var newcomer = rawzk.Connect{Timeout: int32(timeout.Milliseconds()), Password: make([]byte, 16)}

// dialRaw makes a connection in memory.
func dialRaw(t *testing.T, client *zktest.Client, host string) *rawzk.Conn {
	t.Helper()
	nc, err := client.DialContext(t.Context(), "tcp", host)
	require.NoError(t, err)
	return rawOver(t, nc)
}

func rawOver(t *testing.T, nc net.Conn) *rawzk.Conn {
	t.Helper()
	t.Cleanup(func() { _ = nc.Close() })
	return rawzk.NewConn(nc)
}

// greet sends a handshake and reads the answer.
func greet(t *testing.T, c *rawzk.Conn, hello rawzk.Connect) *raw {
	t.Helper()
	require.NoError(t, c.SendFrame(hello.Encode()))
	frame, err := c.ReadFrame(enough)
	require.NoError(t, err)
	connected, err := rawzk.DecodeConnected(frame)
	require.NoError(t, err)
	return &raw{c, connected.Session, connected.Password}
}

// enterRaw is a client with a session, in memory.
func enterRaw(t *testing.T, srv *zktest.Server, name string) *raw {
	t.Helper()
	r := greet(t, dialRaw(t, srv.Client(name), srv.MemAddr()), newcomer)
	require.NotZero(t, r.session)
	return r
}

// again is another connection of the same session.
func (r *raw) again(t *testing.T, srv *zktest.Server, name string) *raw {
	t.Helper()
	hello := newcomer
	hello.Session, hello.Password = r.session, r.password
	next := greet(t, dialRaw(t, srv.Client(name), srv.MemAddr()), hello)
	require.Equal(t, r.session, next.session)
	return next
}

// send sends a request. The answer may be awaited later.
func (r *raw) send(t *testing.T, xid int32, o rawzk.Op) {
	t.Helper()
	require.NoError(t, r.Send(xid, o))
}

// hears requires that the next thing that the client gets is a frame with this xid; -1 is an event.
func (r *raw) hears(t *testing.T, xid int32) rawzk.Header {
	t.Helper()
	h := nextHeader(t, r.Conn)
	require.Equal(t, xid, h.Xid)
	return h
}

// hearsEnd requires that what the client gets next is an end, and at once.
func (r *raw) hearsEnd(t *testing.T, want error) {
	t.Helper()
	began := time.Now()
	_, err := r.ReadFrame(enough)
	require.ErrorIs(t, err, want)
	require.Zero(t, time.Since(began))
}

// hearsNothing requires that there is neither data nor an end for so long.
func (r *raw) hearsNothing(t *testing.T, long time.Duration) {
	t.Helper()
	_, err := r.ReadFrame(long)
	require.ErrorIs(t, err, rawzk.ErrTimeout)
}

// makes is a request for an open persistent node.
func makes(path string) rawzk.Op { return rawzk.Create(path, nil, rawzk.Open(), 0) }
