package zktest

import (
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/internal/proto"
)

// handle carries out a request of any type. The caller holds srv.mu.
func (c *conn) handle(req *proto.Request, malformed error) answer {
	kind := kinds[req.Op]
	switch {
	case kind == nil:
		return answer{code: proto.Unimplemented, fixed: true, zxid: -1, close: true}
	case req.Op == fault.OpCheck:
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
	if req.Op == fault.OpAuth || req.Op == fault.OpSASL {
		return answer{silent: true, close: true}
	}
	ans := answer{code: proto.Marshalling}
	if req.Op == fault.OpMulti || kind.transacts && c.srv.cfg.compat == V38 {
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

var kinds map[fault.Op]*kindOfRequest

func init() {
	write := &kindOfRequest{handle: (*conn).transact, writes: true, transacts: true}
	read := func(handle func(*conn, *proto.Request) answer) *kindOfRequest { return &kindOfRequest{handle: handle} }
	kinds = map[fault.Op]*kindOfRequest{
		fault.OpCreate:               write,
		fault.OpCreate2:              write,
		fault.OpCreateContainer:      write,
		fault.OpCreateTTL:            write,
		fault.OpDelete:               write,
		fault.OpDeleteContainer:      write,
		fault.OpSetData:              write,
		fault.OpSetACL:               write,
		fault.OpMulti:                write,
		fault.OpSync:                 {handle: (*conn).sync, writes: true},
		fault.OpReconfig:             {handle: (*conn).reconfig, writes: true, transacts: true},
		fault.OpCheck:                {writes: true},
		fault.OpCloseSession:         read((*conn).closeSession),
		fault.OpCreateSession:        {handle: (*conn).createSession, transacts: true},
		fault.OpPing:                 read(func(*conn, *proto.Request) answer { return answer{} }),
		fault.OpAuth:                 read((*conn).auth),
		fault.OpSASL:                 read((*conn).sasl),
		fault.OpExists:               read((*conn).exists),
		fault.OpGetData:              read((*conn).getData),
		fault.OpGetChildren:          read((*conn).getChildren),
		fault.OpGetChildren2:         read((*conn).getChildren),
		fault.OpGetACL:               read((*conn).getACL),
		fault.OpMultiRead:            read((*conn).multiRead),
		fault.OpGetEphemerals:        read((*conn).getEphemerals),
		fault.OpGetAllChildrenNumber: read((*conn).countBelow),
		fault.OpWhoAmI:               read((*conn).whoAmI),
		fault.OpSetWatches:           read((*conn).setWatches),
		fault.OpSetWatches2:          read((*conn).setWatches),
		fault.OpAddWatch:             read((*conn).addWatch),
		fault.OpCheckWatches:         read((*conn).checkWatches),
		fault.OpRemoveWatches:        read((*conn).removeWatches),
	}
}
