package rawzk

import (
	"bytes"
	"encoding/binary"
)

// Join puts encoded pieces together.
func Join(pieces ...[]byte) []byte { return bytes.Join(pieces, nil) }

// Int is an int of four bytes.
func Int(v int32) []byte { return binary.BigEndian.AppendUint32(nil, uint32(v)) }

// Long is an integer of eight bytes.
func Long(v int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(v)) }

// Bool is one byte, 0 or 1.
func Bool(v bool) []byte {
	if v {
		return []byte{1}
	}
	return []byte{0}
}

// Buf is a buffer. A nil slice is the null buffer, which is not the same as an empty one.
func Buf(b []byte) []byte {
	if b == nil {
		return Int(-1)
	}
	return Join(Int(int32(len(b))), b)
}

// Str is a string.
func Str(s string) []byte { return Join(Int(int32(len(s))), []byte(s)) }

// Null is a null string, buffer or vector.
func Null() []byte { return Int(-1) }

// Strs is a vector of strings. A nil slice is the null vector.
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

// Open is the list that lets everybody do everything.
func Open() []ACL { return []ACL{{Perms: 31, Scheme: "world", ID: "anyone"}} }

// ACLs is a vector of ACLs. A nil slice is the null vector.
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

// Frame is payload with its length in front.
func Frame(payload []byte) []byte { return Join(Int(int32(len(payload))), payload) }

// Connect is the first message of a client. It is sent without a header.
type Connect struct {
	Protocol int32
	LastZxid int64
	Timeout  int32 // in ms
	Session  int64
	Password []byte
	ReadOnly []byte // nil: the field is left out, as old clients do; else the byte
}

// Encode is the payload of the message.
func (c Connect) Encode() []byte {
	return Join(Int(c.Protocol), Long(c.LastZxid), Int(c.Timeout), Long(c.Session), Buf(c.Password), c.ReadOnly)
}
