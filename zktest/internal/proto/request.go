package proto

import "github.com/docent-zk/docent/zktest/op"

// Request is a request of any type, or a part of a multi. Fields that its type does not have are
// zero.
type Request struct {
	XID  int32
	Op   op.Op
	Path string
	Null bool // the path was null

	Data    []byte
	ACL     []ACL
	Flags   int32 // of a create
	TTL     int64 // of createTTL, in milliseconds
	Version int32
	Watch   bool
	Mode    int32  // of addWatch; the watcher type of checkWatches and removeWatches
	Scheme  string // of auth

	Parts     []Request // of a multi
	Misplaced bool      // a multi of reads that contains writes

	Zxid    int64 // of setWatches: the last that the client has seen
	Watches []WatchList
}

// WatchList is one of the lists of setWatches, which has lists of data, existence and child
// watches. setWatches2 also has lists of persistent and recursive watches.
type WatchList struct {
	Paths []string
	Null  bool
}

// HeaderSize is the number of bytes before a request's body.
const HeaderSize = 8

// ParseHeader reads a frame's transaction id and type. It reports false if the frame is too short.
func ParseHeader(frame []byte) (xid int32, o op.Op, ok bool) {
	d := decoder{rest: frame}
	xid, o = d.int(), op.Op(d.int())
	return xid, o, d.err == nil
}

// Parse reads a whole request. With an error, which is ErrMarshal, the request has the fields that
// could be read. The body of an unknown type is ignored, without an error.
func Parse(frame []byte) (Request, error) {
	var req Request
	var ok bool
	if req.XID, req.Op, ok = ParseHeader(frame); !ok {
		return req, ErrMarshal
	}
	d := &decoder{rest: frame[HeaderSize:]}
	switch req.Op {
	case op.Multi, op.MultiRead:
		d.parts(&req)
	default:
		d.body(&req)
	}
	return req, d.err
}

// body reads the body of any request except a multi.
func (d *decoder) body(r *Request) {
	switch r.Op {
	case op.Auth:
		d.int() // the type is not used
		r.Scheme, r.Data = d.string(), d.buffer()
		return
	case op.SASL:
		r.Data = d.buffer()
		return
	case op.SetWatches:
		d.watches(r, 3)
		return
	case op.SetWatches2:
		d.watches(r, 5)
		return
	}
	if !r.Op.PathFirst() {
		return
	}
	r.Path, r.Null = d.nullString()
	switch r.Op {
	case op.Create, op.Create2, op.CreateContainer, op.CreateTTL:
		r.Data, r.ACL, r.Flags = d.buffer(), d.acls(), d.int()
		if r.Op == op.CreateTTL {
			r.TTL = d.long()
		}
	case op.Delete, op.Check:
		r.Version = d.int()
	case op.SetData:
		r.Data, r.Version = d.buffer(), d.int()
	case op.SetACL:
		r.ACL, r.Version = d.acls(), d.int()
	case op.Exists, op.GetData, op.GetChildren, op.GetChildren2:
		r.Watch = d.bool()
	case op.AddWatch, op.CheckWatches, op.RemoveWatches:
		r.Mode = d.int()
	}
}

func (d *decoder) watches(r *Request, lists int) {
	r.Zxid = d.long()
	for range lists {
		paths, null := d.strings()
		r.Watches = append(r.Watches, WatchList{paths, null})
	}
}

// partOps are the types that the two kinds of multi may contain.
var partOps = map[op.Op]map[op.Op]bool{
	op.Multi: {op.Create: true, op.Create2: true, op.CreateContainer: true, op.CreateTTL: true,
		op.Delete: true, op.SetData: true, op.Check: true},
	op.MultiRead: {op.GetData: true, op.GetChildren: true},
}

// parts reads a multi up to its end mark. It reads a multi of reads that contains only writes as a
// multi of writes.
func (d *decoder) parts(r *Request) {
	allowed := partOps[r.Op]
	for {
		part := Request{XID: r.XID, Op: op.Op(d.int())}
		done := d.bool()
		d.int() // an error code, unused in requests
		if d.err != nil || done {
			break
		}
		if len(r.Parts) == 0 && r.Op == op.MultiRead && partOps[op.Multi][part.Op] {
			r.Misplaced, allowed = true, partOps[op.Multi]
		}
		if !allowed[part.Op] {
			d.err = ErrMarshal
			break
		}
		d.body(&part)
		if part.Null {
			d.err = ErrMarshal
		}
		r.Parts = append(r.Parts, part)
	}
	if len(r.Parts) > 0 {
		r.Path = r.Parts[0].Path // for rules and traces, which use one path
	}
	r.Misplaced = r.Misplaced && d.err == nil
	if r.Misplaced {
		d.err = ErrMarshal
	}
}

// Connect is the first request on a connection. It has no header.
type Connect struct {
	LastZxid    int64
	Timeout     int32 // in milliseconds
	Session     int64
	Password    []byte
	ReadOnly    bool // the client accepts a read-only server
	HasReadOnly bool // the client knows read-only servers and wants to be told of one
}

// ParseConnect reads a connect request.
func ParseConnect(frame []byte) (Connect, error) {
	d := &decoder{rest: frame}
	d.int() // the protocol version is not used
	c := Connect{LastZxid: d.long(), Timeout: d.int(), Session: d.long(), Password: d.buffer()}
	if d.err == nil && len(d.rest) > 0 {
		c.HasReadOnly, c.ReadOnly = true, d.bool()
	}
	return c, d.err
}
