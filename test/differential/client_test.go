package differential

import (
	"errors"
	"fmt"
	"time"

	"github.com/docent-zk/docent/internal/rawzk"
)

// client is a connection of a script. Its methods must not be called concurrently.
type client struct {
	script  *script
	name    string
	conn    *rawzk.Conn
	session *session // nil before the handshake
	hidden  bool     // its lines are not in the transcript
	patient time.Duration
	xid     int32
	waiting []*request // requests without an answer
	ending  error      // how the connection ended
	events  int        // number of received events
}

// request is a request without an answer yet.
type request struct {
	xid    int32
	op     rawzk.Op
	answer *reply
}

// reply is an answer. missing is true if there was none.
type reply struct {
	missing bool
	xid     int32
	zxid    int64
	err     int32
	body    []byte
}

// open connects and sends nothing.
func (s *script) open(name string) *client {
	conn, err := s.target.dial()
	if err != nil {
		s.giveUp("dial: %v", err)
	}
	c := &client{script: s, name: name, conn: conn, patient: patience}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients = append(s.clients, c)
	return c
}

// connect opens a connection with a new session whose timeout is longer than the scenario.
func (s *script) connect(name string) *client {
	c := s.open(name)
	c.hello(newSession(time.Minute))
	return c
}

// attach opens a connection for the session that another client has or had.
func (s *script) attach(name string, of *client) *client {
	c := s.open(name)
	c.hello(sameSession(of, time.Minute))
	return c
}

func newSession(timeout time.Duration) rawzk.Connect {
	return rawzk.Connect{Timeout: int32(timeout.Milliseconds()), Password: make([]byte, 16), ReadOnly: []byte{0}}
}

func sameSession(of *client, timeout time.Duration) rawzk.Connect {
	if of.session == nil {
		of.script.giveUp("client %s has no session to attach to", of.name)
	}
	hello := newSession(timeout)
	hello.Session, hello.Password = of.session.id, of.session.password
	return hello
}

// hello sends a connect request and waits for the answer.
func (c *client) hello(request rawzk.Connect) rawzk.Connected {
	c.sendFrame(request.Encode())
	return c.awaitConnected()
}

// awaitConnected reads the answer to a connect request.
func (c *client) awaitConnected() rawzk.Connected {
	frame, err := c.conn.ReadFrame(c.patient)
	if err != nil {
		c.ended(err)
		return rawzk.Connected{}
	}
	answer, err := rawzk.DecodeConnected(frame)
	if err != nil {
		c.logf("%v", err)
		return answer
	}
	c.session = c.script.remember(answer.Session, answer.Password)
	c.logf("connected protocol=%d timeout=%d session=%s password=%s extra=%x", answer.Protocol, answer.Timeout,
		c.script.sessionLabel(answer.Session), c.script.passwordLabel(answer.Password), answer.Extra)
	return answer
}

// sendFrame sends a frame of any content. Reading reports whether the connection has ended.
func (c *client) sendFrame(payload []byte) { _ = c.conn.SendFrame(payload) }

// sendBytes sends bytes as they are.
func (c *client) sendBytes(b []byte) { _ = c.conn.SendBytes(b) }

// send sends a request and does not wait.
func (c *client) send(op rawzk.Op) {
	c.xid++
	c.sendAs(c.xid, op)
}

// sendAs sends a request with the given xid.
func (c *client) sendAs(xid int32, op rawzk.Op) {
	c.expect(xid, op)
	c.sendFrame(rawzk.Request(xid, op))
}

// expect notes a request that was sent by other means, so that its answer is decoded.
func (c *client) expect(xid int32, op rawzk.Op) *request {
	r := &request{xid: xid, op: op, answer: &reply{missing: true}}
	c.waiting = append(c.waiting, r)
	c.logf("#%d %v", xid, op)
	return r
}

// pipeline sends all requests in one write and does not wait.
func (c *client) pipeline(ops ...rawzk.Op) {
	var all []byte
	for _, op := range ops {
		c.xid++
		c.expect(c.xid, op)
		all = append(all, rawzk.Frame(rawzk.Request(c.xid, op))...)
	}
	c.sendBytes(all)
}

// do sends a request and waits for its answer and those of all earlier requests.
func (c *client) do(op rawzk.Op) reply {
	c.send(op)
	answer := c.waiting[len(c.waiting)-1].answer
	c.settle()
	return *answer
}

// settle reads until all requests have an answer, or the connection ends.
func (c *client) settle() {
	for len(c.waiting) > 0 && c.ending == nil {
		c.read()
	}
	for _, r := range c.waiting {
		c.logf("  #%d has no answer", r.xid)
	}
	c.waiting = nil
}

// barrier waits for all due events, by a round trip that is not in the transcript.
func (c *client) barrier() {
	c.settle()
	c.xid++
	r := &request{xid: c.xid, op: rawzk.Op{Code: rawzk.OpSync, Body: rawzk.Str("/")}, answer: &reply{missing: true}}
	r.op.Text = barrierText
	c.waiting = []*request{r}
	c.sendFrame(rawzk.Request(r.xid, r.op))
	c.settle()
}

const barrierText = "barrier"

// end reads until the server ends the connection.
func (c *client) end() {
	for c.ending == nil {
		c.read()
	}
	c.waiting = nil
}

// close closes the session and waits for the end of the connection.
func (c *client) close() {
	c.send(rawzk.CloseSession())
	c.end()
}

// drop closes the connection and not the session.
func (c *client) drop() {
	c.conn.Close()
	c.ending = errors.New("dropped")
	c.waiting = nil
	c.logf("drops the connection")
}

func (c *client) logf(format string, args ...any) {
	if !c.hidden {
		c.script.logf("%s %s", c.name, fmt.Sprintf(format, args...))
	}
}
