package proto

import "github.com/docent-zk/docent/zktest/op"

// Request is a request of any type, and also a part of a multi: the fields that its type does not have are zero.
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
	Misplaced bool      // a multi of reads is one of writes

	Zxid    int64 // of setWatches: the last that the client has seen
	Watches []WatchList
}

// WatchList is one of the lists of setWatches, which has those for data, for existence and for children; setWatches2 also has those
// for persistent and for recursive watches.
type WatchList struct {
	Paths []string
	Null  bool
}

// HeaderSize is the number of bytes before a request's body.
const HeaderSize = 8

// ParseHeader reads a frame's transaction id and type. It reports false for a frame too short.
func ParseHeader(frame []byte) (xid int32, o op.Op, ok bool) {
	d := decoder{rest: frame}
	xid, o = d.int(), op.Op(d.int())
	return xid, o, d.err == nil
}

// Parse reads a whole request. With an error the request holds what could be read; it is ErrMarshal, except that a type that is none
// has no body to speak of, and no error.
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

// body reads what follows the header of any request but a multi.
func (d *decoder) body(r *Request) {
	switch r.Op {
	case op.Auth:
		d.int() // the type means nothing
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

// partOps is what may be in the two kinds of multi.
var partOps = map[op.Op]map[op.Op]bool{
	op.Multi: {op.Create: true, op.Create2: true, op.CreateContainer: true, op.CreateTTL: true,
		op.Delete: true, op.SetData: true, op.Check: true},
	op.MultiRead: {op.GetData: true, op.GetChildren: true},
}

// parts reads a multi up to its end mark. One of reads that holds nothing but writes is read as what it should have been.
func (d *decoder) parts(r *Request) {
	allowed := partOps[r.Op]
	for {
		part := Request{XID: r.XID, Op: op.Op(d.int())}
		done := d.bool()
		d.int() // an error code, of no meaning in a request
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
		r.Path = r.Parts[0].Path // what a multi is about, for those who look for it
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
	ReadOnly    bool // the client is content with a server that only reads
	HasReadOnly bool // the client knows of read-only servers, and wants to hear of it
}

// ParseConnect reads a connect request.
func ParseConnect(frame []byte) (Connect, error) {
	d := &decoder{rest: frame}
	d.int() // the protocol's version means nothing
	c := Connect{LastZxid: d.long(), Timeout: d.int(), Session: d.long(), Password: d.buffer()}
	if d.err == nil && len(d.rest) > 0 {
		c.HasReadOnly, c.ReadOnly = true, d.bool()
	}
	return c, d.err
}
