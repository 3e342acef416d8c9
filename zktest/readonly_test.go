package zktest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/rawzk"
	"github.com/docent-zk/docent/zktest"
)

// readsOnly returns the handshake of a client that accepts read-only servers.
func readsOnly() rawzk.Connect {
	hello := newSession
	hello.ReadOnly = []byte{1}
	return hello
}

// resume makes another connection of a session whose client accepts read-only servers. It reports
// whether the server says that it is read-only.
func resume(t *testing.T, srv *zktest.Server, r *raw) (next *raw, readOnly bool) {
	t.Helper()
	hello := readsOnly()
	hello.Session, hello.Password = r.session, r.password
	c := dialRaw(t, srv.Client("a"), srv.MemAddr())
	require.NoError(t, c.SendFrame(hello.Encode()))
	frame, err := c.ReadFrame(enough)
	require.NoError(t, err)
	connected, err := rawzk.DecodeConnected(frame)
	require.NoError(t, err)
	require.Equal(t, r.session, connected.Session)
	return &raw{c, connected.Session, connected.Password}, connected.Extra[0] == 1
}

func TestChangeToReadOnlyAndBackEndsEveryConnection(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		a := greet(t, dialRaw(t, srv.Client("a"), srv.MemAddr()), readsOnly())
		other := enterRaw(t, srv, "b")
		behind := greet(t, dialRaw(t, srv.Client("c"), srv.Follower(0).MemAddr()), readsOnly())
		srv.SetReadOnly(true)
		for _, c := range []*raw{a, other, behind} {
			c.receiveEnd(t, rawzk.ErrClosed)
		}
		a, readOnly := resume(t, srv, a)
		require.True(t, readOnly)
		a.send(t, 1, createOp("/x"))
		require.EqualValues(t, zktest.NotReadOnly, a.receive(t, 1).Err)
		a.send(t, 2, rawzk.Exists("/", false))
		require.Zero(t, a.receive(t, 2).Err)

		srv.SetReadOnly(false)
		a.receiveEnd(t, rawzk.ErrClosed)
		a, readOnly = resume(t, srv, a)
		require.False(t, readOnly)
		a.send(t, 1, createOp("/x"))
		require.Zero(t, a.receive(t, 1).Err)
	})
}

func TestReadOnlyThatIsSetAlreadyEndsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		for _, on := range []bool{false, true} {
			srv.SetReadOnly(on)
			c := greet(t, dialRaw(t, srv.Client("a"), srv.MemAddr()), readsOnly())
			srv.SetReadOnly(on)
			c.receiveNothing(t, time.Second)
		}
	})
}

func TestChangeToReadOnlyLosesAnswersThatAreOnTheirWay(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		a := greet(t, dialRaw(t, srv.Client("a"), srv.MemAddr()), readsOnly())
		srv.Client("a").CutReplies()
		a.send(t, 1, rawzk.Exists("/", false))
		synctest.Wait() // the request has been carried out
		srv.SetReadOnly(true)
		srv.Client("a").Heal()
		a.receiveEnd(t, rawzk.ErrClosed) // but not the answer
	})
}

func TestSetReadOnlyOfAStoppedServerHoldsFromItsStart(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		a := enterRaw(t, srv, "a")
		srv.Stop()
		srv.SetReadOnly(true)
		require.NoError(t, srv.Start())
		_, readOnly := resume(t, srv, a)
		require.True(t, readOnly)
	})
}
