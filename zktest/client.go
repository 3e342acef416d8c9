package zktest

import (
	"context"
	"fmt"

	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/internal/gate"
)

// Client is the network between one named client and the servers: its faults, its counters and its
// entries in traces. It is not a client itself. The empty name stands for all clients that use the
// server's own [Server.Addr] and [Server.Dialer]. Its methods may be called from any goroutine.
//
// A switch takes effect when it is called. It applies to traffic in both existing and new
// connections. Several switches may be on at once.
type Client struct {
	srv    *Server
	name   string
	number int // in the order of creation

	requests, replies *gate.Gate // closed while cut
	frozen, events    *gate.Gate
	dialling          *gate.Gate // closed while either direction is cut

	// Guarded by srv.mu.
	refuses, blackhole bool
	doors              []*door
	dials              int
	counts             fault.Counts
}

// Client returns the client of that name, and creates it at the first call.
func (s *Server) Client(name string) *Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.clients {
		if c.name == name {
			return c
		}
	}
	c := &Client{
		srv: s, name: name, number: len(s.clients), requests: gate.New(), replies: gate.New(), frozen: gate.New(),
		events: gate.New(), dialling: gate.New(), counts: fault.Counts{},
	}
	s.clients = append(s.clients, c)
	return c
}

// Name returns the client's name.
func (c *Client) Name() string { return c.name }

// Cut stops all traffic between the client and the servers, as a broken cable does: neither side is
// notified. What is sent meanwhile arrives after [Client.Heal], even if its sender has given up by
// then. A new connection in memory waits for Heal until it times out. A new connection over TCP is
// made, but gets no answer. Session timeouts go on.
func (c *Client) Cut() {
	c.traceTest("cut")
	c.cut(c.requests)
	c.cut(c.replies)
}

// CutRequests is [Client.Cut] for what the client sends.
func (c *Client) CutRequests() {
	c.traceTest("requests cut")
	c.cut(c.requests)
}

// CutReplies is [Client.Cut] for what the client receives. The server carries out requests, and
// keeps answers and events back.
func (c *Client) CutReplies() {
	c.traceTest("replies cut")
	c.cut(c.replies)
}

func (c *Client) cut(g *gate.Gate) {
	c.dialling.Set(false)
	g.Set(false)
}

// Heal undoes Cut, CutRequests and CutReplies, and nothing else.
func (c *Client) Heal() {
	c.traceTest("healed")
	c.requests.Set(true)
	c.replies.Set(true)
	c.dialling.Set(true)
}

// Freeze makes the server ignore this client and keep what it sends. Unlike after [Client.Cut], new
// connections are accepted. Session timeouts go on.
func (c *Client) Freeze() {
	c.traceTest("frozen")
	c.frozen.Set(false)
}

// Thaw undoes Freeze.
func (c *Client) Thaw() {
	c.traceTest("thawed")
	c.frozen.Set(true)
}

// HoldEvents keeps back the next watch event to the client, and everything after it on its
// connection. The order on a connection stays: a client that gets events late gets all later
// answers late too.
func (c *Client) HoldEvents() {
	c.traceTest("events held")
	c.events.Set(false)
}

// ReleaseEvents undoes HoldEvents.
func (c *Client) ReleaseEvents() {
	c.traceTest("events released")
	c.events.Set(true)
}

// traceTest adds what the test does to the client to the trace.
func (c *Client) traceTest(what string) {
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	c.srv.record(c, 0, Entry{What: what, Note: "by the test"})
}

// Blackhole(true) discards everything that the client sends and everything that the server sends
// it. Connections are accepted and get no answer. Blackhole(false) resets the connections that have
// lost data.
func (c *Client) Blackhole(on bool) {
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	c.srv.record(c, 0, Entry{What: fmt.Sprintf("black hole: %v", on), Note: "by the test"})
	c.blackhole = on
	for _, conn := range c.conns() {
		if on {
			conn.swallows.Store(true)
		} else if conn.swallows.Swap(false) && conn.lost.Load() {
			conn.end(resetAll)
		}
	}
}

// Refuse(true) refuses new connections of the client. Existing connections stay; see [Client.Drop].
// Over TCP the system accepts a connection before the server sees it, so there the connection is
// closed at once.
func (c *Client) Refuse(on bool) {
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	c.srv.record(c, 0, Entry{What: fmt.Sprintf("refused: %v", on), Note: "by the test"})
	c.refuses = on
}

// Drop closes all connections of the client after sending the answers that are due. The client may
// connect again at once.
func (c *Client) Drop() { c.end(flushAll, "drop") }

// Reset closes all connections of the client with a TCP reset. What has not arrived yet is lost.
func (c *Client) Reset() { c.end(resetAll, "reset") }

func (c *Client) end(how ending, verb string) {
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	c.srv.record(c, 0, Entry{What: verb, Note: "by the test"})
	for _, conn := range c.conns() {
		conn.end(how)
	}
}

// conns returns the client's connections. The caller holds srv.mu.
func (c *Client) conns() []*conn {
	if c.srv.life == nil {
		return nil
	}
	var all []*conn
	for _, conn := range sortedConns(c.srv.life.conns) {
		if conn.client == c {
			all = append(all, conn)
		}
	}
	return all
}

// Connections returns the number of open connections of the client.
func (c *Client) Connections() int {
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	open := 0
	for _, conn := range c.conns() {
		if !conn.ended {
			open++
		}
	}
	return open
}

// WaitSession waits until the client has a session with a connection, and returns the session. It
// returns an error if ctx ends before.
func (c *Client) WaitSession(ctx context.Context) (Session, error) {
	for {
		sess, joined := c.connected()
		if sess.srv != nil {
			return sess, nil
		}
		select {
		case <-joined:
		case <-ctx.Done():
			return Session{}, fmt.Errorf("zktest: wait for a session of %v: %w", c, context.Cause(ctx))
		}
	}
}

// connected returns a session of the client that has a connection. If there is none, it returns a
// channel that is closed when any session next connects.
func (c *Client) connected() (Session, <-chan struct{}) {
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	for _, id := range c.srv.sessionIDs() {
		if sess := c.srv.sessions[id]; sess.conn != nil && sess.conn.client == c {
			return c.srv.look(sess), nil
		}
	}
	return Session{}, c.srv.joined
}

// Sessions returns the sessions that the client has opened and that still exist.
func (c *Client) Sessions() []Session {
	var own []Session
	for _, s := range c.srv.Sessions() {
		if s.Client == c.name {
			own = append(own, s)
		}
	}
	return own
}

// Requests returns the number of requests of each type that the client has sent since the last
// [Server.ResetCounts]. A request is counted when the server reads it.
func (c *Client) Requests() fault.Counts {
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	return c.counts.Clone()
}

// String returns the client's name as it stands in traces.
func (c *Client) String() string {
	if c.name == "" {
		return "-"
	}
	return c.name
}
