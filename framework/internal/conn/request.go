package conn

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"
)

// Request is a request to a server; see Conn.Ask. It can be sent once.
type Request struct {
	op    int32
	frame encoder // starts with room for the length and the header
	done  func(Reply)
}

// Then returns the request for Conn.Admit, which calls done once with the reply, as Conn.Ask does.
func (r Request) Then(done func(Reply)) Request {
	r.done = done
	return r
}

// finish calls the function of Then, if there is one.
func (r Request) finish(reply Reply) {
	if r.done != nil {
		r.done(reply)
	}
}

// Reply is the result of a Request.
type Reply struct {
	Zxid int64 // of the transaction, or the last that the server had seen if there was none
	err  error
	body []byte
}

func newRequest(op int32, size int) Request {
	return Request{op: op, frame: make(encoder, lengthSize+requestHeaderSize, lengthSize+requestHeaderSize+size)}
}

// numbered fills in the length and the header and returns the frame. It needs the room that
// newRequest has left.
func (r Request) numbered(xid int32) []byte {
	binary.BigEndian.PutUint32(r.frame, uint32(len(r.frame)-lengthSize))
	binary.BigEndian.PutUint32(r.frame[lengthSize:], uint32(xid))
	binary.BigEndian.PutUint32(r.frame[lengthSize+4:], uint32(r.op))
	return r.frame
}

// Delete deletes a node if it has the given version; -1 means any.
func Delete(path string, version int32) Request {
	r := newRequest(opDelete, len(path)+8)
	r.frame.string(path)
	r.frame.int(version)
	return r
}

// Exists reads the Stat of a node. It can set a watch, even on a node that does not exist.
func Exists(path string, watch bool) Request { return read(opExists, path, watch) }

// Get reads a node and can set a watch.
func Get(path string, watch bool) Request { return read(opGetData, path, watch) }

// Children lists the children of a node and can set a watch.
func Children(path string, watch bool) Request { return read(opGetChildren2, path, watch) }

func read(op int32, path string, watch bool) Request {
	r := newRequest(op, len(path)+5)
	r.frame.string(path)
	r.frame.bool(watch)
	return r
}

// Watches has the paths of watches by kind.
type Watches struct{ Data, Exists, Children []string }

// SetWatches sets watches again on a new connection. The server at once sends events for what has
// changed since a zxid, which Conn fills in: that of the last reply on the last connection on which
// all watches were set.
func SetWatches(w Watches) Request {
	r := newRequest(opSetWatches, zxidSize+64*(len(w.Data)+len(w.Exists)+len(w.Children)))
	r.frame.long(0)
	r.frame.strings(w.Data)
	r.frame.strings(w.Exists)
	r.frame.strings(w.Children)
	return r
}

// Sync waits until the server has caught up with the ZooKeeper leader.
func Sync(path string) Request {
	r := newRequest(opSync, len(path)+4)
	r.frame.string(path)
	return r
}

// Check is a transaction that changes nothing. It fails if the node does not exist; most servers
// must agree to that as well.
func Check(path string) Request {
	r := newRequest(opMulti, len(path)+32)
	f := &r.frame
	f.part(opCheck, false)
	f.string(path)
	f.int(-1)
	f.part(-1, true)
	return r
}

// SetData writes a node if it has the given version; -1 means any.
func SetData(path string, data []byte, version int32) Request {
	r := newRequest(opSetData, len(path)+len(data)+12)
	r.frame.setData(path, data, version)
	return r
}

// Create creates a node that is neither a container nor has a time to live.
func Create(path string, data []byte, acl []zk.ACL, flags int32) Request {
	return create(opCreate, path, data, acl, flags)
}

// CreateContainer creates a container. Servers that do not support containers close the connection
// after their reply.
func CreateContainer(path string, data []byte, acl []zk.ACL) Request {
	return create(opCreateContainer, path, data, acl, zk.FlagContainer)
}

// CreateTTL creates a node with a time to live. flags are zk.FlagTTL or
// zk.FlagPersistentSequentialWithTTL.
func CreateTTL(path string, data []byte, acl []zk.ACL, flags int32, ttl time.Duration) Request {
	r := create(opCreateTTL, path, data, acl, flags)
	r.frame.long(ttl.Milliseconds())
	return r
}

func create(op int32, path string, data []byte, acl []zk.ACL, flags int32) Request {
	r := newRequest(op, len(path)+len(data)+64)
	r.frame.create(path, data, acl, flags)
	return r
}

// GetACL reads the ACL of a node.
func GetACL(path string) Request {
	r := newRequest(opGetACL, len(path)+4)
	r.frame.string(path)
	return r
}

// SetACL writes the ACL of a node if the ACL has the given version; -1 means any.
func SetACL(path string, acl []zk.ACL, version int32) Request {
	r := newRequest(opSetACL, len(path)+64)
	r.frame.string(path)
	r.frame.acl(acl)
	r.frame.int(version)
	return r
}

// authenticate sends a credential.
func authenticate(c Credential) Request {
	r := newRequest(opAuth, len(c.Scheme)+len(c.Value)+12)
	r.frame.int(0) // no server reads it
	r.frame.string(c.Scheme)
	r.frame.buffer(c.Value)
	return r
}

// Multi is a transaction of *zk.CreateRequest, *zk.CreateTTLRequest, *zk.SetDataRequest,
// *zk.DeleteRequest and *zk.CheckVersionRequest. A *zk.CreateRequest with zk.FlagContainer creates a
// container.
func Multi(ops []any) (Request, error) {
	r := newRequest(opMulti, 128*len(ops))
	f := &r.frame
	for _, op := range ops {
		f.part(kindOf(op), false)
		switch op := op.(type) {
		case *zk.CreateRequest:
			f.create(op.Path, op.Data, op.Acl, op.Flags)
		case *zk.CreateTTLRequest:
			f.create(op.Path, op.Data, op.Acl, op.Flags)
			f.long(op.Ttl)
		case *zk.SetDataRequest:
			f.setData(op.Path, op.Data, op.Version)
		case *zk.DeleteRequest:
			f.string(op.Path)
			f.int(op.Version)
		case *zk.CheckVersionRequest:
			f.string(op.Path)
			f.int(op.Version)
		default:
			return Request{}, fmt.Errorf("%T is no part of a transaction", op)
		}
	}
	f.part(-1, true)
	return r, nil
}

// kindOf returns the number of an operation of a transaction.
func kindOf(op any) int32 {
	switch op.(type) {
	case *zk.CreateRequest:
		return opCreate
	case *zk.CreateTTLRequest:
		return opCreateTTL
	case *zk.SetDataRequest:
		return opSetData
	case *zk.DeleteRequest:
		return opDelete
	case *zk.CheckVersionRequest:
		return opCheck
	}
	return opError
}

// resultOf returns the number that the result of an operation has. That of a container or of a node
// with a time to live also has a Stat.
func resultOf(op any) int32 {
	switch op := op.(type) {
	case *zk.CreateRequest:
		if op.Flags == zk.FlagContainer {
			return opCreate2
		}
	case *zk.CreateTTLRequest:
		return opCreate2
	}
	return kindOf(op)
}

// Err returns the error of the reply. It is an error of the servers, as package zk names it or as a
// Code; zk.ErrNoServer if the request was not sent; or zk.ErrConnectionClosed if the reply was
// lost.
func (r Reply) Err() error { return r.err }

// Path returns the result of Create, CreateContainer or CreateTTL. Replies to the latter two also
// have a Stat.
func (r Reply) Path() (string, error) {
	d := decoder{rest: r.body, err: r.err}
	path := d.string()
	return path, d.err
}

// ACL returns the result of GetACL.
func (r Reply) ACL() ([]zk.ACL, *zk.Stat, error) {
	d := decoder{rest: r.body, err: r.err}
	acl, stat := d.acl(), d.stat()
	return acl, stat, d.err
}

// Stat returns the result of Exists, SetData or SetACL.
func (r Reply) Stat() (*zk.Stat, error) {
	d := decoder{rest: r.body, err: r.err}
	stat := d.stat()
	return stat, d.err
}

// Data returns the result of Get.
func (r Reply) Data() ([]byte, *zk.Stat, error) {
	d := decoder{rest: r.body, err: r.err}
	data, stat := d.buffer(), d.stat()
	return data, stat, d.err
}

// Children returns the result of Children.
func (r Reply) Children() ([]string, *zk.Stat, error) {
	d := decoder{rest: r.body, err: r.err}
	children, stat := d.strings(), d.stat()
	return children, stat, d.err
}

// Results returns the results of Multi, one for each of ops. If the transaction was not applied, the
// error is the first one in the results. A reply with other results than those of ops is malformed.
func (r Reply) Results(ops []any) ([]zk.MultiResponse, error) {
	d := decoder{rest: r.body, err: r.err}
	all := make([]zk.MultiResponse, 0, len(ops))
	var failed error
	refused := false
	for kind, more := d.result(); more; kind, more = d.result() {
		if len(all) == len(ops) || kind != opError && kind != resultOf(ops[len(all)]) {
			return nil, errMalformed
		}
		var one zk.MultiResponse
		switch kind {
		case opCreate:
			one.String = d.string()
		case opCreate2:
			one.String = d.string()
			d.stat()
		case opSetData:
			one.Stat = d.stat()
		case opError:
			refused = true
			if one.Error = code(d.int()); failed == nil {
				failed = one.Error
			}
		}
		all = append(all, one)
	}
	if d.err == nil && (len(all) < len(ops) || refused && failed == nil) {
		d.err = errMalformed
	}
	if d.err != nil {
		return nil, d.err
	}
	return all, failed
}

// Checked returns the result of Check.
func (r Reply) Checked() error {
	_, err := r.Results([]any{&zk.CheckVersionRequest{}})
	return err
}

// result reads the header of a result and returns its kind. It returns false at the end mark and after
// an error.
func (d *decoder) result() (kind int32, more bool) {
	kind, done := d.int(), d.bool()
	d.int() // the error of a failed part, which its body repeats
	return kind, d.err == nil && !done
}

var errMalformed = errors.New("malformed reply")

// Code is an error of the servers for which package zk has no name.
type Code int32

func (c Code) Error() string { return fmt.Sprintf("error %d of the server", int32(c)) }

// errorNames are the errors for which package zk has names.
var errorNames = map[int32]error{
	-8: zk.ErrBadArguments, -100: zk.ErrAPIError, -101: zk.ErrNoNode, -102: zk.ErrNoAuth, -103: zk.ErrBadVersion,
	-108: zk.ErrNoChildrenForEphemerals, -110: zk.ErrNodeExists, -111: zk.ErrNotEmpty, -112: zk.ErrSessionExpired,
	-114: zk.ErrInvalidACL, -115: zk.ErrAuthFailed, -116: zk.ErrClosing, -117: zk.ErrNothing,
	-118: zk.ErrSessionMoved, -123: zk.ErrReconfigDisabled,
}

func code(n int32) error {
	if n == 0 {
		return nil
	}
	if err, ok := errorNames[n]; ok {
		return err
	}
	return Code(n)
}
