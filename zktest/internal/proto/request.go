package proto

import "github.com/docent-zk/docent/zktest/fault"

// Request is a request of any type, or a part of a multi. Fields that its type does not have are
// zero.
type Request struct {
	XID  int32
	Op   fault.Op
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
func ParseHeader(frame []byte) (xid int32, o fault.Op, ok bool) {
	d := decoder{rest: frame}
	xid, o = d.int(), fault.Op(d.int())
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
	case fault.OpMulti, fault.OpMultiRead:
		d.parts(&req)
	default:
		d.body(&req)
	}
	return req, d.err
}

// body reads the body of any request except a multi.
func (d *decoder) body(r *Request) {
	switch r.Op {
	case fault.OpAuth:
		d.int() // the type is not used
		r.Scheme, r.Data = d.string(), d.buffer()
		return
	case fault.OpSASL:
		r.Data = d.buffer()
		return
	case fault.OpSetWatches:
		d.watches(r, 3)
		return
	case fault.OpSetWatches2:
		d.watches(r, 5)
		return
	}
	if !r.Op.PathFirst() {
		return
	}
	r.Path, r.Null = d.nullString()
	switch r.Op {
	case fault.OpCreate, fault.OpCreate2, fault.OpCreateContainer, fault.OpCreateTTL:
		r.Data, r.ACL, r.Flags = d.buffer(), d.acls(), d.int()
		if r.Op == fault.OpCreateTTL {
			r.TTL = d.long()
		}
	case fault.OpDelete, fault.OpCheck:
		r.Version = d.int()
	case fault.OpSetData:
		r.Data, r.Version = d.buffer(), d.int()
	case fault.OpSetACL:
		r.ACL, r.Version = d.acls(), d.int()
	case fault.OpExists, fault.OpGetData, fault.OpGetChildren, fault.OpGetChildren2:
		r.Watch = d.bool()
	case fault.OpAddWatch, fault.OpCheckWatches, fault.OpRemoveWatches:
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
var partOps = map[fault.Op]map[fault.Op]bool{
	fault.OpMulti: {fault.OpCreate: true, fault.OpCreate2: true, fault.OpCreateContainer: true, fault.OpCreateTTL: true,
		fault.OpDelete: true, fault.OpSetData: true, fault.OpCheck: true},
	fault.OpMultiRead: {fault.OpGetData: true, fault.OpGetChildren: true},
}

// parts reads a multi up to its end mark. It reads a multi of reads that contains only writes as a
// multi of writes.
func (d *decoder) parts(r *Request) {
	allowed := partOps[r.Op]
	for {
		part := Request{XID: r.XID, Op: fault.Op(d.int())}
		done := d.bool()
		d.int() // an error code, unused in requests
		if d.err != nil || done {
			break
		}
		if len(r.Parts) == 0 && r.Op == fault.OpMultiRead && partOps[fault.OpMulti][part.Op] {
			r.Misplaced, allowed = true, partOps[fault.OpMulti]
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
