package zktest

import (
	"time"

	"github.com/docent-zk/docent/zktest/internal/proto"
	"github.com/docent-zk/docent/zktest/op"
)

// pending is a request that its server has read and not answered yet. Answers have the order of the
// requests; what changes nothing is carried out when all before it has been answered. It is guarded
// by the server's mutex.
type pending struct {
	conn      *conn
	req       *proto.Request
	malformed error
	action    Action
	ids       []proto.ID // of the client when it sent the request
	arrived   time.Time
	ans       answer
	done      bool // it was carried out, and the server of the client knows
}

// enqueue begins with a request.
func (c *conn) enqueue(p *pending) {
	failed := p.action.kind == fail
	if failed {
		c.srv.traceRequest(c, p.req, proto.Code(p.action.code), "made to fail")
		p.ans, p.done = answer{code: proto.Code(p.action.code)}, true
	}
	if p.req.Op == op.Auth || p.req.Op == op.SASL { // overtake all
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

// forward sends a request to the leader, for the server whose link that is.
func (p *pending) forward(by *link) {
	p.conn.replica.toLeader(&leaderRequest{
		carryOut: func() int64 {
			p.perform(by)
			return p.ans.wait
		},
		answered: func() {
			p.done = true
			p.conn.advance()
		},
		sync: p.req.Op == op.Sync,
	})
}

// forwards reports whether only the leader can carry out such requests. The leader's own clients
// need no sync.
func (c *conn) forwards(o op.Op) bool {
	kind := kinds[o]
	switch {
	case o == op.CloseSession, o == op.Check && c.srv.cfg.compat == V38:
		return true
	case o == op.Sync:
		return c.replica.role == follows
	}
	return kind != nil && kind.transacts
}

// advance answers what is at the front, in order.
func (c *conn) advance() {
	for len(c.queue) > 0 {
		p := c.queue[0]
		switch {
		case p.done:
		case c.forwards(p.req.Op):
			c.corkFor(p)
			return
		case c.ended && p.action.kind != hold:
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

// corkFor loses what the client would be sent from now on, if p is to be lost with all that
// follows.
func (c *conn) corkFor(p *pending) {
	if p.action.kind == dropAfter {
		c.out.cork()
	}
}

// abandon forgets what waits on a connection that has no use for it any more.
func (c *conn) abandon() {
	c.queue = nil
	c.outcome(false)
}

// perform carries a request out, for the server whose link that is. It reports false for one that
// is not answered.
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
		c.replica.watches.Forget(c) // no client would ever get the events
	}
	if place >= 0 { // its events come after it
		entry := &s.trace.ring[place]
		entry.Zxid, entry.Code, entry.Note = s.zxid, Code(p.ans.code), noteOf(p.ans.note, p.action)
	}
	return true
}

// outcome is the answer to the request, with the credentials that the client had when it asked.
func (p *pending) outcome(by *link) answer {
	c := p.conn
	if kind := kinds[p.req.Op]; kind != nil && kind.transacts && c.srv.alive(c.session) && !c.session.owned(by) {
		return c.sessionMoved()
	}
	if p.req.Op == op.Auth || p.req.Op == op.SASL {
		return c.handle(p.req, p.malformed)
	}
	now := c.ids
	c.ids = p.ids
	defer func() { c.ids = now }()
	return c.handle(p.req, p.malformed)
}

// sessionMoved is what comes of a write whose session belongs to another server by now: a
// transaction without effect, and the end of the connection without an answer.
func (c *conn) sessionMoved() answer {
	c.srv.commit(transaction{Stamp: c.srv.stamp()})
	return answer{code: proto.SessionMoved, wait: c.srv.zxid, silent: true, close: true}
}
