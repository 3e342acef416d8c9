package zktest

import (
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/internal/proto"
	"github.com/docent-zk/docent/zktest/internal/tree"
)

// The requests that are transactions. Callers hold srv.mu.

// execute carries out a request as a transaction, even if the request fails.
func (s *Server) execute(req *proto.Request, caller tree.Caller) tree.Outcome {
	at := s.stamp()
	s.tree.SetApplied(s.leader.applied)
	out := s.tree.Execute(req, caller, at)
	s.commit(transaction{Stamp: at, effects: out.Effects})
	return out
}

// transact carries out any write except the end of a session.
func (c *conn) transact(req *proto.Request) answer {
	out := c.srv.execute(req, tree.Caller{Session: c.session.id, IDs: c.ids})
	ans := answer{code: out.Code, wait: c.srv.zxid, body: func(e *proto.Encoder) { outcomeBody(e, out) }}
	if out.Path != req.Path && out.Op != fault.OpMulti {
		ans.note = out.Path
	}
	return ans
}

// outcomeBody encodes the body of the answer to a write.
func outcomeBody(e *proto.Encoder, out tree.Outcome) {
	switch out.Op {
	case fault.OpCreate:
		e.String(out.Path)
	case fault.OpCreate2, fault.OpCreateContainer, fault.OpCreateTTL:
		e.String(out.Path)
		e.Stat(out.Stat)
	case fault.OpSetData, fault.OpSetACL:
		e.Stat(out.Stat)
	case fault.OpMulti:
		for _, part := range out.Parts {
			partBody(e, part)
		}
		e.EndOfParts()
	}
}

func partBody(e *proto.Encoder, part tree.Outcome) {
	switch part.Op {
	case -1:
		e.FailedPart(part.Code)
		return
	case fault.OpCreateContainer, fault.OpCreateTTL:
		e.Part(fault.OpCreate2, proto.OK)
	default:
		e.Part(part.Op, proto.OK)
	}
	outcomeBody(e, part)
}

// closeSession ends the session at its client's request. The answer is the last frame on its
// connection.
func (c *conn) closeSession(*proto.Request) answer {
	if !c.srv.alive(c.session) {
		return answer{close: true}
	}
	c.detach()
	c.session.closer = c
	c.srv.endSession(c.session)
	return answer{wait: c.srv.zxid, close: true}
}

// reconfig answers that reconfiguration is disabled, with a transaction.
func (c *conn) reconfig(*proto.Request) answer {
	c.srv.commit(transaction{Stamp: c.srv.stamp()})
	return answer{code: proto.ReconfigDisabled, wait: c.srv.zxid}
}

// createSession handles a request that is for servers only. From a client it counts as malformed,
// whatever it contains.
func (c *conn) createSession(req *proto.Request) answer {
	return c.malformed(req, kinds[req.Op])
}

// reapLater sets an alarm for reap at the next whole interval since the server was made, if there
// are containers or TTL nodes. The caller holds s.mu.
func (s *Server) reapLater() {
	if s.reaping || s.life == nil || !s.tree.HasTransient() {
		return
	}
	s.reaping = true
	s.clock.at(s.afterTick(s.clock.now(), s.cfg.reapEvery), func() {
		s.reap()
		s.reaping = false
		s.reapLater()
	})
}

// reap deletes each overdue container and TTL node in a transaction of its own.
func (s *Server) reap() {
	for _, path := range s.tree.Overdue(s.clock.now().UnixMilli(), s.cfg.neverUsed.Milliseconds()) {
		out := s.execute(&proto.Request{Op: fault.OpDeleteContainer, Path: path}, tree.Caller{})
		s.record(s.clients[0], 0, Entry{What: fault.OpDeleteContainer.String(), Path: path, Code: Code(out.Code)})
	}
}
