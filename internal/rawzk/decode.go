package rawzk

import (
	"encoding/binary"
	"fmt"
)

// Decoder decodes a message. After the first error all values are zero, and Err returns the error.
type Decoder struct {
	rest []byte
	err  error
}

// Decode returns a Decoder for b.
func Decode(b []byte) *Decoder { return &Decoder{rest: b} }

// Err returns the first error.
func (d *Decoder) Err() error { return d.err }

// Rest returns what has not been read yet.
func (d *Decoder) Rest() []byte { return d.rest }

func (d *Decoder) take(n int) []byte {
	if d.err == nil && (n < 0 || n > len(d.rest)) {
		d.err = fmt.Errorf("%d bytes wanted, %d left", n, len(d.rest))
	}
	if d.err != nil {
		return nil
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

// Byte reads one byte, for booleans if the exact value matters.
func (d *Decoder) Byte() byte {
	if b := d.take(1); b != nil {
		return b[0]
	}
	return 0
}

// Int reads an integer of four bytes.
func (d *Decoder) Int() int32 {
	if b := d.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

// Long reads an integer of eight bytes.
func (d *Decoder) Long() int64 {
	if b := d.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

// Buf reads a buffer. It returns nil for null and on an error.
func (d *Decoder) Buf() []byte {
	n := d.Int()
	if n == -1 || d.err != nil {
		return nil
	}
	return d.take(int(n))
}

// Str reads a string. A null string is an error: no server may send one.
func (d *Decoder) Str() string { return string(d.take(int(d.Int()))) }

// Count reads the length of a vector, −1 for null. It fails if the rest of the message is too short
// for elements of at least size bytes.
func (d *Decoder) Count(size int) int {
	n := int(d.Int())
	if d.err == nil && (n < -1 || n > len(d.rest)/size) {
		d.err = fmt.Errorf("vector of %d elements in %d bytes", n, len(d.rest))
		return -1
	}
	return n
}

// Strs reads a vector of strings, nil for null.
func (d *Decoder) Strs() []string {
	n := d.Count(4)
	if n < 0 {
		return nil
	}
	list := make([]string, n)
	for i := range list {
		list[i] = d.Str()
	}
	return list
}

// ACLs reads a vector of ACLs, nil for null.
func (d *Decoder) ACLs() []ACL {
	n := d.Count(12)
	if n < 0 {
		return nil
	}
	list := make([]ACL, n)
	for i := range list {
		list[i] = ACL{Perms: d.Int(), Scheme: d.Str(), ID: d.Str()}
	}
	return list
}

// Stat is the server's data about a node.
type Stat struct {
	Czxid, Mzxid, Ctime, Mtime  int64
	Version, Cversion, Aversion int32
	EphemeralOwner              int64
	DataLength, NumChildren     int32
	Pzxid                       int64
}

// Stat reads a Stat.
func (d *Decoder) Stat() Stat {
	return Stat{
		Czxid: d.Long(), Mzxid: d.Long(), Ctime: d.Long(), Mtime: d.Long(),
		Version: d.Int(), Cversion: d.Int(), Aversion: d.Int(),
		EphemeralOwner: d.Long(), DataLength: d.Int(), NumChildren: d.Int(), Pzxid: d.Long(),
	}
}

// Header is the start of every reply and event.
type Header struct {
	Xid  int32
	Zxid int64
	Err  int32
}

// Header reads the header of a reply.
func (d *Decoder) Header() Header { return Header{Xid: d.Int(), Zxid: d.Long(), Err: d.Int()} }

// Connected is the server's answer to Connect.
type Connected struct {
	Protocol int32
	Timeout  int32
	Session  int64
	Password []byte
	Extra    []byte // the read-only byte if there is one, and anything after it
}

// DecodeConnected decodes the answer to Connect.
func DecodeConnected(payload []byte) (Connected, error) {
	d := Decode(payload)
	c := Connected{Protocol: d.Int(), Timeout: d.Int(), Session: d.Long(), Password: d.Buf()}
	c.Extra = d.Rest()
	if d.err != nil {
		return c, fmt.Errorf("connect response %x: %w", payload, d.err)
	}
	return c, nil
}
