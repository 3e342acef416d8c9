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

// conn is a connection from a client. Two goroutines serve it: one reads requests and carries them out, one after the other, and one
// sends what is in the outbox. When either ends the connection does, and so the other.
type conn struct {
	srv     *Server
	client  *Client
	replica *replica
	life    *lifetime
	net     net.Conn
	in      *bufio.Reader
	out     *outbox
	number  int           // in the order in which they came
	gone    chan struct{} // closed when the writer has closed net

	swallows atomic.Bool // a black hole: nothing that comes in counts any more, and nothing goes out

	// Guarded by srv.mu.
	session  *session // nil before the handshake
	ids      []proto.ID
	readOnly bool // its client takes read-only servers
	ended    bool
	since    time.Time
	tally    tally
}

// inBuffer is for reading; frames that are larger are read past it.
const inBuffer = 2048

// accept begins to serve a connection, unless the server has stopped.
func (s *Server) accept(client *Client, r *replica, nc net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life == nil || client.refuses {
		return false
	}
	s.conns++
	c := &conn{
		srv: s, client: client, replica: r, life: s.life, net: nc, out: newOutbox(), number: s.conns,
		in: bufio.NewReaderSize(nc, inBuffer), gone: make(chan struct{}), since: s.clock.now(),
	}
	c.ids = []proto.ID{{Scheme: "ip", ID: hostOf(nc.RemoteAddr())}}
	c.swallows.Store(client.blackhole)
	s.life.conns[c] = struct{}{}
	s.life.running.Go(c.read)
	s.life.running.Go(c.write)
	s.expectSession(c)
	return true
}

// expectSession ends a connection that does not ask for a session in time.
func (s *Server) expectSession(c *conn) {
	s.clock.at(s.afterTick(s.clock.now().Add(s.cfg.sessionless), s.cfg.sessionlessOut), func() {
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

// next reads a request and carries it out. It reports whether to go on.
func (c *conn) next() bool {
	frame, err := proto.ReadFrame(c.in, c.srv.cfg.maxFrame)
	return err == nil && c.arrives() && c.serve(frame)
}

// arrives holds back what the client's network, or a pause of the server, keeps from it.
func (c *conn) arrives() bool {
	return c.pass(c.client.requests, c.client.frozen, c.srv.paused)
}

// pass waits until all gates are open at once. It reports false when it would wait and the server has stopped.
func (c *conn) pass(gates ...*gate.Gate) bool {
	for slices.ContainsFunc(gates, (*gate.Gate).Closed) {
		for _, g := range gates {
			if !g.Pass(c.life.done) {
				return false
			}
		}
	}
	return true
}

// finish is the end of the reading goroutine: the client has closed the connection, or was told to go.
func (c *conn) finish() {
	c.arrives() // an end of the stream does not overtake what the network keeps back
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	if !c.ended { // or else the writer has something to finish
		c.end(dropAll)
	}
}

// end takes the connection out of everything; the writer closes it. It needs srv.mu. An end that follows a milder one is harsher.
func (c *conn) end(how ending) {
	c.out.end(how)
	if c.ended {
		return
	}
	c.ended = true
	c.replica.watches.Forget(c)
	if c.session != nil && c.session.conn == c {
		c.session.conn = nil
	}
	if c.session != nil {
		c.srv.note(c.client, c.session.id, "disconnected")
	}
}

// write is the writing goroutine.
func (c *conn) write() {
	defer c.hangUp()
	for {
		select {
		case <-c.out.wake:
		case <-c.life.done:
			return
		}
		frames, how := c.out.take()
		if !c.send(frames) {
			return
		}
		if how = c.out.harsher(how); how != goesOn {
			if how == flushAll {
				c.departs(false)
			}
			if how == resetAll {
				reset(c.net)
			}
			return
		}
	}
}

// send writes frames; with latencies each is a delivery of its own.
func (c *conn) send(frames []outFrame) bool {
	var batch []byte
	for _, f := range frames {
		if !c.departs(f.event) {
			return false
		}
		if c.out.harsher(goesOn) != goesOn {
			return true // what was held back is not sent any more
		}
		if c.swallows.Load() {
			continue
		}
		batch = append(batch, f.data...)
		if c.srv.cfg.seed != nil || len(batch) > 64<<10 || c.client.holds() {
			if _, err := c.net.Write(batch); err != nil {
				return false
			}
			batch = batch[:0]
		}
	}
	if len(batch) == 0 {
		return true
	}
	_, err := c.net.Write(batch)
	return err == nil
}

// departs holds back what must not go out now.
func (c *conn) departs(event bool) bool {
	if event {
		return c.pass(c.client.replies, c.client.frozen, c.client.events, c.srv.paused)
	}
	return c.pass(c.client.replies, c.client.frozen, c.srv.paused)
}

func (c *conn) hangUp() {
	_ = c.net.Close()
	close(c.gone)
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	c.end(dropAll)
	c.life.countersOf(c.replica).absorb(c)
	delete(c.life.conns, c)
}

// reset makes the close that follows one without ceremony.
func reset(nc net.Conn) {
	switch nc := nc.(type) {
	case *net.TCPConn:
		_ = nc.SetLinger(0)
	case *memory:
		nc.Reset()
	}
}

// event needs srv.mu.
func (c *conn) event(zxid int64, kind int32, path string) {
	if c.ended {
		return
	}
	c.tally.sent++
	c.srv.traceEvent(c, kind, path)
	c.out.put(outFrame{proto.Event(zxid, kind, path), true})
}

// super is what those who need no permission are.
var super = []proto.ID{{Scheme: tree.SuperScheme}}
