package zktest

import (
	"strings"
	"time"

	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/internal/effect"
	"github.com/docent-zk/docent/zktest/internal/proto"
)

// answer is the result of a request.
type answer struct {
	code    proto.Code
	body    func(*proto.Encoder) // of an answer without an error
	bodyToo bool                 // also with an error
	wait    int64                // the transaction that the client's server must have before it answers
	zxid    int64                // instead of that server's last, if fixed
	fixed   bool
	silent  bool // no answer is sent
	close   bool // the connection ends after the answer
	note    string
}

// serve carries out one request, or applies a rule to it. It reports whether to continue reading.
func (c *conn) serve(frame []byte) bool {
	if c.swallowed() {
		return false
	}
	if _, _, ok := proto.ParseHeader(frame); !ok {
		return false
	}
	req, err := c.parse(frame)
	r, ok := c.meet(&req)
	if !ok {
		return false
	}
	a := r.Action().Effect()
	switch a.Kind {
	case effect.DropBefore:
		return c.refuse(&req, flushAll, "dropped before")
	case effect.Reset:
		return c.refuse(&req, resetAll, "reset")
	case effect.Hold:
		if !c.await(r) || !c.acts() {
			return false
		}
	}
	return c.carryOut(&req, err, a)
}

// parse decodes a request. In 3.8 a client's deleteContainer is never understood. Most requests
// need a path.
func (c *conn) parse(frame []byte) (proto.Request, error) {
	req, err := proto.Parse(frame)
	switch {
	case req.Op == fault.OpDeleteContainer && c.srv.cfg.compat == V38:
		req.Path, err = "", nil
	case req.Null && err == nil && !needsNoPath(&req):
		err = proto.ErrMarshal
	}
	return req, err
}

// needsNoPath reports whether a null path in the request is handled like an empty one.
func needsNoPath(req *proto.Request) bool {
	switch req.Op {
	case fault.OpSetData, fault.OpSetACL, fault.OpSync, fault.OpGetEphemerals, fault.OpAddWatch, fault.OpRemoveWatches:
		return true
	case fault.OpCreateTTL: // which checks the flag first
		return req.Flags != proto.FlagTTL && req.Flags != proto.FlagTTLSequential
	}
	return false
}

// meet counts the request and returns the rule that fires for it, or nil. It reports false if the
// request must not be carried out.
func (c *conn) meet(req *proto.Request) (r *fault.Rule, ok bool) {
	c.srv.mu.Lock()
	if c.ended || c.expired() {
		c.srv.mu.Unlock()
		return nil, false
	}
	c.client.counts[req.Op]++
	c.tally.received++
	c.tally.arrived = c.srv.clock.now()
	c.srv.mu.Unlock()
	return c.srv.rules.Meet(fault.Request{Op: req.Op, Path: req.Path, Client: c.client.name}), true
}

// acts waits until the server can act for this client. It reports false when the server has
// stopped.
func (c *conn) acts() bool {
	return c.pass(requestArrives, c.client.frozen, c.srv.paused, c.replica.process)
}

// expired reports whether the session has ended, as far as the client's server knows. The caller
// holds srv.mu.
func (c *conn) expired() bool {
	return c.replica.role == leading && !c.srv.alive(c.session)
}

// refuse ends the connection instead of carrying the request out.
func (c *conn) refuse(req *proto.Request, how ending, note string) bool {
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	c.srv.traceRequest(c, req, proto.OK, note)
	c.end(how)
	return false
}

// await waits as long as a rule delays or holds a request. It reports false when the server has
// stopped.
func (c *conn) await(r *fault.Rule) bool {
	var over <-chan time.Time
	if d := r.Action().Effect().Delay; d >= 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-over:
	case <-r.Released():
	case <-c.life.done:
		return false
	}
	c.client.awaitSlot(requestArrives, c.number)
	return true
}

// carryOut passes a request to the server. It reports whether to continue reading.
func (c *conn) carryOut(req *proto.Request, malformed error, a effect.Effect) bool {
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	switch {
	case !c.takes(req, a):
		return false
	case c.replica.role == leading && c.session.closing: // drops requests, but keeps the connection for now
		return true
	}
	if req.Op != fault.OpAuth && req.Op != fault.OpSASL {
		c.replica.noteActive(c)
	}
	c.enqueue(&pending{conn: c, req: req, malformed: malformed, action: a, ids: c.ids, arrived: c.tally.arrived})
	return !c.ended
}

// takes reports whether the server accepts a request. It refuses if it knows that the session has
// ended, or that the session belongs to another server and the request depends on that. A held
// request no longer needs its connection, but it must not come after requests that its client has
// sent on the next connection. The caller holds srv.mu.
func (c *conn) takes(req *proto.Request, a effect.Effect) bool {
	switch {
	case c.ended && (a.Kind != effect.Hold || c.attached != c.session.attached), c.expired():
		return false
	case c.session.moved, c.replica.role == leading && ownersOnly(req.Op) && !c.session.owned(c.replica.link):
		c.srv.traceRequest(c, req, proto.OK, "the session has moved")
		c.end(flushAll)
		return false
	}
	return true
}

// ownersOnly reports whether the leader carries out such requests only for the server to which the
// session belongs.
func ownersOnly(o fault.Op) bool {
	return o != fault.OpCloseSession && o != fault.OpAuth && o != fault.OpSASL
}

func noteOf(note string, a effect.Effect) string {
	switch a.Kind {
	case effect.DropAfter:
		note += " dropped after"
	case effect.Truncate:
		note += " truncated"
	}
	return strings.TrimSpace(note)
}

// reply answers a request, or applies a rule to the answer. The caller holds srv.mu.
func (c *conn) reply(p *pending) {
	zxid, ans, a := c.replica.applied, p.ans, p.action
	if ans.fixed {
		zxid = ans.zxid
	}
	c.tally.arrived = p.arrived
	c.countReply(p.req, ans.code, zxid)
	if len(c.queue) > 0 {
		c.tally.arrived = c.queue[0].arrived
	}
	if a.Kind == effect.DropAfter {
		c.end(flushAll) // frames before the cork are still sent
		return
	}
	if !ans.silent {
		frame := encode(p.req, ans, zxid)
		if a.Kind == effect.Truncate {
			frame, ans.close = frame[:min(a.Bytes, len(frame))], true
		}
		c.put(frame)
	}
	if ans.close {
		c.end(flushAll)
	}
}

// encode returns the frame of an answer.
func encode(req *proto.Request, ans answer, zxid int64) []byte {
	xid := req.XID
	if req.Op == fault.OpPing {
		xid = proto.XIDPing
	}
	e := proto.Reply(xid, zxid, ans.code, bodyEstimate)
	if ans.body != nil && (ans.code == proto.OK || ans.bodyToo) {
		ans.body(&e)
	}
	return e.Finish()
}

// bodyEstimate is large enough for most answers.
const bodyEstimate = 128
