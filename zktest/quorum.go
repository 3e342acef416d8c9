package zktest

import (
	"fmt"
	"slices"
	"time"
)

// role is what a server of the ensemble takes itself for.
type role int

const (
	looks   role = iota // for a leader: it serves no client
	follows             // a leader
	leads
	staleLeader // the others have elected another leader while it was frozen, and it does not know yet
)

// way is the direction from one server to another, by their numbers.
type way struct{ from, to int }

// silentVoter is the number of the third server of an ensemble that the test has made of two: it
// has no clients, and it votes.
const silentVoter = 0

// The ensemble. All that follows needs s.mu.

// passes reports whether what one server sends to another arrives.
func (s *Server) passes(from, to int) bool {
	return !s.cuts[way{from, to}] && !s.frozen(from) && !s.frozen(to)
}

func (s *Server) connected(a, b int) bool { return s.passes(a, b) && s.passes(b, a) }

func (s *Server) frozen(number int) bool {
	return number != silentVoter && s.replicas[number-1].process.Closed()
}

// voters is how many servers there are.
func (s *Server) voters() int {
	if len(s.replicas) == 2 {
		return 3
	}
	return len(s.replicas)
}

func (s *Server) majority(servers int) bool { return servers > s.voters()/2 }

// quorate reports whether the leader reaches a majority now, itself included.
func (s *Server) quorate() bool {
	count := 1
	for _, r := range s.replicas {
		if r.role == follows && s.connected(s.leader.number, r.number) {
			count++
		}
	}
	if s.silentFollows && s.connected(s.leader.number, silentVoter) {
		count++
	}
	return s.leader.role == leads && s.majority(count)
}

// hasLinks reports whether the leader has a majority of links, whether or not anything passes them
// at the moment.
func (s *Server) hasLinks() bool {
	count := 1
	for _, r := range s.replicas {
		if r.role == follows {
			count++
		}
	}
	if s.silentFollows {
		count++
	}
	return s.majority(count)
}

// syncTimeout is how long a server waits for another that is silent.
func (s *Server) syncTimeout() time.Duration { return time.Duration(s.cfg.syncLimit) * s.cfg.tick }

// networkChanged is to be called when it has changed who reaches whom.
func (s *Server) networkChanged() {
	if s.life == nil {
		return
	}
	for _, r := range s.replicas {
		if r.role == follows {
			s.checkLink(r)
		}
	}
	s.checkSilentVoter()
	s.joinOrElect()
	s.commitProposals()
}

// checkSilentVoter begins to count the time for which the server without clients does not reach the
// leader.
func (s *Server) checkSilentVoter() {
	was := s.silentOut
	s.silentOut = s.silentFollows && !s.connected(s.leader.number, silentVoter)
	if was || !s.silentOut {
		return
	}
	s.silentOutages++
	outage := s.silentOutages
	s.clock.at(s.clock.now().Add(s.syncTimeout()), func() {
		if s.silentOut && s.silentOutages == outage {
			s.silentFollows = false
			s.checkQuorum()
		}
	})
}

// checkLink lets a link's traffic go on, or begins to count the time of its silence.
func (s *Server) checkLink(r *replica) {
	l := r.link
	was := l.out
	l.out = !s.connected(s.leader.number, r.number)
	switch {
	case l.out && !was:
		l.outages++
		outage := l.outages
		s.clock.at(s.clock.now().Add(s.syncTimeout()), func() {
			if r.link == l && l.out && l.outages == outage {
				s.lose(r)
				s.checkQuorum()
			}
		})
	case !l.out:
		r.reportLater()
	}
	r.flush()
	downCut := l.downCut
	l.downCut = !s.passes(s.leader.number, r.number)
	if downCut && !l.downCut {
		r.receiveAnswers()
		r.catchUp()
	}
}

// commitProposals carries out what has waited for a quorum.
func (s *Server) commitProposals() {
	for len(s.proposals) > 0 && s.quorate() {
		do := s.proposals[0]
		s.proposals = s.proposals[1:]
		do()
	}
}

// lose ends a server's part in the ensemble: what it has not delivered is lost, and its clients
// have to go elsewhere.
func (s *Server) lose(r *replica) {
	s.record(nil, 0, Entry{What: r.name() + " has no leader"})
	r.role, r.link = looks, nil
	r.closeConns()
}

func (r *replica) name() string { return fmt.Sprintf("server %d", r.number) }

// closeConns ends all connections of the server's clients.
func (r *replica) closeConns() {
	r.waiting = nil
	if r.srv.life == nil {
		return
	}
	for _, c := range r.srv.life.connsOf(r) {
		c.abandon()
		c.end(flushAll)
	}
}

// checkQuorum lets a leader that has lost its majority step down, once it can notice, and has
// another elected.
func (s *Server) checkQuorum() {
	if s.leader.role == leads && !s.hasLinks() && !s.leader.process.Closed() {
		s.stepDown(s.leader)
	}
	s.joinOrElect()
}

// stepDown is what a leader does that has noticed that it has lost its followers.
func (s *Server) stepDown(r *replica) {
	if r == s.leader {
		s.proposals, s.silentFollows = nil, false
		for _, f := range s.replicas {
			if f.role == follows {
				s.lose(f)
			}
		}
	}
	s.lose(r)
	s.joinOrElect()
}

// joinOrElect lets servers without a leader join the one that there is, or has them elect one.
func (s *Server) joinOrElect() {
	if s.leader.role == leads && s.hasLinks() {
		s.joinReachable()
	}
	if s.electing || s.candidate() == nil {
		return
	}
	s.electing = true
	s.clock.at(s.clock.now().Add(s.cfg.tick), func() {
		s.electing = false
		if r := s.candidate(); r != nil {
			s.elect(r)
		}
	})
}

// joinReachable has the servers without a leader that reach the leader follow it.
func (s *Server) joinReachable() {
	if s.voters() > len(s.replicas) && s.connected(s.leader.number, silentVoter) {
		s.silentFollows = true
	}
	for _, r := range s.replicas {
		if r.role == looks && s.connected(s.leader.number, r.number) {
			s.join(r)
		}
	}
}

// candidate is the server that can be elected now, or nil: of those that reach a majority of
// servers without a leader the one that knows most, and of these the last.
func (s *Server) candidate() *replica {
	if s.leader.role == leads && !s.leader.process.Closed() && s.hasLinks() {
		return nil
	}
	var best *replica
	for _, r := range s.replicas {
		if r.role != looks || r.process.Closed() || !s.majority(s.votesFor(r)) {
			continue
		}
		if best == nil || r.applied >= best.applied {
			best = r
		}
	}
	return best
}

// votesFor is how many servers would follow r, itself included.
func (s *Server) votesFor(r *replica) int {
	count := 1
	if s.voters() > len(s.replicas) && !s.silentFollows && s.connected(r.number, silentVoter) {
		count++
	}
	for _, other := range s.replicas {
		if other != r && other.role == looks && s.connected(r.number, other.number) {
			count++
		}
	}
	return count
}

// elect makes a server the leader. It has everything that has ever been answered; each session has
// its whole timeout again, the one that it was created with.
func (s *Server) elect(r *replica) {
	if s.leader.role == leads {
		s.leader.role = staleLeader
	}
	r.role = follows
	r.apply(s.zxid)
	s.epoch++
	s.zxid = s.epoch << 32
	s.leader, s.proposals = r, nil
	r.role, r.link, r.applied = leads, &link{}, s.zxid
	s.record(nil, 0, Entry{What: r.name() + " leads"})
	for _, sess := range s.sessions {
		sess.owner, sess.closing, sess.timeout = nil, false, sess.granted
	}
	s.silentFollows = false
	s.joinReachable()
	s.hearAll()
	s.reapLater()
}

// join makes a server follow the leader. It learns of everything at once, unless it is kept from
// that.
func (s *Server) join(r *replica) {
	r.role, r.link = follows, &link{touched: map[*session]time.Duration{}}
	r.catchUp()
	if len(r.pending) == 0 {
		r.applied = s.zxid
	}
	s.commitProposals() // a leader that has its quorum again goes on with what has waited, in order
}

// joinAll has all servers of an ensemble that starts follow the leader that there was.
func (s *Server) joinAll() {
	s.electing, s.proposals = false, nil
	for _, r := range s.replicas {
		r.process.Set(true)
		r.waiting = nil
	}
	s.leader.role, s.leader.link = leads, &link{}
	s.silentFollows = s.voters() > len(s.replicas)
	for _, sess := range s.sessions {
		sess.owner, sess.closing, sess.timeout = nil, false, sess.granted
	}
	for _, r := range s.replicas {
		if r != s.leader {
			s.join(r)
		}
	}
	s.networkChanged()
}

// cut cuts the way from one server to another. What a frozen leader has in its sockets already is not
// held up by that.
func (s *Server) cut(from, to int) {
	if from != silentVoter && to == s.leader.number && !s.cuts[way{from, to}] && s.frozen(to) {
		if r := s.replicas[from-1]; r.role == follows {
			r.link.returned = len(r.link.renewals)
			if !r.holds {
				r.link.arrived = len(r.link.requests)
			}
		}
	}
	s.cuts[way{from, to}] = true
}

// restore removes all cuts of a server.
func (s *Server) restore(r *replica) {
	for w := range s.cuts {
		if w.from == r.number || w.to == r.number {
			delete(s.cuts, w)
		}
	}
}

// IsolateLeader cuts the leader off from all other servers, not from its clients. It carries out no
// write any more, and answers reads and its own clients' syncs until it notices, syncLimit ticks
// later ([WithConfig]), that it has lost its followers. By then it ends all connections, and the
// others elect another leader, a tick later: transaction ids begin with the next epoch, and each
// session has its whole timeout again. What has been answered stays; what waited is lost.
func (s *Server) IsolateLeader() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tell(s.leader.name() + ", the leader, isolated")
	for other := silentVoter; other <= len(s.replicas); other++ {
		if other != s.leader.number {
			s.cut(s.leader.number, other)
			s.cut(other, s.leader.number)
		}
	}
	s.networkChanged()
}

// RestoreAll undoes IsolateLeader and all cuts between servers.
func (s *Server) RestoreAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tell("servers restored")
	clear(s.cuts)
	s.networkChanged()
}

// FreezeLeader makes the process of the leader do nothing, as SIGSTOP or a long pause of its
// garbage collector does: connections to it stay and are accepted, what its clients send waits, as
// does what its followers send. If that lasts for syncLimit ticks ([WithConfig]) the followers end
// their clients' connections and elect another leader, as with [Server.IsolateLeader]. An ensemble
// of two votes as if there were a third server without clients; a server without followers is
// frozen, and that is all.
func (s *Server) FreezeLeader() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tell(s.leader.name() + ", the leader, frozen")
	s.leader.process.Set(false)
	s.networkChanged()
}

// ThawLeader undoes FreezeLeader. A leader that has kept its followers goes on: sessions whose time
// has passed expire first. One that has lost them does not know: for one tick more it answers
// pings, reads, syncs and the handshakes of sessions that it knows, those that have waited
// included, and no write. Then it ends its connections, forgets what it has not got a quorum for,
// and follows the new leader. [Server.Start] undoes FreezeLeader too.
func (s *Server) ThawLeader() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.replicas {
		if r.process.Closed() {
			s.thaw(r)
		}
	}
}

func (s *Server) thaw(r *replica) {
	s.tell(r.name() + " thawed")
	r.process.Set(true)
	s.networkChanged()
	if r == s.leader && r.role == leads && s.hasLinks() {
		for _, id := range s.sessionIDs() {
			s.overdue(s.sessions[id])
		}
		return
	}
	s.clock.at(s.clock.now().Add(s.cfg.tick), func() {
		if r.role == staleLeader || r == s.leader && r.role == leads && !s.hasLinks() {
			s.stepDown(r)
		}
	})
}

// Members are all servers of the ensemble, the one that [Server.MemAddr] stands for first.
func (s *Server) Members() []*Follower {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*Follower{s.first}, s.followers...)
}

// Leader is the server that leads, or nil if there is none at the moment. One that is frozen leads
// until another is elected.
func (s *Server) Leader() *Follower {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leader.role != leads {
		return nil
	}
	all := append([]*Follower{s.first}, s.followers...)
	return all[slices.Index(s.replicas, s.leader)]
}

// bounds are of session timeouts.
type bounds struct{ least, most time.Duration }

// SetSessionTimeouts changes the bounds of the timeouts that clients get from now on, when they
// connect to any of the servers, see [WithSessionTimeouts]. A client that connects again is granted
// a timeout anew, and the servers count with that.
func (s *Server) SetSessionTimeouts(least, most time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	checkTimeouts(least, most)
	s.tell(fmt.Sprintf("session timeouts: %v to %v", least, most))
	for _, r := range s.replicas {
		r.bounds = &bounds{least, most}
	}
}

// checkTimeouts panics on what is a mistake in the test's own text.
func checkTimeouts(least, most time.Duration) {
	if least < time.Millisecond || most < least {
		panic(fmt.Sprintf("zktest: session timeouts %v to %v: want 1ms or more, the smaller first", least, most))
	}
}

// timeout is what a client of this server gets of what it asks for.
func (r *replica) timeout(asked time.Duration) time.Duration {
	if r.bounds != nil {
		return min(max(asked, r.bounds.least), r.bounds.most)
	}
	return r.srv.cfg.timeout(asked)
}
