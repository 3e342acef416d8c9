package zktest

import (
	"slices"

	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/internal/proto"
)

// A real server finds the requests of its clients in the stream of transactions by session and
// number (xid) alone, and looks only at the first of those that wait. If a session has used a number
// on another connection too, the server answers its client with the wrong transaction. The
// transaction of the client's request comes later, and is then like one of another server.

// await adds a request that waits for its transaction, or for the answer to its sync.
func (l *link) await(p *pending) { l.own = append(l.own, p) }

// answered answers a request by its own transaction. It does nothing if another one has answered the
// request. A sync is answered again then, and wrongly: the server has read the request already.
func (p *pending) answered(by *link) {
	i := slices.Index(by.own, p)
	switch {
	case i >= 0:
		by.own = slices.Delete(by.own, i, i+1)
		p.done = true
		p.conn.advance()
	case p.req.Op == fault.OpSync && !p.conn.ended:
		p.ans = answer{code: proto.Marshalling}
		p.conn.reply(p)
	}
}

// matchElsewhere has all other servers compare the transaction zxid, which q made, with the requests
// of their own clients.
func (s *Server) matchElsewhere(q *pending, by *link, zxid int64) {
	for _, r := range s.replicas {
		l := r.link
		if l == nil || l == by {
			continue
		}
		match := func() {
			if r.link == l {
				l.match(q)
			}
		}
		if zxid > r.applied {
			r.when(zxid, match)
		} else {
			match()
		}
	}
}

// match answers the first waiting request with the transaction of q if session and number are the
// same.
func (l *link) match(q *pending) {
	if len(l.own) == 0 {
		return
	}
	p := l.own[0]
	if p.conn.session != q.conn.session || p.req.XID != q.req.XID {
		return
	}
	l.own = l.own[1:]
	p.ans, p.done, p.mistaken = q.asAnswerTo(p.req), true, true
	p.conn.advance()
}

// asAnswerTo returns the answer to a request that a server makes of the transaction of q.
func (q *pending) asAnswerTo(req *proto.Request) answer {
	code := q.ans.code
	switch o := req.Op; {
	case q.ans.silent, o == q.req.Op, statOnly(o) && statOnly(q.req.Op):
		return q.ans
	case o == fault.OpCloseSession:
		return answer{code: code, close: true}
	case o == fault.OpSync:
		return answer{code: code, body: func(e *proto.Encoder) { e.String(req.Path) }}
	case o == fault.OpDelete, code != proto.OK:
		return answer{code: code}
	case o == fault.OpMulti:
		return answer{code: proto.Marshalling, body: (*proto.Encoder).EndOfParts, bodyToo: true}
	}
	return answer{code: proto.Marshalling} // the transaction lacks what the answer should have
}

// statOnly reports whether the answer to a request of type o is a Stat.
func statOnly(o fault.Op) bool { return o == fault.OpSetData || o == fault.OpSetACL }
