package zktest

import (
	"context"
	"fmt"

	"github.com/docent-zk/docent/zktest/internal/gate"
	"github.com/docent-zk/docent/zktest/op"
)

// Client is the way from one client to the servers, by name: faults of its network, its counters, its part in traces. It is no client
// itself. The empty name is that of clients who use the server's own [Server.Addr] and [Server.Dialer]. Its methods may be called from
// any goroutine.
//
// Switches work on what the client sends and gets from the moment on at which they are called, on connections that exist and on new
// ones. Several may be on at once.
type Client struct {
	srv    *Server
	name   string
	number int // in the order in which they were named

	requests, replies *gate.Gate // closed while cut
	frozen, events    *gate.Gate
	dialling          *gate.Gate // closed while cut, in any direction

	// Guarded by srv.mu.
	refuses, blackhole bool
	doors              []*door
	dials              int
	counts             op.Counts
}

// Client returns the client of that name. Names are made by using them.
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
		events: gate.New(), dialling: gate.New(), counts: op.Counts{},
	}
	s.clients = append(s.clients, c)
	return c
}

// Name is the client's name.
func (c *Client) Name() string { return c.name }

// Cut ends all traffic between the client and the servers, as a broken cable does: nobody is told. What is sent meanwhile arrives after
// [Client.Heal], even if its sender has given up by then; connections that the client tries to make in memory wait for that, until they
// time out. Over TCP they are made, and get no answer. The sessions' time goes on.
func (c *Client) Cut() {
	c.tell("cut")
	c.cut(c.requests)
	c.cut(c.replies)
}

// CutRequests is [Client.Cut] for what the client sends.
func (c *Client) CutRequests() {
	c.tell("requests cut")
	c.cut(c.requests)
}

// CutReplies is [Client.Cut] for what the client gets: requests are carried out, and answers and events are kept back.
func (c *Client) CutReplies() {
	c.tell("replies cut")
	c.cut(c.replies)
}

func (c *Client) cut(g *gate.Gate) {
	c.dialling.Set(false)
	g.Set(false)
}

// Heal undoes Cut, CutRequests and CutReplies, and nothing else.
func (c *Client) Heal() {
	c.tell("healed")
	c.requests.Set(true)
	c.replies.Set(true)
	c.dialling.Set(true)
}

// Freeze makes the server do nothing for this client, and keep what it sends: like [Client.Cut], but new connections are accepted. The
// sessions' time goes on.
func (c *Client) Freeze() {
	c.tell("frozen")
	c.frozen.Set(false)
}

// Thaw undoes Freeze.
func (c *Client) Thaw() {
	c.tell("thawed")
	c.frozen.Set(true)
}

// HoldEvents keeps back the next watch event to the client, and all that follows it on its connection: nothing overtakes, so a client that
// gets events late gets everything late.
func (c *Client) HoldEvents() {
	c.tell("events held")
	c.events.Set(false)
}

// ReleaseEvents undoes HoldEvents.
func (c *Client) ReleaseEvents() {
	c.tell("events released")
	c.events.Set(true)
}

// tell traces what the test does to the client.
func (c *Client) tell(what string) {
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	c.srv.record(c, 0, Entry{What: what, Note: "by the test"})
}

// Blackhole on swallows for good what the client sends from now on and what it would be sent. Connections are accepted and get no answer.
// Off resets the connections that have lost something.
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

// Refuse on refuses new connections of the client. Those that exist stay; see [Client.Drop]. Over TCP the system has accepted a connection
// before the server hears of it: there it ends at once.
func (c *Client) Refuse(on bool) {
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	c.srv.record(c, 0, Entry{What: fmt.Sprintf("refused: %v", on), Note: "by the test"})
	c.refuses = on
}

// Drop ends all connections of the client when all has been sent that it has been answered. It may connect again at once.
func (c *Client) Drop() { c.end(flushAll, "drop") }

// Reset is Drop with a TCP reset; what has not arrived yet is lost.
func (c *Client) Reset() { c.end(resetAll, "reset") }

func (c *Client) end(how ending, verb string) {
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	c.srv.record(c, 0, Entry{What: verb, Note: "by the test"})
	for _, conn := range c.conns() {
		conn.end(how)
	}
}

// conns are the client's connections. It needs srv.mu.
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

// Connections is how many connections of the client are open.
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

// WaitSession waits until the client has a session and a connection, and returns the session. It is an error if ctx ends before.
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

// connected is a session of the client that has a connection, and what is closed at the next.
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

// Sessions are the sessions that the client has opened and that have not ended.
func (c *Client) Sessions() []Session {
	var own []Session
	for _, s := range c.srv.Sessions() {
		if s.Client == c.name {
			own = append(own, s)
		}
	}
	return own
}

// Requests counts what the client has sent since the last [Server.ResetCounts], by type. A request counts when the server reads it.
func (c *Client) Requests() Counts {
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	return c.counts.Clone()
}

// String names the client as traces do.
func (c *Client) String() string {
	if c.name == "" {
		return "-"
	}
	return c.name
}
