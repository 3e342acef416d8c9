package zktest_test

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/rawzk"
	"github.com/docent-zk/docent/zktest"
)

// raw is a client that only does what a test calls: it neither pings nor reconnects.
type raw struct {
	*rawzk.Conn
	session  int64
	password []byte
}

// newSession is the handshake of a client that wants a new session.
var newSession = rawzk.Connect{Timeout: int32(timeout.Milliseconds()), Password: make([]byte, 16)}

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

// enterRaw returns a client with a session, in memory.
func enterRaw(t *testing.T, srv *zktest.Server, name string) *raw {
	t.Helper()
	r := greet(t, dialRaw(t, srv.Client(name), srv.MemAddr()), newSession)
	require.NotZero(t, r.session)
	return r
}

// again makes another connection of the same session.
func (r *raw) again(t *testing.T, srv *zktest.Server, name string) *raw {
	t.Helper()
	next := greet(t, dialRaw(t, srv.Client(name), srv.MemAddr()), resumed(r))
	require.Equal(t, r.session, next.session)
	return next
}

// resumed returns the handshake that resumes the session of a client.
func resumed(r *raw) rawzk.Connect {
	hello := newSession
	hello.Session, hello.Password = r.session, r.password
	return hello
}

// send sends a request. The answer may be read later.
func (r *raw) send(t *testing.T, xid int32, o rawzk.Op) {
	t.Helper()
	require.NoError(t, r.Send(xid, o))
}

// receive requires that the next frame from the server has this xid; -1 is an event.
func (r *raw) receive(t *testing.T, xid int32) rawzk.Header {
	t.Helper()
	h := nextHeader(t, r.Conn)
	require.Equal(t, xid, h.Xid)
	return h
}

// receiveEnd requires that the connection ends now, without further data.
func (r *raw) receiveEnd(t *testing.T, want error) {
	t.Helper()
	began := time.Now()
	_, err := r.ReadFrame(enough)
	require.ErrorIs(t, err, want)
	require.Zero(t, time.Since(began))
}

// receiveNothing requires that neither data nor an end arrives for a time.
func (r *raw) receiveNothing(t *testing.T, long time.Duration) {
	t.Helper()
	_, err := r.ReadFrame(long)
	require.ErrorIs(t, err, rawzk.ErrTimeout)
}

// createOp returns a request for an open persistent node.
func createOp(path string) rawzk.Op { return rawzk.Create(path, nil, rawzk.Open(), 0) }
