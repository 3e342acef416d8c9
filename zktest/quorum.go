package zktest

import (
	"fmt"
	"slices"
	"time"
)

// role is the part that a server of the ensemble believes to have.
type role int

const (
	looking   role = iota // for a leader: it serves no client
	following             // a leader
	leading
	staleLeader // was frozen while the others elected another leader, and does not know yet
)

// way is the direction from one server to another, by number.
type way struct{ from, to int }

// silentVoter is the number of an implied third server, which votes and has no clients. It exists
// in an ensemble for which the test has made two servers.
const silentVoter = 0

// The ensemble. Callers of the functions below hold s.mu.

// passes reports whether what one server sends to another arrives.
func (s *Server) passes(from, to int) bool {
	return !s.cuts[way{from, to}] && !s.frozen(from) && !s.frozen(to)
}

func (s *Server) connected(a, b int) bool { return s.passes(a, b) && s.passes(b, a) }

func (s *Server) frozen(number int) bool {
	return number != silentVoter && s.replicas[number-1].process.Closed()
}

// voters returns the number of servers that vote.
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
		if r.role == following && s.connected(s.leader.number, r.number) {
			count++
		}
	}
	if s.silentFollows && s.connected(s.leader.number, silentVoter) {
		count++
	}
	return s.leader.role == leading && s.majority(count)
}

// hasLinks reports whether the leader has links to a majority, whether or not traffic passes at the
// moment.
func (s *Server) hasLinks() bool {
	count := 1
	for _, r := range s.replicas {
		if r.role == following {
			count++
		}
	}
	if s.silentFollows {
		count++
	}
	return s.majority(count)
}

// syncTimeout returns how long a server waits for another that is silent.
func (s *Server) syncTimeout() time.Duration { return time.Duration(s.cfg.syncLimit) * s.cfg.tick }

// networkChanged must be called after a change of the network between the servers.
func (s *Server) networkChanged() {
	if s.life == nil {
		return
	}
	for _, r := range s.replicas {
		if r.role == following {
			s.checkLink(r)
		}
	}
	s.checkSilentVoter()
	s.joinOrElect()
	s.commitProposals()
}

// checkSilentVoter starts the timeout of the silent voter when it no longer reaches the leader.
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

// checkLink lets a link's traffic continue, or starts the timeout of its silence.
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

// commitProposals carries out the proposals that waited for a quorum.
func (s *Server) commitProposals() {
	for len(s.proposals) > 0 && s.quorate() {
		do := s.proposals[0]
		s.proposals = s.proposals[1:]
		do()
	}
}

// lose removes a server from the ensemble: what it has not delivered is lost, and its clients must
// connect elsewhere.
func (s *Server) lose(r *replica) {
	s.record(nil, 0, Entry{What: r.name() + " has no leader"})
	r.role, r.link = looking, nil
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

// checkQuorum makes a leader that has lost its majority step down as soon as it can notice, and
// starts an election.
func (s *Server) checkQuorum() {
	if s.leader.role == leading && !s.hasLinks() && !s.leader.process.Closed() {
		s.stepDown(s.leader)
	}
	s.joinOrElect()
}

// stepDown makes r give up leading after it has noticed the loss of its followers.
func (s *Server) stepDown(r *replica) {
	if r == s.leader {
		s.proposals, s.silentFollows = nil, false
		for _, f := range s.replicas {
			if f.role == following {
				s.lose(f)
			}
		}
	}
	s.lose(r)
	s.joinOrElect()
}

// joinOrElect makes servers without a leader join the existing one, or starts an election.
func (s *Server) joinOrElect() {
	if s.leader.role == leading && s.hasLinks() {
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

// joinReachable makes the servers without a leader that reach the leader follow it.
func (s *Server) joinReachable() {
	if s.voters() > len(s.replicas) && s.connected(s.leader.number, silentVoter) {
		s.silentFollows = true
	}
	for _, r := range s.replicas {
		if r.role == looking && s.connected(s.leader.number, r.number) {
			s.join(r)
		}
	}
}

// candidate returns the server that can be elected now, or nil. It chooses among the servers that
// reach a majority of servers without a leader: the one with the latest transaction, and of several
// the last.
func (s *Server) candidate() *replica {
	if s.leader.role == leading && !s.leader.process.Closed() && s.hasLinks() {
		return nil
	}
	var best *replica
	for _, r := range s.replicas {
		if r.role != looking || r.process.Closed() || !s.majority(s.votesFor(r)) {
			continue
		}
		if best == nil || r.applied >= best.applied {
			best = r
		}
	}
	return best
}

// votesFor returns the number of servers that would follow r, itself included.
func (s *Server) votesFor(r *replica) int {
	count := 1
	if s.voters() > len(s.replicas) && !s.silentFollows && s.connected(r.number, silentVoter) {
		count++
	}
	for _, other := range s.replicas {
		if other != r && other.role == looking && s.connected(r.number, other.number) {
			count++
		}
	}
	return count
}

// elect makes a server the leader. It has every transaction that was ever answered. Each session
// has its whole timeout again, the one that it was created with.
func (s *Server) elect(r *replica) {
	if s.leader.role == leading {
		s.leader.role = staleLeader
	}
	r.role = following
	r.apply(s.zxid)
	s.tree = r.tree
	r.trail()
	s.epoch++
	s.zxid = s.epoch << 32
	s.leader, s.proposals = r, nil
	r.role, r.link, r.applied = leading, &link{}, s.zxid
	s.record(nil, 0, Entry{What: r.name() + " leads"})
	s.beginToLead()
	s.silentFollows = false
	s.joinReachable()
	s.restartTimeouts()
	s.reapLater()
}

// beginToLead has the pings begin, and each session belong to no server and have the timeout that it was created
// with.
func (s *Server) beginToLead() {
	s.led = s.clock.now()
	for _, sess := range s.sessions {
		sess.owner, sess.closing, sess.timeout = nil, false, sess.granted
	}
}

// join makes a server follow the leader. It learns of all changes at once, unless a test prevents
// that.
func (s *Server) join(r *replica) {
	r.role, r.link = following, &link{touched: map[*session]time.Duration{}}
	r.catchUp()
	if len(r.pending) == 0 {
		r.applied = s.zxid
	}
	s.commitProposals() // a leader that has its quorum again carries out waiting proposals in order
}

// joinAll makes all servers of an ensemble that starts follow its previous leader.
func (s *Server) joinAll() {
	s.electing, s.proposals = false, nil
	for _, r := range s.replicas {
		r.process.Set(true)
		r.waiting = nil
	}
	s.leader.role, s.leader.link = leading, &link{}
	s.leader.catchUp()
	s.silentFollows = s.voters() > len(s.replicas)
	s.beginToLead()
	for _, r := range s.replicas {
		if r != s.leader {
			s.join(r)
		}
	}
	s.networkChanged()
}

// cut cuts the way from one server to another. It does not stop what is already in the sockets of a
// frozen leader.
func (s *Server) cut(from, to int) {
	if from != silentVoter && to == s.leader.number && !s.cuts[way{from, to}] && s.frozen(to) {
		if r := s.replicas[from-1]; r.role == following {
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

// IsolateLeader cuts the leader off from all other servers, but not from its clients. It carries
// out no more writes. It answers reads and its own clients' syncs until it notices the loss of its
// followers, syncLimit ticks later ([WithConfig]). Then it ends all connections, and a tick later
// the others elect another leader: transaction ids begin with the next epoch, and each session has
// its whole timeout again. What has been answered stays; what waited is lost.
func (s *Server) IsolateLeader() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.traceTest(s.leader.name() + ", the leader, isolated")
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
	s.traceTest("servers restored")
	clear(s.cuts)
	s.networkChanged()
}

// FreezeLeader makes the process of the leader do nothing, as SIGSTOP or a long garbage collection
// does. Connections to it stay and are accepted. What its clients and its followers send waits.
// After syncLimit ticks ([WithConfig]) the followers end their clients' connections and elect
// another leader, as with [Server.IsolateLeader]. An ensemble of two votes as if there were a third
// server without clients. A server without followers is frozen, without an election.
func (s *Server) FreezeLeader() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.traceTest(s.leader.name() + ", the leader, frozen")
	s.leader.process.Set(false)
	s.networkChanged()
}

// ThawLeader undoes FreezeLeader. A leader that has kept its followers goes on, and first expires
// the sessions that are past their timeout. A leader that has lost its followers does not know it.
// For one tick more it answers pings, reads, syncs and the handshakes of known sessions, waiting
// ones included, but no write. Then it ends its connections, forgets proposals without a quorum,
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
	s.traceTest(r.name() + " thawed")
	r.process.Set(true)
	s.networkChanged()
	r.catchUp()
	if r == s.leader && r.role == leading && s.hasLinks() {
		s.led = s.clock.now() // the pings begin anew
		for _, id := range s.sessionIDs() {
			s.expireIfOverdue(s.sessions[id])
		}
		return
	}
	s.clock.at(s.clock.now().Add(s.cfg.tick), func() {
		if r.role == staleLeader || r == s.leader && r.role == leading && !s.hasLinks() {
			s.stepDown(r)
		}
	})
}

// Members returns all servers of the ensemble. The first is the one with the address
// [Server.MemAddr].
func (s *Server) Members() []*Follower {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*Follower{s.first}, s.followers...)
}

// Leader returns the server that leads, or nil if there is none at the moment. A frozen leader
// leads until another is elected.
func (s *Server) Leader() *Follower {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leader.role != leading {
		return nil
	}
	all := append([]*Follower{s.first}, s.followers...)
	return all[slices.Index(s.replicas, s.leader)]
}

// bounds are limits of session timeouts.
type bounds struct{ least, most time.Duration }

// SetSessionTimeouts changes the bounds of session timeouts for clients that connect to any of the
// servers from now on, see [WithSessionTimeouts]. A client that reconnects is granted a new
// timeout, which the servers then use.
func (s *Server) SetSessionTimeouts(least, most time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	checkTimeouts(least, most)
	s.traceTest(fmt.Sprintf("session timeouts: %v to %v", least, most))
	for _, r := range s.replicas {
		r.bounds = &bounds{least, most}
	}
}

// checkTimeouts panics on a mistake in the test's source.
func checkTimeouts(least, most time.Duration) {
	if least < time.Millisecond || most < least {
		panic(fmt.Sprintf("zktest: session timeouts %v to %v: want 1ms or more, the smaller first", least, most))
	}
}

// timeout returns the timeout that a client of this server gets if it asks for asked.
func (r *replica) timeout(asked time.Duration) time.Duration {
	if r.bounds != nil {
		return min(max(asked, r.bounds.least), r.bounds.most)
	}
	return r.srv.cfg.timeout(asked)
}
