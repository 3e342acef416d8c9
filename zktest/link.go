package zktest

import (
	"cmp"
	"slices"
	"time"
)

// link is the connection of one server of the ensemble to its leader. The leader compares links to
// know the server to which a session belongs. The leader has a link to itself, which is never
// delayed. The server's mutex guards all fields.
type link struct {
	requests []*leaderRequest // on their way to the leader
	renewals []func()         // returning sessions; these overtake requests
	answers  []waiting        // on their way from the leader, each behind a transaction
	own      []*pending       // requests of the server's clients that the leader has not answered, in order
	touched  map[*session]time.Duration
	reports  bool // an alarm is set for the next report
	outages  int  // number of interruptions so far
	arrived  int  // number of requests, and
	returned int  // number of renewals that have reached a frozen leader: a cut does not stop them
	out      bool // interrupted now, in one direction at least
	downCut  bool // interrupted in the direction from the leader
}

// leaderRequest is a request that only the leader can carry out.
type leaderRequest struct {
	carryOut func() (zxid int64) // returns the transaction that the asking server needs before it answers
	request  *pending            // of a client; nil for a new session
	answered func()              // called when the asking server has that transaction
	sync     bool                // the request changes nothing
}

// toLeader sends a request to the leader. A server without a leader and a stale leader lose it.
func (r *replica) toLeader(e *leaderRequest) {
	switch r.role {
	case leading:
		r.srv.arrive(r, r.link, e)
	case following:
		r.link.requests = append(r.link.requests, e)
		r.flush()
	}
}

// renew notifies the leader of a returning session.
func (r *replica) renew(do func()) {
	if r.role != following {
		do()
		return
	}
	r.link.renewals = append(r.link.renewals, do)
	r.flush()
}

// flush delivers to the leader what is not held up. Returning sessions are first: a real leader
// handles them as it reads them, and requests later.
func (r *replica) flush() {
	s, l := r.srv, r.link
	for r.link == l && len(l.renewals) > 0 && r.delivers(l.returned) {
		do := l.renewals[0]
		l.renewals, l.returned = l.renewals[1:], max(l.returned-1, 0)
		do()
	}
	for r.link == l && len(l.requests) > 0 && (!r.holds || l.arrived > 0) && r.delivers(l.arrived) {
		e := l.requests[0]
		l.requests, l.arrived = l.requests[1:], max(l.arrived-1, 0)
		s.arrive(r, l, e)
	}
}

// delivers reports whether the next message reaches the leader. arrived is the number of messages
// that are already in the leader's sockets.
func (r *replica) delivers(arrived int) bool {
	s := r.srv
	return s.passes(r.number, s.leader.number) || arrived > 0 && !s.frozen(s.leader.number)
}

// arrive carries out a request from the server r on the leader.
func (s *Server) arrive(r *replica, l *link, e *leaderRequest) {
	do := func() {
		zxid := e.carryOut()
		if e.request != nil && !e.sync && zxid > 0 {
			s.matchElsewhere(e.request, l, zxid)
		}
		if r.link == l && zxid > r.applied { // the transaction is the answer
			r.when(zxid, e.answered)
			return
		}
		r.fromLeader(l, e.answered)
	}
	if e.sync && len(s.proposals) == 0 {
		do()
		return
	}
	s.propose(do)
}

// propose calls do as soon as the leader has a quorum. Calls keep their order. It is used for
// changes of the state.
func (s *Server) propose(do func()) {
	s.proposals = append(s.proposals, do)
	s.commitProposals()
}

// fromLeader delivers the leader's answer to the server, after the transactions so far. The answer
// is lost if the link is.
func (r *replica) fromLeader(l *link, do func()) {
	switch {
	case r.link != l:
	case r.role == following && !r.srv.passes(r.srv.leader.number, r.number):
		l.answers = append(l.answers, waiting{r.srv.zxid, do})
	default:
		do()
	}
}

// receiveAnswers delivers the waiting answers when the way from the leader is free again.
func (r *replica) receiveAnswers() {
	all := r.link.answers
	r.link.answers = nil
	for _, a := range all {
		r.applyUntil(a.zxid)
		a.do()
	}
}

// noteActive records that the server has heard from a session of one of its own clients. The leader
// counts it at once; a follower reports it at the leader's next ping.
func (r *replica) noteActive(c *conn) {
	switch r.role {
	case leading:
		r.srv.touch(c.session, c.timeout)
	case following:
		r.link.touched[c.session] = c.timeout
		r.reportLater()
	}
}

// touch starts a session's timeout again.
func (s *Server) touch(sess *session, timeout time.Duration) {
	if sess.closing || !s.alive(sess) {
		return
	}
	sess.heard, sess.timeout = s.clock.now(), timeout
	s.setExpiry(sess) // the timeout may be shorter than before
}

// reportLater answers the leader's next ping with the sessions that the server has heard from. The
// leader pings each half tick, from the moment on at which it began to lead. Sessions expire by other ticks.
func (r *replica) reportLater() {
	s, l := r.srv, r.link
	if l.reports || l.out || len(l.touched) == 0 || s.life == nil {
		return
	}
	l.reports = true
	s.clock.at(nextTick(s.led, s.clock.now(), s.cfg.tick/2), func() {
		l.reports = false
		if r.link == l && !l.out {
			r.report()
		}
	})
}

func (r *replica) report() {
	var heard []*session
	for sess := range r.link.touched {
		heard = append(heard, sess)
	}
	slices.SortFunc(heard, func(a, b *session) int { return cmp.Compare(a.id, b.id) })
	for _, sess := range heard {
		r.srv.touch(sess, r.link.touched[sess])
	}
	clear(r.link.touched)
}
