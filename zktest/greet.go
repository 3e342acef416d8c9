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
	if !ok {
		return false
	}
	zxid, ok := c.connect(req)
	return ok && c.awaitReplica(zxid) && c.welcome(req, a)
}

// meetConnect does what a rule says about the handshake. It reports false if there is nothing more to do.
func (c *conn) meetConnect(req proto.Connect) (a Action, ok bool) {
	r := c.srv.rules.Meet(rule.Request{Op: op.Connect, Client: c.client.name})
	if r == nil {
		return a, true
	}
	switch a = r.Action(); a.kind {
	case hold:
		return a, c.await(r) && c.pass(requestArrives, c.client.frozen, c.srv.paused)
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

// connect opens a session or goes on with one. It reports whether the client is let in, and the transaction that the replica must have
// before the client is told.
func (c *conn) connect(req proto.Connect) (zxid int64, ok bool) {
	s := c.srv
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case c.ended:
		return 0, false
	case req.LastZxid > c.replica.applied:
		s.note(c.client, 0, fmt.Sprintf("connect refused: the client has seen transaction %d", req.LastZxid))
		c.end(flushAll)
		return 0, false
	case s.readOnly && !req.ReadOnly:
		s.note(c.client, 0, "connect refused: the server is read-only")
		c.end(flushAll)
		return 0, false
	case req.Session != 0:
		return 0, c.reattach(req)
	}
	c.session = s.openSession(c.client, s.cfg.timeout(millisOf(req.Timeout)))
	c.session.conn = c
	s.note(c.client, c.session.id, "connected"+c.where())
	return s.zxid, true
}

// millisOf is a timeout that a client asked for.
func millisOf(ms int32) time.Duration { return time.Duration(ms) * time.Millisecond }

// reattach goes on with a session. The connection that it had ends, whether or not the password is right.
func (c *conn) reattach(req proto.Connect) bool {
	s, sess := c.srv, c.srv.sessions[req.Session]
	if sess != nil && sess.conn != nil {
		sess.conn.end(flushAll)
	}
	if sess == nil || subtle.ConstantTimeCompare(sess.password[:], req.Password) == 0 {
		c.turnDown(req, "no such session, or not its password")
		return false
	}
	c.session, sess.conn, sess.moved = sess, c, false
	sess.attached++
	c.attached = sess.attached
	sess.timeout = s.cfg.timeout(millisOf(req.Timeout))
	sess.heard = s.clock.now()
	s.watchOver(sess) // the timeout may be shorter than it was
	s.note(c.client, sess.id, "connected again"+c.where())
	return true
}

// turnDown tells the client that its session has expired. It needs srv.mu.
func (c *conn) turnDown(req proto.Connect, why string) {
	c.srv.note(c.client, 0, "connect refused: "+why)
	c.put(proto.Connected(0, 0, [16]byte{}, req, c.srv.readOnly))
	c.end(flushAll)
}

// welcome tells the client of its session.
func (c *conn) welcome(req proto.Connect, a Action) bool {
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	sess := c.session
	c.countConnect(req.Session == 0)
	frame := proto.Connected(int32(sess.timeout.Milliseconds()), sess.id, sess.password, req, c.srv.readOnly)
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

// where says which server it is, if it is not the leader.
func (c *conn) where() string {
	if c.replica == c.srv.leader {
		return ""
	}
	return " to " + c.replica.memAddr()
}

// awaitReplica waits until the replica has a transaction. It reports false when the server has stopped.
func (c *conn) awaitReplica(zxid int64) bool {
	for {
		c.srv.mu.Lock()
		done, news := c.replica.applied >= zxid, c.replica.news
		c.srv.mu.Unlock()
		if done {
			return true
		}
		select {
		case <-news:
		case <-c.life.done:
			return false
		}
	}
}

// put needs srv.mu.
func (c *conn) put(frame []byte) {
	c.tally.sent++
	c.out.put(outFrame{frame, false})
}
