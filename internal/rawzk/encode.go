package rawzk

import (
	"bytes"
	"encoding/binary"
)

// Join concatenates encoded pieces.
func Join(pieces ...[]byte) []byte { return bytes.Join(pieces, nil) }

// Int encodes an integer of four bytes.
func Int(v int32) []byte { return binary.BigEndian.AppendUint32(nil, uint32(v)) }

// Long encodes an integer of eight bytes.
func Long(v int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(v)) }

// Bool encodes a boolean as one byte, 0 or 1.
func Bool(v bool) []byte {
	if v {
		return []byte{1}
	}
	return []byte{0}
}

// Buf encodes a buffer. A nil slice is the null buffer, which differs from an empty one.
func Buf(b []byte) []byte {
	if b == nil {
		return Int(-1)
	}
	return Join(Int(int32(len(b))), b)
}

// Str encodes a string.
func Str(s string) []byte { return Join(Int(int32(len(s))), []byte(s)) }

// Null encodes a null string, buffer or vector.
func Null() []byte { return Int(-1) }

// Strs encodes a vector of strings. A nil slice is the null vector.
func Strs(list []string) []byte {
	if list == nil {
		return Null()
	}
	b := Int(int32(len(list)))
	for _, s := range list {
		b = append(b, Str(s)...)
	}
	return b
}

// ACL is one entry of an access control list.
type ACL struct {
	Perms      int32
	Scheme, ID string
}

// Open returns the ACL that gives all permissions to every client.
func Open() []ACL { return []ACL{{Perms: 31, Scheme: "world", ID: "anyone"}} }

// ACLs encodes a vector of ACLs. A nil slice is the null vector.
func ACLs(list []ACL) []byte {
	if list == nil {
		return Null()
	}
	b := Int(int32(len(list)))
	for _, a := range list {
		b = append(b, Join(Int(a.Perms), Str(a.Scheme), Str(a.ID))...)
	}
	return b
}

// Frame returns payload after its length.
func Frame(payload []byte) []byte { return Join(Int(int32(len(payload))), payload) }

// Connect is the first message of a client. It is sent without a header.
type Connect struct {
	Protocol int32
	LastZxid int64
	Timeout  int32 // in ms
	Session  int64
	Password []byte
	ReadOnly []byte // nil omits the field, as old clients do; otherwise the byte
}

// Encode returns the payload of the message.
func (c Connect) Encode() []byte {
	return Join(Int(c.Protocol), Long(c.LastZxid), Int(c.Timeout), Long(c.Session), Buf(c.Password), c.ReadOnly)
}
