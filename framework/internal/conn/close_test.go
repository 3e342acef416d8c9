package conn

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// closed closes c. The test fails unless Close returns in time. TestMain looks for goroutines that
// are left.
func closed(t *testing.T, c *client) {
	t.Helper()
	start := time.Now()
	c.Close()
	require.Less(t, time.Since(start), testTimeout, "closing took too long")
	require.True(t, c.over())
	c.Close() // a second call does nothing
}

// attempting reports whether an attempt to connect is under way.
func (c *client) attempting() bool {
	c.Conn.mu.Lock()
	defer c.Conn.mu.Unlock()
	return c.attempt.cancel != nil
}

func TestCloseEndsEverythingInEachState(t *testing.T) {
	refused := serve(t, stall)
	refused.closeAll()
	for name, row := range map[string]struct {
		script func(*peer)
		dial   func(context.Context, string, string) (net.Conn, error)
		until  func(c *client, s *server) bool
	}{
		"at once": {
			script: stall,
			until:  func(*client, *server) bool { return true },
		},
		"refused": {
			dial:  redirect(refused.addr()),
			until: func(c *client, _ *server) bool { return c.Failures() != nil },
		},
		"dialling": {
			dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			},
			until: func(c *client, _ *server) bool { return c.attempting() },
		},
		"during the handshake": {
			script: stall,
			until:  func(c *client, s *server) bool { return s.accepted() > 0 && c.attempting() },
		},
		"in the middle of the connect reply": {
			script: func(p *peer) { _, _ = p.Write([]byte{0, 0, 0, 36}); stall(p) },
			until:  func(c *client, s *server) bool { return s.accepted() > 0 && c.attempting() },
		},
		"connected": {
			script: func(p *peer) { p.answerAll(7, long) },
			until:  func(c *client, _ *server) bool { return c.Admitted() },
		},
		"connected to a silent server": {
			script: func(p *peer) { p.grant(7, long); stall(p) },
			until:  func(c *client, _ *server) bool { return c.Admitted() },
		},
		"disconnected": {
			script: func(p *peer) {
				if p.number == 0 {
					p.grant(7, long)
				}
			},
			until: func(c *client, s *server) bool { return s.accepted() > 1 },
		},
		"expired": {
			script: func(p *peer) { p.read(); p.write(make([]byte, 36)...); stall(p) },
			until:  func(c *client, _ *server) bool { return c.over() },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s *server
			address := "127.0.0.1:1"
			if row.script != nil {
				s = serve(t, row.script)
				address = s.addr()
			}
			c := connect(t, Config{Dial: row.dial}, address)
			eventually(t, func() bool { return row.until(c, s) }, "the state was not reached: %v", c.Failures())
			closed(t, c)
		})
	}
}

func TestEndSessionEndsTheSessionOnTheServer(t *testing.T) {
	ended := make(chan struct{})
	s := serve(t, func(p *peer) {
		if _, ok := p.grant(7, long); !ok {
			return
		}
		for f, ok := p.next(); ok; f, ok = p.next() {
			if f.op == opCloseSession {
				close(ended) // before the answer for which the client waits
			}
			if p.answer(f, 1) {
				return
			}
		}
	})
	c := connect(t, Config{}, s.addr())
	c.awaitSession(t, 7)
	require.True(t, c.EndSession(t.Context()))
	select {
	case <-ended:
	default:
		t.Fatal("EndSession returned without a request to the server")
	}
	require.False(t, c.EndSession(t.Context()), "there is no session any more")
	closed(t, c)
}

func TestEndOfTheSessionIsRequestedAfterUnansweredRequests(t *testing.T) {
	requests := make(chan frame, 10)
	s := serve(t, func(p *peer) {
		p.grant(7, long)
		for f, ok := p.next(); ok; f, ok = p.next() {
			requests <- f
		}
	})
	c := connect(t, Config{}, s.addr())
	c.awaitSession(t, 7)
	request := asked(c, Get("/", false))
	require.NotEqual(t, int32(opCloseSession), (<-requests).op)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan bool, 1)
	go func() { ended <- c.EndSession(ctx) }()
	require.Equal(t, int32(opCloseSession), (<-requests).op)
	cancel()
	require.False(t, <-ended, "the end was not confirmed")
	require.Error(t, await(t, request).Err(), "the connection is not closed")
	eventually(t, func() bool { return s.accepted() > 1 }, "no other connection is tried")
	closed(t, c)
}

func TestKillSendsNothing(t *testing.T) {
	requests := make(chan frame, 1)
	s := serve(t, func(p *peer) {
		p.grant(7, long)
		if f, ok := p.next(); ok {
			requests <- f
		}
		close(requests)
	})
	c := connect(t, Config{}, s.addr())
	c.awaitSession(t, 7)
	c.Kill()
	closed(t, c)
	f, any := <-requests
	require.False(t, any, "a request after Kill: %+v", f)
}
