package zktest

import (
	"fmt"
	"time"
)

// Start starts a server that was stopped, with the nodes and sessions that it had and on the port that it had. Each session has its whole
// timeout again; watches and credentials belong to connections and are gone, as are requests that were delayed or held. Followers that
// are not frozen know everything. A pause and being read-only stay. Starting a server that runs does nothing.
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
	s.tell("started")
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

// setAlarms begins to wait for all that comes with time. It needs s.mu.
func (s *Server) setAlarms() {
	s.clock.alarms, s.reaping = nil, false
	for _, sess := range s.sessions {
		sess.alarm = time.Time{}
	}
	s.joinAll()
	s.hearAll()
	s.reapLater()
}

// hearAll gives all sessions their whole timeout. It needs s.mu.
func (s *Server) hearAll() {
	now := s.clock.now()
	for _, id := range s.sessionIDs() {
		s.sessions[id].heard = now
		s.watchOver(s.sessions[id])
	}
}

// Stop ends all connections and the listening sockets, and waits for all that the server runs. Its state stays: [Server.Start]
// goes on with it, and until then the methods that look at it and change it work. Clients see the connections end and new ones refused,
// whatever [Client.Cut] and the like say.
func (s *Server) Stop() {
	s.switching.Lock()
	defer s.switching.Unlock()
	s.stop()
}

// stop needs s.switching.
func (s *Server) stop() {
	s.mu.Lock()
	l := s.life
	if l == nil {
		s.mu.Unlock()
		return
	}
	s.tell("stopped")
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

// Close stops the server for good. Its state can still be looked at and changed, to no effect on anybody.
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

// Restart is Stop and Start.
func (s *Server) Restart() error {
	s.Stop()
	return s.Start()
}

// Wipe makes a stopped server and its followers forget everything, sessions and transaction ids included, as if their disks had been
// emptied. Clients that have seen more than they know are not let in. Wiping a server that runs is an error.
func (s *Server) Wipe() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life != nil {
		return fmt.Errorf("zktest: wipe: the server is running")
	}
	s.tell("wiped")
	s.forget()
	return nil
}

// ResumeOrder says what a server does first when it goes on after a pause.
type ResumeOrder int

// The orders. With the real server it is a matter of luck.
const (
	ExpireFirst   ResumeOrder = iota // sessions whose time has passed expire, even if they have sent something
	RequestsFirst                    // sessions with a connection have been heard of
)

// Pause makes the server do nothing, as if its process had been stopped: connections stay and are accepted, and what clients send waits.
func (s *Server) Pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tell("paused")
	s.paused.Set(false)
}

// Resume lets a paused server go on.
func (s *Server) Resume(first ResumeOrder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tell("resumed")
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

// SetReadOnly makes the server one that has lost its quorum and goes on as a read-only server, or one that has it again. A change ends all
// connections at once, as [Server.Stop] does; setting what is set already does nothing. A read-only server lets in only clients that say in
// their handshake that they accept one, tells them that it is read-only, and answers changes with [NotReadOnly]; no session expires.
// Afterwards all sessions have their whole timeout again. No setting has to allow it.
//
// Sessions may come and go while the server is read-only. The real server since 3.7 opens only local sessions then, if they are enabled,
// which end with the loss; a session that is older than the loss is turned away until there is a quorum again.
func (s *Server) SetReadOnly(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readOnly == on {
		return
	}
	s.tell(fmt.Sprintf("read-only: %v", on))
	s.readOnly = on
	if !on {
		s.hearAll()
	}
	if s.life == nil {
		return
	}
	for _, c := range sortedConns(s.life.conns) {
		c.end(dropAll)
	}
}
