package zktest

import (
	"crypto/subtle"
	"fmt"
	"io"
	"time"

	"github.com/docent-zk/docent/zktest/internal/proto"
	"github.com/docent-zk/docent/zktest/internal/rule"
	"github.com/docent-zk/docent/zktest/op"
)

// greet is the handshake, or a four-letter word in its place. It reports whether the client has a session now.
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

// awaitOutcome waits for what the leader, or what its server has yet to learn, keeps open. It reports false when the server has stopped.
func (c *conn) awaitOutcome(outcome <-chan bool) bool {
	select {
	case ok := <-outcome:
		return ok
	case <-c.life.done:
		return false
	}
}

// meetConnect does what a rule says about the handshake. It reports false if there is nothing more to do.
func (c *conn) meetConnect(req proto.Connect) (a Action, ok bool) {
	r := c.srv.rules.Meet(rule.Request{Op: op.Connect, Client: c.client.name})
	if r == nil {
		return a, true
	}
	switch a = r.Action(); a.kind {
	case hold:
		return a, c.await(r) && c.acts()
	case fail:
		c.srv.mu.Lock()
		defer c.srv.mu.Unlock()
		c.turnDown(req, "made to fail")
		return a, false
	case dropBefore:
		c.hangUpBy(flushAll, "handshake dropped before")
		return a, false
	case resetBefore:
		c.hangUpBy(resetAll, "handshake reset")
		return a, false
	}
	return a, true
}

// hangUpBy ends the connection and says why.
func (c *conn) hangUpBy(how ending, why string) {
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	c.srv.note(c.client, 0, why)
	c.end(how)
}

// swallowed reads to the end of what goes into a black hole.
func (c *conn) swallowed() bool {
	if !c.swallows.Load() {
		return false
	}
	c.lost.Store(true)
	_, _ = io.Copy(io.Discard, c.in)
	return true
}

// connect opens a session or goes on with one. It reports false for a client that is not let in; what comes of it else is told later.
func (c *conn) connect(req proto.Connect, a Action) bool {
	s := c.srv
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case c.ended:
		return false
	case c.replica.role == looks:
		s.note(c.client, 0, "connect refused: "+c.replica.name()+" has no leader")
		c.end(flushAll)
		return false
	case req.LastZxid > c.replica.applied:
		s.note(c.client, 0, fmt.Sprintf("connect refused: the client has seen transaction %d", req.LastZxid))
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
		c.enroll(req, a)
	}
	return true
}

// millisOf is a timeout that a client asked for.
func millisOf(ms int32) time.Duration { return time.Duration(ms) * time.Millisecond }

// enroll opens a session: one transaction.
func (c *conn) enroll(req proto.Connect, a Action) {
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

// reattach goes on with a session. The connection that it had to this server ends, whether or not the password is right. The leader is told even
// if the client has given up by then.
func (c *conn) reattach(req proto.Connect, a Action) {
	s, sess := c.srv, c.srv.sessions[req.Session]
	if sess != nil && sess.at[c.replica] != nil {
		sess.at[c.replica].end(flushAll)
	}
	if sess == nil || subtle.ConstantTimeCompare(sess.password[:], req.Password) == 0 {
		c.turnDown(req, "no such session, or not its password")
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
			c.turnDown(req, "no such session")
			c.outcome(false)
		})
	})
}

// takeOver makes the session the server's, and gives it the timeout that was granted anew. A stale leader
// does so for itself.
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

// enter tells the client of its session, unless it has given up.
func (c *conn) enter(req proto.Connect, a Action) { c.outcome(!c.ended && c.welcome(req, a)) }

// outcome tells the reader what has come of the handshake. Only the first counts.
func (c *conn) outcome(in bool) {
	select {
	case c.entered <- in:
	default:
	}
}

// turnDown tells the client that its session has expired. It needs srv.mu.
func (c *conn) turnDown(req proto.Connect, why string) {
	c.srv.note(c.client, 0, "connect refused: "+why)
	c.put(proto.Connected(0, 0, [16]byte{}, req, c.srv.readOnly))
	c.end(flushAll)
}

// welcome tells the client of its session. It needs srv.mu.
func (c *conn) welcome(req proto.Connect, a Action) bool {
	sess := c.session
	c.countConnect(req.Session == 0)
	frame := proto.Connected(int32(c.timeout.Milliseconds()), sess.id, sess.password, req, c.srv.readOnly)
	switch a.kind {
	case dropAfter:
		c.end(flushAll)
		return false
	case truncate:
		frame = frame[:min(a.bytes, len(frame))]
	}
	c.put(frame)
	if a.kind == truncate {
		c.end(flushAll)
		return false
	}
	close(c.srv.joined) // somebody may wait for this
	c.srv.joined = make(chan struct{})
	return true
}

// where says which server it is, if it is not the first.
func (c *conn) where() string {
	if c.replica == c.srv.first.replica {
		return ""
	}
	return " to " + c.replica.memAddr()
}

// put needs srv.mu.
func (c *conn) put(frame []byte) {
	c.tally.sent++
	c.out.put(outFrame{frame, false})
}
