// Package proto implements ZooKeeper's wire format: frames, primitives, decoded requests, and the
// parts of answers.
package proto

import (
	"encoding/binary"
	"errors"
)

// ErrMarshal is the error for a record that does not match its type.
var ErrMarshal = errors.New("malformed record")

// decoder reads primitives. After the first error it returns only zero values.
type decoder struct {
	rest []byte
	err  error
}

func (d *decoder) take(n int) []byte {
	if d.err != nil || n < 0 || n > len(d.rest) {
		d.err = ErrMarshal
		return nil
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) bool() bool {
	b := d.take(1)
	return len(b) == 1 && b[0] != 0
}

func (d *decoder) int() int32 {
	b := d.take(4)
	if b == nil {
		return 0
	}
	return int32(binary.BigEndian.Uint32(b))
}

func (d *decoder) long() int64 {
	b := d.take(8)
	if b == nil {
		return 0
	}
	return int64(binary.BigEndian.Uint64(b))
}

// buffer returns nil for null, and not nil for empty. The result shares memory with the input.
func (d *decoder) buffer() []byte {
	n := d.int()
	if d.err != nil || n == -1 {
		return nil
	}
	return d.take(int(n))
}

// nullString also reports whether the string is null.
func (d *decoder) nullString() (s string, null bool) {
	b := d.buffer()
	return Text(b), b == nil
}

// string fails for null.
func (d *decoder) string() string {
	s, null := d.nullString()
	if null {
		d.err = ErrMarshal
	}
	return s
}

// vector calls each for every element. It reports false for null; other negative lengths count as
// 0.
func (d *decoder) vector(each func()) bool {
	n := d.int()
	for range max(n, 0) {
		if d.err != nil {
			return false
		}
		each()
	}
	return n != -1 && d.err == nil
}

// strings also reports whether the vector is null.
func (d *decoder) strings() (all []string, null bool) {
	filled := d.vector(func() { all = append(all, d.string()) })
	return all, !filled
}

func (d *decoder) acls() []ACL {
	var all []ACL
	d.vector(func() {
		a := ACL{Perms: d.int()}
		a.Scheme, _ = d.nullString() // some clients send null for empty strings
		a.ID, _ = d.nullString()
		all = append(all, a)
	})
	return all
}

// Encoder appends primitives to itself.
type Encoder []byte

// Bool appends a bool.
func (e *Encoder) Bool(v bool) {
	b := byte(0)
	if v {
		b = 1
	}
	*e = append(*e, b)
}

// Int appends an int.
func (e *Encoder) Int(v int32) { *e = binary.BigEndian.AppendUint32(*e, uint32(v)) }

// Long appends a long.
func (e *Encoder) Long(v int64) { *e = binary.BigEndian.AppendUint64(*e, uint64(v)) }

// Buffer appends a buffer, null if v is nil.
func (e *Encoder) Buffer(v []byte) {
	if v == nil {
		e.Int(-1)
		return
	}
	e.Int(int32(len(v)))
	*e = append(*e, v...)
}

// String appends a string.
func (e *Encoder) String(v string) {
	v = unitwise(v)
	e.Int(int32(len(v)))
	*e = append(*e, v...)
}

// Strings appends a vector of strings.
func (e *Encoder) Strings(v []string) {
	e.Int(int32(len(v)))
	for _, s := range v {
		e.String(s)
	}
}

// ACLs appends a vector of ACL entries.
func (e *Encoder) ACLs(v []ACL) {
	e.Int(int32(len(v)))
	for _, a := range v {
		e.Int(a.Perms)
		e.String(a.Scheme)
		e.String(a.ID)
	}
}

// Stat appends a Stat.
func (e *Encoder) Stat(s *Stat) {
	e.Long(s.Czxid)
	e.Long(s.Mzxid)
	e.Long(s.Ctime)
	e.Long(s.Mtime)
	e.Int(s.Version)
	e.Int(s.Cversion)
	e.Int(s.Aversion)
	e.Long(s.EphemeralOwner)
	e.Int(s.DataLength)
	e.Int(s.NumChildren)
	e.Long(s.Pzxid)
}
