package zktest

import (
	"bufio"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/docent-zk/docent/zktest/internal/gate"
	"github.com/docent-zk/docent/zktest/internal/proto"
	"github.com/docent-zk/docent/zktest/internal/tree"
)

// conn is a connection from a client. Two goroutines serve it. One reads requests and carries them
// out in order; the other sends what is in the outbox. When either returns, the connection ends.
// The other then returns as soon as nothing holds it back.
type conn struct {
	srv     *Server
	client  *Client
	replica *replica
	life    *lifetime
	net     net.Conn
	in      *bufio.Reader
	out     *outbox
	number  int // in the order of arrival

	swallows atomic.Bool // a black hole: requests are discarded, and nothing is sent
	lost     atomic.Bool // something was discarded

	// Guarded by srv.mu.
	session  *session      // nil before the handshake
	timeout  time.Duration // that the server granted
	entered  chan bool     // of capacity 1: receives whether the handshake has succeeded
	queue    []*pending
	attached int // number of connections that the session had before
	ids      []proto.ID
	ended    bool
	since    time.Time
	tally    tally
}

// inBuffer is the size of the read buffer. Larger frames are read past it.
const inBuffer = 2048

// accept starts to serve a connection and reports whether it did. It does not if the server has
// stopped or refuses the client.
func (s *Server) accept(client *Client, r *replica, nc net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life == nil || client.refuses {
		return false
	}
	s.conns++
	c := &conn{
		srv: s, client: client, replica: r, life: s.life, net: nc, out: newOutbox(), number: s.conns,
		in: bufio.NewReaderSize(nc, inBuffer), since: s.clock.now(), entered: make(chan bool, 1),
	}
	c.ids = []proto.ID{{Scheme: "ip", ID: hostOf(nc.RemoteAddr())}}
	c.swallows.Store(client.blackhole)
	s.life.conns[c] = struct{}{}
	s.life.running.Go(c.read)
	s.life.running.Go(c.write)
	s.expectSession(c)
	return true
}

// expectSession ends the connection if it does not ask for a session in time.
func (s *Server) expectSession(c *conn) {
	s.clock.at(s.afterTick(s.clock.now().Add(s.cfg.sessionless), s.cfg.sessionless), func() {
		if c.session == nil {
			c.end(flushAll)
		}
	})
}

func hostOf(a net.Addr) string {
	host, _, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	return host
}

// read is the reading goroutine.
func (c *conn) read() {
	defer c.finish()
	for proceed := c.greet; proceed(); {
		proceed = c.next
	}
}

// next reads one request and carries it out. It reports whether to continue.
func (c *conn) next() bool {
	frame, err := proto.ReadFrame(c.in, c.srv.cfg.maxFrame)
	return err == nil && c.arrives() && c.serve(frame)
}

// arrives waits while the client's network or a paused server keeps input back.
func (c *conn) arrives() bool {
	return c.pass(requestArrives, c.client.requests, c.client.frozen, c.srv.paused, c.replica.process)
}

// pass waits until all gates are open at once. It reports false if it would have to wait and the
// server has stopped.
func (c *conn) pass(what int, gates ...*gate.Gate) bool {
	if !anyClosed(gates) {
		return true
	}
	for anyClosed(gates) {
		for _, g := range gates {
			if !g.Pass(c.life.done) {
				return false
			}
		}
	}
	c.client.awaitSlot(what, c.number) // other connections may wait for the same gates
	return true
}

func anyClosed(gates []*gate.Gate) bool { return slices.ContainsFunc(gates, (*gate.Gate).Closed) }

// finish ends the reading goroutine: the client has closed the connection, or the server has ended
// it.
func (c *conn) finish() {
	c.arrives() // the end of the stream does not overtake what the network keeps back
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	if !c.ended { // otherwise the writer may still have something to send
		c.end(dropAll)
	}
}

// end removes the connection from the server's state; the writer closes it. The caller holds
// srv.mu. A harder end may follow a softer one. Only flushAll waits for a client that does not
// read.
func (c *conn) end(how ending) {
	c.endOutput(how)
	if c.ended {
		return
	}
	c.ended = true
	c.replica.watches.Forget(c)
	if c.session != nil {
		c.detach()
		c.srv.note(c.client, c.session.id, "disconnected")
	}
}

// endOutput makes the writer end the connection.
func (c *conn) endOutput(how ending) {
	c.out.end(how)
	if tcp, ok := c.net.(*net.TCPConn); ok && how > flushAll {
		_ = tcp.SetWriteDeadline(time.Unix(1, 0))
	}
}

// deliver sends a frame. It ends the connection of a client that leaves too much unread.
func (c *conn) deliver(f outFrame) {
	if !c.out.put(f) {
		c.endOutput(dropAll)
	}
}

// attach makes c the session's connection.
func (c *conn) attach(sess *session) {
	c.session, sess.at[c.replica] = sess, c
	if c.replica.role != staleLeader {
		sess.conn = c
	}
}

func (c *conn) detach() {
	if c.session.conn == c {
		c.session.conn = nil
	}
	if c.session.at[c.replica] == c {
		delete(c.session.at, c.replica)
	}
}

// event sends a watch event. The caller holds srv.mu.
func (c *conn) event(zxid int64, kind int32, path string) {
	if c.ended {
		return
	}
	c.tally.sent++
	c.srv.traceEvent(c, kind, path)
	c.deliver(outFrame{proto.Event(zxid, kind, path), true})
}

// super is the identity that has all permissions.
var super = []proto.ID{{Scheme: tree.SuperScheme}}
