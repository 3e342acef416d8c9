package zktest

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// serverID is the first byte of all session ids: that of a server that is alone.
const serverID = 1

// session is guarded by the server's mutex.
type session struct {
	id       int64
	password [16]byte
	timeout  time.Duration
	granted  time.Duration      // when it was opened
	heard    time.Time          // when its client was last heard of
	conn     *conn              // its last connection, or nil
	at       map[*replica]*conn // of each server the last, if it has not ended
	client   *Client            // who opened it
	owner    *link              // of the server that it belongs to; nil: the first that asks for something
	moved    bool               // it is another server's, by the test's wish: its connection here is of no use
	closing  bool               // its time has passed, and there is no quorum to end it
	closer   *conn              // the connection that has asked for its end
	attached int                // how many connections it has had
	alarm    time.Time          // when it will be looked at next; zero if nothing is set
}

// password is a function of the id, so that it needs no keeping.
func passwordOf(id int64) (p [16]byte) {
	sum := sha256.Sum256([]byte("session " + strconv.FormatInt(id, 16)))
	copy(p[:], sum[:])
	return p
}

// openSession is one transaction.
func (s *Server) openSession(client *Client, timeout time.Duration, owner *link) *session {
	sess := &session{
		id: s.nextSession, timeout: timeout, granted: timeout, heard: s.clock.now(), client: client, owner: owner,
		at: map[*replica]*conn{},
	}
	sess.password = passwordOf(sess.id)
	s.nextSession++
	s.sessions[sess.id] = sess
	s.watchOver(sess)
	s.commit(transaction{Stamp: s.stamp()})
	return sess
}

// deadline is the first tick after the session's timeout.
func (s *Server) deadline(sess *session) time.Time {
	return s.afterTick(sess.heard.Add(sess.timeout), s.cfg.tick)
}

func (s *Server) afterTick(t time.Time, tick time.Duration) time.Time {
	return s.started.Add((t.Sub(s.started)/tick + 1) * tick)
}

// watchOver expires the session when its time has come. There is one alarm, unless the deadline has come nearer.
func (s *Server) watchOver(sess *session) {
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
		s.overdue(sess)
	})
}

// overdue ends the session if its time has passed and there is a leader that sees it.
func (s *Server) overdue(sess *session) {
	switch {
	case s.readOnly: // nothing can be written; it gets its timeout when that is over
	case s.leader.role != leads, s.leader.process.Closed(): // the next leader gives it its timeout, or this one sees it when it goes on
	case sess.closing:
	case s.deadline(sess).After(s.clock.now()):
		s.watchOver(sess)
	default:
		sess.closing = true
		s.propose(func() { s.expire(sess) })
	}
}

// expire ends a session without its client's wish. Its connection ends without a word.
func (s *Server) expire(sess *session) {
	if !s.alive(sess) {
		return
	}
	s.note(sess.client, sess.id, "expired")
	s.endSession(sess)
}

// alive reports whether a session has not ended.
func (s *Server) alive(sess *session) bool { return s.sessions[sess.id] == sess }

// owned reports whether a session belongs to the server whose link that is. The first that asks gets one that belongs to none.
func (sess *session) owned(by *link) bool {
	if sess.owner == nil {
		sess.owner = by
	}
	return sess.owner == by
}

// endSession is one transaction: all of its ephemeral nodes go.
func (s *Server) endSession(sess *session) {
	at := s.stamp()
	effects := s.leader.tree.EndSession(sess.id, at)
	delete(s.sessions, sess.id)
	s.commit(transaction{Stamp: at, effects: effects, ended: sess})
}

func (s *Server) sessionIDs() []int64 { return slices.Sorted(maps.Keys(s.sessions)) }

// Session is a session as it was when it was asked for; its methods act on the session as it is.
type Session struct {
	ID         int64
	Client     string // the name of the client that opened it
	Timeout    time.Duration
	Connected  bool
	Ephemerals []string // the paths of its nodes, sorted

	srv *Server
}

// Sessions are all sessions, in the order in which they were opened.
func (s *Server) Sessions() []Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Session
	for _, id := range s.sessionIDs() {
		all = append(all, s.look(s.sessions[id]))
	}
	return all
}

// Session is the session with the given id. It reports false if there is none.
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
		Ephemerals: s.leader.tree.Ephemerals(sess.id), srv: s,
	}
}

// String names the session as traces do.
func (s Session) String() string {
	if s.srv == nil {
		return "no session"
	}
	return s.srv.sessionName(s.ID)
}

// act calls do with a session that still exists.
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

// Expire ends the session now, as if its client had not been heard of for the session's timeout: in one transaction its ephemeral nodes go,
// its connection ends without a word, and whoever comes with its id learns that it has expired. It is an error that matches [SessionExpired]
// if the session has ended already, as with the other methods.
func (s Session) Expire() error { return s.act("expire", s.srv.expire) }

// Drop ends the session's connection. The session lives on, and its time runs. Without a connection it does nothing.
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

// Move makes the session another server's: what its connection asks for next is not done, and ends the connection. A client that comes
// back is welcome.
func (s Session) Move() error {
	return s.act("move", func(sess *session) { sess.moved = true })
}

// sessionName is the session's number in the order of their opening.
func (s *Server) sessionName(id int64) string {
	return "s" + strconv.FormatInt(id-s.firstID+1, 10)
}
