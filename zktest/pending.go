package zktest

import (
	"time"

	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/internal/effect"
	"github.com/docent-zk/docent/zktest/internal/proto"
)

// pending is a request that its server has read and not answered yet. Requests are answered in
// order. A request that changes nothing is carried out when all before it have been answered. The
// server's mutex guards it.
type pending struct {
	conn      *conn
	req       *proto.Request
	malformed error
	action    effect.Effect
	ids       []proto.ID // of the client when it sent the request
	arrived   time.Time
	ans       answer
	done      bool // it was carried out, and the client's server knows the result
	mistaken  bool // ans is of another transaction, see link.match
}

// enqueue starts to process a request.
func (c *conn) enqueue(p *pending) {
	failed := p.action.Kind == effect.Fail
	if failed {
		c.srv.traceRequest(c, p.req, proto.Code(p.action.Code), "made to fail")
		p.ans, p.done = answer{code: proto.Code(p.action.Code)}, true
	}
	if p.req.Op == fault.OpAuth || p.req.Op == fault.OpSASL { // these overtake the others
		if failed || p.perform(c.replica.link) {
			c.reply(p)
		}
		return
	}
	c.queue = append(c.queue, p)
	if !failed && c.forwards(p.req.Op) {
		p.forward(c.replica.link)
	}
	c.advance()
}

// forward sends a request to the leader through the server's link by.
func (p *pending) forward(by *link) {
	if by == nil {
		return // the server has no leader
	}
	by.await(p)
	p.conn.replica.toLeader(&leaderRequest{
		carryOut: func() int64 {
			given := p.ans
			p.perform(by)
			zxid := p.ans.wait
			if p.mistaken {
				p.ans = given
			}
			return zxid
		},
		request:  p,
		answered: func() { p.answered(by) },
		sync:     p.req.Op == fault.OpSync,
	})
}

// forwards reports whether only the leader can carry out requests of type o. The leader's own
// clients need no sync.
func (c *conn) forwards(o fault.Op) bool {
	kind := kinds[o]
	switch {
	case o == fault.OpCloseSession, o == fault.OpCheck && c.srv.cfg.compat == V38:
		return true
	case o == fault.OpSync:
		return c.replica.role == following
	}
	return kind != nil && kind.transacts
}

// advance answers the requests at the front of the queue, in order.
func (c *conn) advance() {
	for len(c.queue) > 0 {
		p := c.queue[0]
		switch {
		case p.done:
		case c.forwards(p.req.Op):
			c.corkFor(p)
			return
		case c.ended && p.action.Kind != effect.Hold:
			c.queue = nil
			return
		case !p.perform(c.replica.link):
			c.abandon()
			return
		}
		c.corkFor(p)
		c.queue = c.queue[1:]
		c.reply(p)
	}
}

// corkFor discards what is sent to the client from now on if the answer to p is to be dropped.
func (c *conn) corkFor(p *pending) {
	if p.action.Kind == effect.DropAfter {
		c.out.cork()
	}
}

// abandon drops the waiting requests of a connection that has no more use for them.
func (c *conn) abandon() {
	c.queue = nil
	c.outcome(false)
}

// perform carries a request out for the server with the link by. It reports false if the request is
// not answered.
func (p *pending) perform(by *link) bool {
	c, s := p.conn, p.conn.srv
	if !c.forwards(p.req.Op) && c.expired() {
		return false
	}
	if len(c.queue) > 0 && c.queue[0] == p {
		c.corkFor(p)
	}
	place := s.traceRequest(c, p.req, proto.OK, "")
	p.ans = p.outcome(by)
	if c.ended {
		c.replica.watches.Forget(c) // the events would not reach any client
	}
	if place >= 0 { // the request's events come after it in the trace
		entry := &s.trace.ring[place]
		entry.Zxid, entry.Code, entry.Note = s.zxid, Code(p.ans.code), noteOf(p.ans.note, p.action)
	}
	return true
}

// outcome returns the answer to the request. It uses the credentials that the client had when it
// sent the request.
func (p *pending) outcome(by *link) answer {
	c := p.conn
	if kind := kinds[p.req.Op]; kind != nil && kind.transacts && c.srv.alive(c.session) && !c.session.owned(by) {
		return c.sessionMoved()
	}
	if p.req.Op == fault.OpAuth || p.req.Op == fault.OpSASL {
		return c.handle(p.req, p.malformed)
	}
	now := c.ids
	c.ids = p.ids
	defer func() { c.ids = now }()
	return c.handle(p.req, p.malformed)
}

// sessionMoved handles a write of a session that belongs to another server now. It makes a
// transaction without effect and ends the connection without an answer.
func (c *conn) sessionMoved() answer {
	c.srv.commit(transaction{Stamp: c.srv.stamp()})
	return answer{code: proto.SessionMoved, wait: c.srv.zxid, silent: true, close: true}
}
