package rawzk

import (
	"encoding/binary"
	"fmt"
)

// Decoder takes a message apart. After the first mistake all values are zero and Err says what was wrong.
type Decoder struct {
	rest []byte
	err  error
}

// Decode starts to take b apart.
func Decode(b []byte) *Decoder { return &Decoder{rest: b} }

// Err is the first mistake.
func (d *Decoder) Err() error { return d.err }

// Rest is what was not read yet.
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

// Byte is one byte, for booleans of which the exact value matters.
func (d *Decoder) Byte() byte {
	if b := d.take(1); b != nil {
		return b[0]
	}
	return 0
}

// Int is an int of four bytes.
func (d *Decoder) Int() int32 {
	if b := d.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

// Long is an integer of eight bytes.
func (d *Decoder) Long() int64 {
	if b := d.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

// Buf is a buffer, nil if it was null or wrong.
func (d *Decoder) Buf() []byte {
	n := d.Int()
	if n == -1 || d.err != nil {
		return nil
	}
	return d.take(int(n))
}

// Str is a string. A null string is a mistake: no server may send one.
func (d *Decoder) Str() string { return string(d.take(int(d.Int()))) }

// Count is the length of a vector, −1 for null, checked against what is left: each element takes at least size bytes.
func (d *Decoder) Count(size int) int {
	n := int(d.Int())
	if d.err == nil && (n < -1 || n > len(d.rest)/size) {
		d.err = fmt.Errorf("vector of %d elements in %d bytes", n, len(d.rest))
		return -1
	}
	return n
}

// Strs is a vector of strings, nil if it was null.
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

// ACLs is a vector of ACLs, nil if it was null.
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

// Stat is what the server tells about a node.
type Stat struct {
	Czxid, Mzxid, Ctime, Mtime  int64
	Version, Cversion, Aversion int32
	EphemeralOwner              int64
	DataLength, NumChildren     int32
	Pzxid                       int64
}

// Stat is a node's Stat.
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

// Header is a reply's header.
func (d *Decoder) Header() Header { return Header{Xid: d.Int(), Zxid: d.Long(), Err: d.Int()} }

// Connected is the server's answer to Connect.
type Connected struct {
	Protocol int32
	Timeout  int32
	Session  int64
	Password []byte
	Extra    []byte // the read-only byte if there is one, and anything behind it
}

// DecodeConnected takes the answer to Connect apart.
func DecodeConnected(payload []byte) (Connected, error) {
	d := Decode(payload)
	c := Connected{Protocol: d.Int(), Timeout: d.Int(), Session: d.Long(), Password: d.Buf()}
	c.Extra = d.Rest()
	if d.err != nil {
		return c, fmt.Errorf("connect response %x: %w", payload, d.err)
	}
	return c, nil
}
