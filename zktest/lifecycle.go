package zktest

import (
	"fmt"
	"time"
)

// turn is a mutex. In virtual time the clock goes on while goroutines wait for it, which is not so with sync.Mutex.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

func (t turn) Lock() { t <- struct{}{} }

func (t turn) Unlock() { <-t }

// Start starts a server that was stopped, with its nodes and sessions and on the same port. Each
// session has its whole timeout again. Watches and credentials, which belong to connections, are
// lost, as are delayed or held requests. Followers that are not frozen learn of all changes. A
// pause and read-only mode stay. Start does nothing if the server is running.
func (s *Server) Start() error {
	s.switching.Lock()
	defer s.switching.Unlock()
	l := &lifetime{done: make(chan struct{}), conns: map[*conn]struct{}{}, counters: map[*replica]*counters{}}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return fmt.Errorf("zktest: start: the server was closed")
	}
	if s.life != nil {
		s.mu.Unlock()
		return nil
	}
	l.since = s.clock.now()
	s.life = l
	s.traceTest("started")
	s.setAlarms()
	doors := s.doors()
	l.running.Go(func() { s.keepTime(l) })
	s.mu.Unlock()
	for _, d := range doors {
		if err := d.open(); err != nil {
			s.stop()
			return fmt.Errorf("zktest: start: %w", err)
		}
	}
	return nil
}

// setAlarms sets the alarms of a server that starts. The caller holds s.mu.
func (s *Server) setAlarms() {
	s.clock.alarms, s.reaping = nil, false
	for _, sess := range s.sessions {
		sess.alarm = time.Time{}
	}
	s.joinAll()
	s.restartTimeouts()
	s.reapLater()
}

// restartTimeouts gives all sessions their whole timeout. The caller holds s.mu.
func (s *Server) restartTimeouts() {
	now := s.clock.now()
	for _, id := range s.sessionIDs() {
		s.sessions[id].heard = now
		s.setExpiry(s.sessions[id])
	}
}

// Stop ends all connections and the listening sockets, and waits for the server's goroutines. The
// state stays: the methods that read and change it still work, and [Server.Start] goes on with it.
// Clients see their connections end and new ones refused, even after [Client.Cut] and the like.
func (s *Server) Stop() {
	s.switching.Lock()
	defer s.switching.Unlock()
	s.stop()
}

// stop is Stop for callers that hold s.switching.
func (s *Server) stop() {
	s.mu.Lock()
	l := s.life
	if l == nil {
		s.mu.Unlock()
		return
	}
	s.traceTest("stopped")
	s.life, s.clock.alarms = nil, nil // no time passes while a server is stopped
	for _, c := range sortedConns(l.conns) {
		c.end(dropAll)
	}
	doors := s.doors()
	close(l.done)
	s.mu.Unlock()
	for _, d := range doors {
		d.close()
	}
	l.running.Wait()
}

// Close stops the server for good. Its state can still be read and changed, without effect on
// clients.
func (s *Server) Close() {
	s.switching.Lock()
	defer s.switching.Unlock()
	s.stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, d := range s.doors() {
		d.remove()
	}
}

// Restart calls Stop and Start.
func (s *Server) Restart() error {
	s.Stop()
	return s.Start()
}

// Wipe makes a stopped server and its followers forget everything, sessions and transaction ids
// included, as if their disks had been emptied. Clients that have seen later transactions are
// refused. Wipe returns an error if the server is running.
func (s *Server) Wipe() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life != nil {
		return fmt.Errorf("zktest: wipe: the server is running")
	}
	s.traceTest("wiped")
	s.forget()
	return nil
}

// ResumeOrder says what a server does first when it resumes after a pause.
type ResumeOrder int

// The orders. The real server may do either.
const (
	ExpireFirst   ResumeOrder = iota // sessions past their timeout expire, even if they have sent something
	RequestsFirst                    // sessions with a connection count as heard from
)

// Pause makes the server do nothing, as if its process had been stopped. Connections stay and new
// ones are accepted. What clients send waits.
func (s *Server) Pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.traceTest("paused")
	s.paused.Set(false)
}

// Resume ends a pause.
func (s *Server) Resume(first ResumeOrder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.traceTest("resumed")
	now := s.clock.now()
	if first == RequestsFirst {
		for _, sess := range s.sessions {
			if sess.conn != nil {
				sess.heard = now
			}
		}
	}
	s.clock.run(now)
	s.paused.Set(true)
	select {
	case s.clock.wake <- struct{}{}:
	default:
	}
}

// SetReadOnly(true) makes the server act as one that has lost its quorum and continues read-only.
// SetReadOnly(false) makes it act as one that has a quorum again. A change ends all connections at
// once, as [Server.Stop] does. Setting the current value does nothing. A read-only server accepts
// only clients that allow one in their handshake, and says there that it is read-only. It answers
// changes with [NotReadOnly], and no session expires. Afterwards all sessions have their whole
// timeout again. No setting is needed.
//
// Sessions may be opened and closed while the server is read-only. The real server since 3.7 then
// opens only local sessions, if they are enabled, and these end when it leaves read-only mode. It
// refuses a session that is older than the loss of the quorum until there is a quorum again.
func (s *Server) SetReadOnly(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readOnly == on {
		return
	}
	s.traceTest(fmt.Sprintf("read-only: %v", on))
	s.readOnly = on
	if !on { // the servers have elected a leader
		s.beginToLead()
		s.restartTimeouts()
	}
	if s.life == nil {
		return
	}
	for _, c := range sortedConns(s.life.conns) {
		c.end(dropAll)
	}
}
