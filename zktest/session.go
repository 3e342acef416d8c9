package zktest

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// serverID is the first byte of all session ids, as on a standalone server.
const serverID = 1

// session is a session on the server. The server's mutex guards it.
type session struct {
	id       int64
	password [16]byte
	timeout  time.Duration
	granted  time.Duration      // timeout when the session was opened
	heard    time.Time          // when the server last heard from its client
	conn     *conn              // its last connection, or nil
	at       map[*replica]*conn // the last connection to each server, if it has not ended
	client   *Client            // the client that opened it
	owner    *link              // of the server that it belongs to; nil means the first that asks
	moved    bool               // Move was called: its connection here may not carry out requests
	closing  bool               // it is past its timeout, and ends when there is a quorum
	closer   *conn              // the connection that has asked for its end
	attached int                // number of connections so far
	alarm    time.Time          // next check of its timeout; zero if none is set
}

// passwordOf returns a session's password. It depends only on the id, so that it need not be kept.
func passwordOf(id int64) (p [16]byte) {
	sum := sha256.Sum256([]byte("session " + strconv.FormatInt(id, 16)))
	copy(p[:], sum[:])
	return p
}

// openSession opens a session with one transaction.
func (s *Server) openSession(client *Client, timeout time.Duration, owner *link) *session {
	sess := &session{
		id: s.nextSession, timeout: timeout, granted: timeout, heard: s.clock.now(), client: client, owner: owner,
		at: map[*replica]*conn{},
	}
	sess.password = passwordOf(sess.id)
	s.nextSession++
	s.sessions[sess.id] = sess
	s.setExpiry(sess)
	s.commit(transaction{Stamp: s.stamp()})
	return sess
}

// deadline returns the first tick after the session's timeout.
func (s *Server) deadline(sess *session) time.Time {
	return s.afterTick(sess.heard.Add(sess.timeout), s.cfg.tick)
}

func (s *Server) afterTick(t time.Time, tick time.Duration) time.Time {
	return nextTick(s.started, t, tick)
}

// nextTick returns the first moment after t that is a whole number of ticks later than begun.
func nextTick(begun, t time.Time, tick time.Duration) time.Time {
	return begun.Add((t.Sub(begun)/tick + 1) * tick)
}

// setExpiry sets an alarm that expires the session at its deadline. It keeps an alarm that is
// already set, unless the deadline is now earlier.
func (s *Server) setExpiry(sess *session) {
	at := s.deadline(sess)
	if !sess.alarm.IsZero() && !at.Before(sess.alarm) {
		return
	}
	sess.alarm = at
	s.clock.at(at, func() {
		if !sess.alarm.Equal(at) || !s.alive(sess) {
			return
		}
		sess.alarm = time.Time{}
		s.expireIfOverdue(sess)
	})
}

// expireIfOverdue ends the session if it is past its timeout and a leader can notice it.
func (s *Server) expireIfOverdue(sess *session) {
	switch {
	case s.readOnly: // nothing can be written; afterwards each session gets its timeout again
	case s.leader.role != leading, s.leader.process.Closed():
		// The next leader gives the session its timeout again, or this one checks it when it is
		// thawed.
	case sess.closing:
	case s.deadline(sess).After(s.clock.now()):
		s.setExpiry(sess)
	default:
		sess.closing = true
		s.propose(func() { s.expire(sess) })
	}
}

// expire ends a session against its client's will. Its connection ends without a message.
func (s *Server) expire(sess *session) {
	if !s.alive(sess) {
		return
	}
	s.record(sess.client, sess.id, Entry{What: "expired", Timeout: sess.timeout})
	s.endSession(sess)
}

// alive reports whether a session still exists.
func (s *Server) alive(sess *session) bool { return s.sessions[sess.id] == sess }

// owned reports whether a session belongs to the server with the link by. A session without a
// server belongs to the first that asks.
func (sess *session) owned(by *link) bool {
	if sess.owner == nil {
		sess.owner = by
	}
	return sess.owner == by
}

// endSession ends a session and deletes all of its ephemeral nodes in one transaction.
func (s *Server) endSession(sess *session) {
	at := s.stamp()
	effects := s.tree.EndSession(sess.id, at)
	delete(s.sessions, sess.id)
	s.commit(transaction{Stamp: at, effects: effects, ended: sess})
}

func (s *Server) sessionIDs() []int64 { return slices.Sorted(maps.Keys(s.sessions)) }

// Session is a snapshot of a session. Its methods act on the session as it is now.
type Session struct {
	ID         int64
	Client     string // the name of the client that opened it
	Timeout    time.Duration
	Connected  bool
	Ephemerals []string // the paths of its nodes, sorted

	srv *Server
}

// Sessions returns all sessions, in the order in which they were opened.
func (s *Server) Sessions() []Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Session
	for _, id := range s.sessionIDs() {
		all = append(all, s.look(s.sessions[id]))
	}
	return all
}

// Session returns the session with the given id. It reports false if there is none.
func (s *Server) Session(id int64) (Session, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sess := s.sessions[id]
	if sess == nil {
		return Session{}, false
	}
	return s.look(sess), true
}

func (s *Server) look(sess *session) Session {
	return Session{
		ID: sess.id, Client: sess.client.name, Timeout: sess.timeout, Connected: sess.conn != nil,
		Ephemerals: s.tree.Ephemerals(sess.id), srv: s,
	}
}

// String returns the session's name as it stands in traces.
func (s Session) String() string {
	if s.srv == nil {
		return "no session"
	}
	return s.srv.sessionName(s.ID)
}

// act calls do with the session, or returns an error if it has ended.
func (s Session) act(verb string, do func(*session)) error {
	if s.srv == nil {
		return fmt.Errorf("zktest: %s: no session: %w", verb, SessionExpired)
	}
	s.srv.mu.Lock()
	defer s.srv.mu.Unlock()
	sess := s.srv.sessions[s.ID]
	if sess == nil {
		return fmt.Errorf("zktest: %s session %v (0x%x), which has ended: %w", verb, s, s.ID, SessionExpired)
	}
	s.srv.record(sess.client, sess.id, Entry{What: verb, Note: "by the test"})
	do(sess)
	return nil
}

// Expire ends the session now, as if the server had not heard from its client for the session's
// timeout. One transaction deletes its ephemeral nodes. Its connection ends without a message, and
// a client that resumes the session learns that it has expired. Expire and the other methods return
// an error that matches [SessionExpired] if the session has already ended.
func (s Session) Expire() error { return s.act("expire", s.srv.expire) }

// Drop ends the session's connection. The session stays, and its timeout goes on. Without a
// connection Drop does nothing.
func (s Session) Drop() error { return s.endConn("drop", flushAll) }

// Reset is Drop with a TCP reset; what has not arrived yet is lost.
func (s Session) Reset() error { return s.endConn("reset", resetAll) }

func (s Session) endConn(verb string, how ending) error {
	return s.act(verb, func(sess *session) {
		if sess.conn != nil {
			sess.conn.end(how)
		}
	})
}

// Move makes the session belong to another server. The next request on its connection is not
// carried out, and ends the connection. The client can resume the session.
func (s Session) Move() error {
	return s.act("move", func(sess *session) { sess.moved = true })
}

// sessionName returns the name of the session in traces: s and its number in the order of opening.
func (s *Server) sessionName(id int64) string {
	return "s" + strconv.FormatInt(id-s.firstID+1, 10)
}
