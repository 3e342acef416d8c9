package zktest

import (
	"cmp"
	"slices"
	"time"
)

// link is the connection of one server of the ensemble to its leader, for as long as it lasts. Its
// identity is what the leader compares to know which server a session belongs to. The leader has
// one to itself, which is never held up. It is guarded by the server's mutex.
type link struct {
	requests []*leaderRequest // on their way to the leader
	renewals []func()         // sessions that have come back; these overtake requests
	answers  []waiting        // on their way from the leader, each behind a transaction
	touched  map[*session]time.Duration
	reports  bool // there is an alarm for the next report
	outages  int  // how often it has been interrupted
	arrived  int  // so many requests, and
	returned int  // so many renewals, have reached a leader that is frozen: a cut does not stop them
	out      bool // it is interrupted now, in one direction at least
	downCut  bool // in the direction from the leader
}

// leaderRequest is a request that only the leader can carry out.
type leaderRequest struct {
	carryOut func() (zxid int64) // returns the transaction that the asking server needs before it answers
	answered func()              // called when the asking server has it
	sync     bool                // it changes nothing
}

// toLeader sends a request on its way. It is lost on a server without a leader, and on a stale
// leader.
func (r *replica) toLeader(e *leaderRequest) {
	switch r.role {
	case leads:
		r.srv.arrive(r, r.link, e)
	case follows:
		r.link.requests = append(r.link.requests, e)
		r.flush()
	}
}

// renew sends the news to the leader that a session has come back.
func (r *replica) renew(do func()) {
	if r.role != follows {
		do()
		return
	}
	r.link.renewals = append(r.link.renewals, do)
	r.flush()
}

// flush delivers to the leader what is not held up. Sessions that have come back are first: a real
// leader looks at them as it reads them, and at requests later.
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

// delivers reports whether the leader gets what is next, given how much has arrived in its sockets.
func (r *replica) delivers(arrived int) bool {
	s := r.srv
	return s.passes(r.number, s.leader.number) || arrived > 0 && !s.frozen(s.leader.number)
}

// arrive is the leader's part of a request of the server r.
func (s *Server) arrive(r *replica, l *link, e *leaderRequest) {
	do := func() {
		zxid := e.carryOut()
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

// propose does what changes the state as soon as the leader has a quorum for it, in order.
func (s *Server) propose(do func()) {
	s.proposals = append(s.proposals, do)
	s.commitProposals()
}

// fromLeader brings the leader's answer to the server, behind the transactions that there are. It is
// lost if the link is.
func (r *replica) fromLeader(l *link, do func()) {
	switch {
	case r.link != l:
	case r.role == follows && !r.srv.passes(r.srv.leader.number, r.number):
		l.answers = append(l.answers, waiting{r.srv.zxid, do})
	default:
		do()
	}
}

// receiveAnswers is what follows when the way from the leader is free again.
func (r *replica) receiveAnswers() {
	all := r.link.answers
	r.link.answers = nil
	for _, a := range all {
		r.applyUntil(a.zxid)
		a.do()
	}
}

// noteActive is a sign of life of a session from one of the server's own clients. The leader counts
// it at once; a follower reports it when the leader asks next.
func (r *replica) noteActive(c *conn) {
	switch r.role {
	case leads:
		r.srv.touch(c.session, c.timeout)
	case follows:
		r.link.touched[c.session] = c.timeout
		r.reportLater()
	}
}

// touch begins to count a session's timeout anew.
func (s *Server) touch(sess *session, timeout time.Duration) {
	if sess.closing || !s.alive(sess) {
		return
	}
	sess.heard, sess.timeout = s.clock.now(), timeout
	s.watchOver(sess) // the timeout may be shorter than it was
}

// reportLater answers the leader's next ping with the sessions that have been heard of. The leader
// pings every half tick.
func (r *replica) reportLater() {
	s, l := r.srv, r.link
	if l.reports || l.out || len(l.touched) == 0 || s.life == nil {
		return
	}
	l.reports = true
	s.clock.at(s.afterTick(s.clock.now(), s.cfg.tick/2), func() {
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
