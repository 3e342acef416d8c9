package conn

import (
	"encoding/binary"

	"github.com/go-zookeeper/zk"
)

// encoder appends the fields of requests.
type encoder []byte

func (e *encoder) int(v int32) { *e = binary.BigEndian.AppendUint32(*e, uint32(v)) }

func (e *encoder) long(v int64) { *e = binary.BigEndian.AppendUint64(*e, uint64(v)) }

func (e *encoder) bool(v bool) {
	b := byte(0)
	if v {
		b = 1
	}
	*e = append(*e, b)
}

// buffer appends null for nil.
func (e *encoder) buffer(v []byte) {
	if v == nil {
		e.int(-1)
		return
	}
	e.int(int32(len(v)))
	*e = append(*e, v...)
}

func (e *encoder) string(v string) {
	e.int(int32(len(v)))
	*e = append(*e, v...)
}

func (e *encoder) strings(v []string) {
	e.int(int32(len(v)))
	for _, s := range v {
		e.string(s)
	}
}

func (e *encoder) acl(v []zk.ACL) {
	e.int(int32(len(v)))
	for _, a := range v {
		e.int(a.Perms)
		e.string(a.Scheme)
		e.string(a.ID)
	}
}

func (e *encoder) create(path string, data []byte, acl []zk.ACL, flags int32) {
	e.string(path)
	e.buffer(data)
	e.acl(acl)
	e.int(flags)
}

func (e *encoder) setData(path string, data []byte, version int32) {
	e.string(path)
	e.buffer(data)
	e.int(version)
}

// part appends the header of one operation of a transaction, or the end mark.
func (e *encoder) part(op int32, done bool) {
	e.int(op)
	e.bool(done)
	e.int(-1)
}

// decoder reads the fields of a reply. After the first error all values are zero.
type decoder struct {
	rest []byte
	err  error
}

func (d *decoder) take(n int) []byte {
	if d.err == nil && (n < 0 || n > len(d.rest)) {
		d.err = errMalformed
	}
	if d.err != nil {
		return nil
	}
	b := d.rest[:n:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) int() int32 {
	if b := d.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (d *decoder) long() int64 {
	if b := d.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

func (d *decoder) bool() bool {
	b := d.take(1)
	return b != nil && b[0] != 0
}

// buffer returns nil for null. The result shares the memory of the reply.
func (d *decoder) buffer() []byte {
	n := d.int()
	if n == -1 || d.err != nil {
		return nil
	}
	return d.take(int(n))
}

func (d *decoder) string() string { return string(d.buffer()) }

func (d *decoder) strings() []string {
	n := int(d.int())
	if n > len(d.rest)/lengthSize {
		d.err = errMalformed
	}
	if d.err != nil || n < 0 {
		return nil
	}
	all := make([]string, n)
	for i := range all {
		all[i] = d.string()
	}
	return all
}

// aclSize is the least size of an entry of an ACL: the permissions and the lengths of two strings.
const aclSize = 3 * lengthSize

// acl returns an ACL, which is never null. A count that does not fit into the reply is an error.
func (d *decoder) acl() []zk.ACL {
	n := int(d.int())
	if n < 0 || n > len(d.rest)/aclSize {
		d.err = errMalformed
	}
	if d.err != nil {
		return nil
	}
	all := make([]zk.ACL, n)
	for i := range all {
		all[i] = zk.ACL{Perms: d.int(), Scheme: d.string(), ID: d.string()}
	}
	return all
}

// stat returns nil after an error.
func (d *decoder) stat() *zk.Stat {
	s := zk.Stat{
		Czxid: d.long(), Mzxid: d.long(), Ctime: d.long(), Mtime: d.long(),
		Version: d.int(), Cversion: d.int(), Aversion: d.int(),
		EphemeralOwner: d.long(), DataLength: d.int(), NumChildren: d.int(), Pzxid: d.long(),
	}
	if d.err != nil {
		return nil
	}
	return &s
}
