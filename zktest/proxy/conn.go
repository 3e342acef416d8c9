package proxy

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/internal/effect"
	"github.com/docent-zk/docent/zktest/internal/gate"
)

// conn is a client's connection with the proxy's connection to the server. Two goroutines serve it,
// one for each direction. The first to return closes both sockets, so that the other returns too.
type conn struct {
	p      *Proxy
	client net.Conn
	waits  bool // connections could not be made when this one was accepted
	source *source
	reader *bufio.Reader   // of source
	done   <-chan struct{} // closed when the connection must end
	cancel func()          // closes done

	mu      sync.Mutex
	server  net.Conn  // nil until dialled
	pending []pending // requests passed on and not answered yet, in order
}

// pending is a request that the server has not answered yet.
type pending struct {
	xid  int32
	drop bool // discard the answer, then close
}

func newConn(p *Proxy, client net.Conn) (*conn, context.Context) {
	ctx, cancel := context.WithCancel(context.Background())
	from := &source{Conn: client}
	return &conn{
		p: p, client: client, waits: p.up.Closed(), source: from, reader: bufio.NewReader(from),
		done: ctx.Done(), cancel: cancel,
	}, ctx
}

// source is what a client sends.
type source struct {
	net.Conn
	now bool // do not wait
}

func (s *source) Read(b []byte) (int, error) {
	if s.now {
		return readNow(s.Conn, b)
	}
	return s.Conn.Read(b)
}

// run serves the connection until it ends. When it returns, all goroutines of the connection have
// ended.
func (c *conn) run(ctx context.Context) {
	defer c.close()
	if c.abandoned() || !c.dial(ctx) {
		return
	}
	replies := make(chan struct{})
	go func() {
		defer close(replies)
		defer c.close()
		c.pump(bufio.NewReader(c.server), c.p.down, c.client, c.reply)
	}()
	c.pump(c.reader, c.p.up, c.server, c.request)
	c.close()
	<-replies
}

// abandoned waits until connections may be made, and reports whether the client has given up by
// then. Such an attempt must not reach the server: it would take the session away from the client's
// next attempt.
func (c *conn) abandoned() bool {
	if !c.p.up.Pass(c.done) {
		return true
	}
	if !c.waits {
		return false
	}
	c.source.now = true
	_, err := c.reader.Peek(c.reader.Size())
	c.source.now = false
	return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}

func (c *conn) dial(ctx context.Context) bool {
	server, err := (&net.Dialer{}).DialContext(ctx, "tcp", c.p.currentTarget())
	if err != nil {
		return false
	}
	c.mu.Lock()
	c.server = server
	c.mu.Unlock()
	select {
	case <-c.done: // close may have missed it
		_ = server.Close()
		return false
	default:
		return true
	}
}

// pump passes on frames from one side until either side ends. The first frame opens the session and
// has no header. Each later frame goes to handle, which reports false to end the connection. Other
// data is passed on unchanged.
func (c *conn) pump(from *bufio.Reader, g *gate.Gate, to net.Conn, handle func([]byte) bool) {
	for first := true; ; first = false {
		frame, whole, err := readFrame(from)
		switch {
		case whole && !first:
			if !handle(frame) {
				return
			}
		case !c.send(g, to, frame):
			return
		}
		if err != nil {
			g.Pass(c.done) // the end of the stream does not overtake what the gate keeps back
			return
		}
		if !whole {
			c.copy(from, g, to)
			return
		}
	}
}

// copy is pump without frames.
func (c *conn) copy(from io.Reader, g *gate.Gate, to net.Conn) {
	chunk := make([]byte, 32<<10)
	for {
		n, err := from.Read(chunk)
		if !c.send(g, to, chunk[:n]) || err != nil {
			return
		}
	}
}

func (c *conn) send(g *gate.Gate, to net.Conn, data []byte) bool {
	if !g.Pass(c.done) {
		return false
	}
	_, err := to.Write(data)
	return err == nil
}

// request passes on a frame from the client, or applies a rule to it.
func (c *conn) request(frame []byte) bool {
	if !c.p.up.Pass(c.done) {
		return false
	}
	req, ok := parseRequest(frame)
	if !ok {
		return c.send(c.p.up, c.server, frame)
	}
	r := c.p.meet(req)
	if !c.act(r) {
		return false
	}
	c.expect(pending{req.xid, r.Action().Effect().Kind == effect.DropAfter})
	return c.send(c.p.up, c.server, frame)
}

// act applies a rule, or nil, before the request is passed on. It reports false to end the
// connection.
func (c *conn) act(r *fault.Rule) bool {
	switch r.Action().Effect().Kind {
	case effect.DropBefore:
		return false
	case effect.Reset:
		c.reset()
		return false
	case effect.Hold:
		return c.wait(r)
	}
	return true
}

// wait carries out Delay and Hold.
func (c *conn) wait(r *fault.Rule) bool {
	var after <-chan time.Time // never, for Hold
	if d := r.Action().Effect().Delay; d >= 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		after = timer.C
	}
	select {
	case <-after:
		return true
	case <-r.Released():
		return true
	case <-c.done:
		return false
	}
}

// reply passes on a frame from the server.
func (c *conn) reply(frame []byte) bool {
	if xid, ok := replyXID(frame); ok && c.answered(xid) {
		c.p.down.Pass(c.done) // the end of the connection is held back as the reply would be
		return false
	}
	return c.send(c.p.down, c.client, frame)
}

func (c *conn) expect(next pending) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending = append(c.pending, next)
}

// answered removes the oldest request with this xid from the list and reports whether its answer
// must be dropped. An event answers no request. All answers except those to auth come in order, so
// the search is short.
func (c *conn) answered(xid int32) (drop bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, next := range c.pending {
		if next.xid == xid {
			c.pending = append(c.pending[:i], c.pending[i+1:]...)
			return next.drop
		}
	}
	return false
}

// reset makes the following close send a TCP reset.
func (c *conn) reset() {
	if tcp, ok := c.client.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
}

// close ends the connection without waiting for its goroutines. It may be called more than once.
func (c *conn) close() {
	c.cancel()
	_ = c.client.Close()
	c.mu.Lock()
	if c.server != nil {
		_ = c.server.Close()
	}
	c.mu.Unlock()
	c.p.forget(c)
}
