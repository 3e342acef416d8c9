package zktest

import (
	"github.com/docent-zk/docent/zktest/internal/proto"
	"github.com/docent-zk/docent/zktest/op"
)

// handle carries out a request of any type. The caller holds srv.mu.
func (c *conn) handle(req *proto.Request, malformed error) answer {
	kind := kinds[req.Op]
	switch {
	case kind == nil:
		return answer{code: proto.Unimplemented, fixed: true, zxid: -1, close: true}
	case req.Op == op.Check:
		return c.loneCheck(req)
	case c.srv.readOnly && kind.writes:
		return answer{code: proto.NotReadOnly}
	case kind.transacts && (!c.srv.alive(c.session) || c.session.closing): // a follower may not know yet
		return answer{code: proto.SessionExpired}
	case malformed != nil:
		return c.malformed(req, kind)
	}
	return kind.handle(c, req)
}

// loneCheck handles a check outside of a multi, which the protocol does not allow. In 3.8 it is
// carried out, and a success is not answered.
func (c *conn) loneCheck(req *proto.Request) answer {
	if c.srv.cfg.compat == V38 {
		ans := c.transact(req)
		ans.silent = ans.code == proto.OK
		return ans
	}
	return answer{code: proto.Unimplemented, fixed: true, zxid: -1, close: true}
}

// malformed handles a request with a malformed body. For some types the real server makes a
// transaction that fails.
func (c *conn) malformed(req *proto.Request, kind *kindOfRequest) answer {
	if req.Op == op.Auth || req.Op == op.SASL {
		return answer{silent: true, close: true}
	}
	ans := answer{code: proto.Marshalling}
	if req.Op == op.Multi || kind.transacts && c.srv.cfg.compat == V38 {
		c.srv.commit(transaction{Stamp: c.srv.stamp()})
		ans.wait = c.srv.zxid
	}
	if req.Misplaced {
		ans.body, ans.bodyToo = (*proto.Encoder).EndOfParts, true
	}
	return ans
}

// kindOfRequest says how requests of a type are handled.
type kindOfRequest struct {
	handle    func(*conn, *proto.Request) answer // called with srv.mu held
	writes    bool                               // refused by read-only servers
	transacts bool                               // makes a transaction, even if it fails
}

var kinds map[Op]*kindOfRequest

func init() {
	write := &kindOfRequest{handle: (*conn).transact, writes: true, transacts: true}
	read := func(handle func(*conn, *proto.Request) answer) *kindOfRequest { return &kindOfRequest{handle: handle} }
	kinds = map[Op]*kindOfRequest{
		op.Create: write, op.Create2: write, op.CreateContainer: write, op.CreateTTL: write, op.Delete: write,
		op.DeleteContainer: write, op.SetData: write, op.SetACL: write, op.Multi: write,
		op.Sync:                 {handle: (*conn).sync, writes: true},
		op.Reconfig:             {handle: (*conn).reconfig, writes: true, transacts: true},
		op.Check:                {writes: true},
		op.CloseSession:         read((*conn).closeSession),
		op.CreateSession:        {handle: (*conn).createSession, transacts: true},
		op.Ping:                 read(func(*conn, *proto.Request) answer { return answer{} }),
		op.Auth:                 read((*conn).auth),
		op.SASL:                 read((*conn).sasl),
		op.Exists:               read((*conn).exists),
		op.GetData:              read((*conn).getData),
		op.GetChildren:          read((*conn).getChildren),
		op.GetChildren2:         read((*conn).getChildren),
		op.GetACL:               read((*conn).getACL),
		op.MultiRead:            read((*conn).multiRead),
		op.GetEphemerals:        read((*conn).getEphemerals),
		op.GetAllChildrenNumber: read((*conn).countBelow),
		op.WhoAmI:               read((*conn).whoAmI),
		op.SetWatches:           read((*conn).setWatches),
		op.SetWatches2:          read((*conn).setWatches),
		op.AddWatch:             read((*conn).addWatch),
		op.CheckWatches:         read((*conn).checkWatches),
		op.RemoveWatches:        read((*conn).removeWatches),
	}
}
