package zktest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/rawzk"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

var handshake = fault.Match{Op: fault.OpConnect}

// shakeHands sends a handshake without waiting for the answer.
func shakeHands(t *testing.T, srv *zktest.Server, name string) *raw {
	t.Helper()
	c := dialRaw(t, srv.Client(name), srv.MemAddr())
	require.NoError(t, c.SendFrame(newSession.Encode()))
	return &raw{Conn: c}
}

func TestHandshakeThatIsNotAnswered(t *testing.T) {
	tests := map[string]struct {
		action   fault.Action
		ends     error
		sessions int
	}{
		"drop before":   {fault.DropBefore(), rawzk.ErrClosed, 0},
		"reset":         {fault.Reset(), rawzk.ErrReset, 0},
		"drop after":    {fault.DropAfter(), rawzk.ErrClosed, 1},
		"truncate to 0": {fault.Truncate(0), rawzk.ErrClosed, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zktest.Server) {
				rule := srv.On(handshake, test.action)
				shakeHands(t, srv, "a").receiveEnd(t, test.ends)
				require.Equal(t, 1, rule.Hits())
				require.Len(t, srv.Client("a").Sessions(), test.sessions)
				for _, s := range srv.Sessions() {
					require.False(t, s.Connected)
				}
				enterRaw(t, srv, "a") // the rule has fired
			})
		})
	}
}

func TestTruncatedHandshake(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		srv.On(handshake, fault.Truncate(10))
		_, err := shakeHands(t, srv, "a").ReadFrame(enough)
		require.ErrorIs(t, err, rawzk.ErrClosed)
		require.ErrorContains(t, err, "after 10 bytes")
		require.Len(t, srv.Sessions(), 1)
	})
}

func TestDelayedHandshake(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		srv.On(handshake, fault.Delay(2*time.Second))
		began := time.Now()
		c := shakeHands(t, srv, "a")
		c.receiveNothing(t, time.Second)
		require.Empty(t, srv.Sessions())
		_, err := c.ReadFrame(enough)
		require.NoError(t, err)
		require.Equal(t, 2*time.Second, time.Since(began))
		require.Len(t, srv.Sessions(), 1)
	})
}

func TestHeldHandshakeGoesOnWhenReleased(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		rule := srv.On(handshake, fault.Hold())
		c := shakeHands(t, srv, "a")
		c.receiveNothing(t, time.Second)
		require.Empty(t, srv.Sessions())
		rule.Release()
		_, err := c.ReadFrame(enough)
		require.NoError(t, err)
	})
}

// A client that resumes its session is told that it has expired, but the session stays.
func TestFailedHandshakeSaysThatTheSessionHasExpired(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := enterRaw(t, srv, "a")
		srv.Client("a").Drop()
		srv.On(handshake, fault.Fail(zktest.SessionExpired))
		hello := newSession
		hello.Session, hello.Password = c.session, c.password
		told := greet(t, dialRaw(t, srv.Client("a"), srv.MemAddr()), hello)
		require.Zero(t, told.session)
		told.receiveEnd(t, rawzk.ErrClosed)
		_, lives := srv.Session(c.session)
		require.True(t, lives)
	})
}

func TestRulesForHandshakesAreForHandshakesOnly(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		any := srv.On(fault.Match{Times: fault.Always}, fault.Pass())
		shakes := srv.On(fault.Match{Op: fault.OpConnect, Client: "a", Times: fault.Always}, fault.Pass())
		enterRaw(t, srv, "b")
		c := enterRaw(t, srv, "a")
		require.Equal(t, []int{0, 1}, []int{any.Hits(), shakes.Hits()})
		c.send(t, 1, createOp("/x"))
		c.receive(t, 1)
		require.Equal(t, []int{1, 1}, []int{any.Hits(), shakes.Hits()})
	})
}

func TestWaitSession(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		enterRaw(t, srv, "b")
		var got zktest.Session
		waiting := start(func() (err error) {
			got, err = srv.Client("a").WaitSession(context.Background())
			return err
		})
		require.False(t, waiting.ended(), "only another client has a session")
		c := enterRaw(t, srv, "a")
		require.NoError(t, waiting.wait(t))
		require.Equal(t, c.session, got.ID)
		require.True(t, got.Connected)

		srv.Client("a").Drop()
		synctest.Wait()
		waiting = start(func() (err error) { got, err = srv.Client("a").WaitSession(context.Background()); return err })
		require.False(t, waiting.ended(), "it has no connection")
		c.again(t, srv, "a")
		require.NoError(t, waiting.wait(t))
		require.Equal(t, c.session, got.ID)
		at, err := srv.Client("a").WaitSession(soon(t))
		require.NoError(t, err)
		require.Equal(t, c.session, at.ID, "at once")
	})
}

func TestWaitSessionEndsWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := srv.Client("a").WaitSession(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "session of a")
	})
}
