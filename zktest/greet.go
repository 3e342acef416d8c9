package zktest

import (
	"crypto/subtle"
	"fmt"
	"io"
	"time"

	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/internal/effect"
	"github.com/docent-zk/docent/zktest/internal/proto"
)

// greet performs the handshake, or answers a four-letter word. It reports whether the client now
// has a session.
func (c *conn) greet() bool {
	var prefix [proto.PrefixSize]byte
	if _, err := io.ReadFull(c.in, prefix[:]); err != nil || !c.arrives() || c.swallowed() {
		return false
	}
	if word := string(prefix[:]); isWord(word) {
		c.answerWord(word)
		return false
	}
	frame, err := proto.ReadBody(c.in, prefix, c.srv.cfg.maxFrame)
	if err != nil || !c.arrives() || c.swallowed() {
		return false
	}
	req, err := proto.ParseConnect(frame)
	if err != nil {
		return false
	}
	a, ok := c.meetConnect(req)
	return ok && c.connect(req, a) && c.awaitOutcome(c.entered)
}

// awaitOutcome waits for the result of the handshake, which the leader or a lagging server may
// delay. It reports false if the handshake has failed or the server has stopped.
func (c *conn) awaitOutcome(outcome <-chan bool) bool {
	select {
	case ok := <-outcome:
		return ok
	case <-c.life.done:
		return false
	}
}

// meetConnect applies the rules to the handshake. It reports false if the handshake must not
// continue.
func (c *conn) meetConnect(req proto.Connect) (a effect.Effect, ok bool) {
	r := c.srv.rules.Meet(fault.Request{Op: fault.OpConnect, Client: c.client.name})
	switch a = r.Action().Effect(); a.Kind {
	case effect.Hold:
		return a, c.await(r) && c.acts()
	case effect.Fail:
		c.srv.mu.Lock()
		defer c.srv.mu.Unlock()
		c.refuseSession(req, "made to fail")
		return a, false
	case effect.DropBefore:
		c.hangUpBy(flushAll, "handshake dropped before")
		return a, false
	case effect.Reset:
		c.hangUpBy(resetAll, "handshake reset")
		return a, false
	}
	return a, true
}

// hangUpBy ends the connection and records why.
func (c *conn) hangUpBy(how ending, why string) {
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	c.srv.note(c.client, 0, why)
	c.end(how)
}

// swallowed reports whether the client's data goes into a black hole. It then reads until the
// connection ends.
func (c *conn) swallowed() bool {
	if !c.swallows.Load() {
		return false
	}
	c.lost.Store(true)
	_, _ = io.Copy(io.Discard, c.in)
	return true
}

// connect opens a session or resumes one. It reports false if it refuses the client. Otherwise the
// result is sent to c.entered later.
func (c *conn) connect(req proto.Connect, a effect.Effect) bool {
	s := c.srv
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case c.ended:
		return false
	case c.replica.role == looking:
		s.note(c.client, 0, "connect refused: "+c.replica.name()+" has no leader")
		c.end(flushAll)
		return false
	case req.LastZxid > c.replica.applied:
		s.note(c.client, 0, fmt.Sprintf("connect refused: the client has seen transaction %#x", req.LastZxid))
		c.end(flushAll)
		return false
	case s.readOnly && !req.ReadOnly:
		s.note(c.client, 0, "connect refused: the server is read-only")
		c.end(flushAll)
		return false
	}
	c.timeout = c.replica.timeout(millisOf(req.Timeout))
	if req.Session != 0 {
		c.reattach(req, a)
	} else {
		c.startSession(req, a)
	}
	return true
}

// millisOf converts a timeout that a client has asked for.
func millisOf(ms int32) time.Duration { return time.Duration(ms) * time.Millisecond }

// startSession opens a session with one transaction.
func (c *conn) startSession(req proto.Connect, a effect.Effect) {
	s, by := c.srv, c.replica.link
	c.replica.toLeader(&leaderRequest{
		carryOut: func() int64 {
			sess := s.openSession(c.client, c.timeout, by)
			if !c.ended {
				c.attach(sess)
			}
			s.note(c.client, sess.id, "connected"+c.where())
			return s.zxid
		},
		answered: func() { c.enter(req, a) },
	})
}

// reattach resumes a session. The connection that the session had to this server ends, whether or
// not the password is right. The leader is notified even if the client has given up by then.
func (c *conn) reattach(req proto.Connect, a effect.Effect) {
	s, sess := c.srv, c.srv.sessions[req.Session]
	if sess != nil && sess.at[c.replica] != nil {
		sess.at[c.replica].end(flushAll)
	}
	if sess == nil || subtle.ConstantTimeCompare(sess.password[:], req.Password) == 0 {
		c.refuseSession(req, "no such session, or not its password")
		c.outcome(false)
		return
	}
	by := c.replica.link
	c.replica.renew(func() {
		valid := s.alive(sess) && !sess.closing
		if valid {
			c.takeOver(sess, by)
		}
		c.replica.fromLeader(by, func() {
			if valid {
				c.enter(req, a)
				return
			}
			c.refuseSession(req, "no such session")
			c.outcome(false)
		})
	})
}

// takeOver makes the session belong to this server, and sets the timeout that was granted now. A
// stale leader only does so for itself.
func (c *conn) takeOver(sess *session, by *link) {
	s := c.srv
	if c.replica.role != staleLeader {
		sess.owner, sess.moved = by, false
		sess.attached++
		s.touch(sess, c.timeout)
	}
	c.attached = sess.attached
	if !c.ended {
		c.attach(sess)
	}
	s.note(c.client, sess.id, "connected again"+c.where())
}

// enter sends the client its session, unless the connection has ended.
func (c *conn) enter(req proto.Connect, a effect.Effect) { c.outcome(!c.ended && c.welcome(req, a)) }

// outcome sends the result of the handshake to the reader. Only the first call counts.
func (c *conn) outcome(in bool) {
	select {
	case c.entered <- in:
	default:
	}
}

// refuseSession answers that the client's session has expired. The caller holds srv.mu.
func (c *conn) refuseSession(req proto.Connect, why string) {
	c.srv.note(c.client, 0, "connect refused: "+why)
	c.put(proto.Connected(0, 0, [16]byte{}, req, c.srv.readOnly))
	c.end(flushAll)
}

// welcome answers with the client's session and reports whether the client gets it. The caller
// holds srv.mu.
func (c *conn) welcome(req proto.Connect, a effect.Effect) bool {
	sess := c.session
	c.countConnect(req.Session == 0)
	frame := proto.Connected(int32(c.timeout.Milliseconds()), sess.id, sess.password, req, c.srv.readOnly)
	switch a.Kind {
	case effect.DropAfter:
		c.end(flushAll)
		return false
	case effect.Truncate:
		frame = frame[:min(a.Bytes, len(frame))]
	}
	c.put(frame)
	if a.Kind == effect.Truncate {
		c.end(flushAll)
		return false
	}
	close(c.srv.joined) // wakes WaitSession
	c.srv.joined = make(chan struct{})
	return true
}

// where returns a note with the server's address, or nothing for the first server.
func (c *conn) where() string {
	if c.replica == c.srv.first.replica {
		return ""
	}
	return " to " + c.replica.memAddr()
}

// put sends a frame. The caller holds srv.mu.
func (c *conn) put(frame []byte) {
	c.tally.sent++
	c.deliver(outFrame{frame, false})
}
