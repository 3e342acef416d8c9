package proto

import (
	"bytes"
	"testing"

	"github.com/docent-zk/docent/zktest/fault"
)

// seeds returns a valid request of each type.
func seeds() [][]byte {
	request := func(o fault.Op, body func(e *Encoder)) []byte {
		e := Frame(64)
		e.Int(7)
		e.Int(int32(o))
		body(&e)
		return e.Finish()
	}
	path := func(e *Encoder) { e.String("/a/b") }
	create := func(e *Encoder) {
		path(e)
		e.Buffer([]byte("data"))
		e.ACLs([]ACL{{Perms: PermAll, Scheme: "world", ID: "anyone"}})
		e.Int(FlagEphemeralSequential)
	}
	multi := func(of fault.Op, body func(e *Encoder)) func(e *Encoder) {
		return func(e *Encoder) {
			for range 3 {
				e.Part(of, -1)
				body(e)
			}
			e.EndOfParts()
		}
	}
	watches := func(lists int) func(e *Encoder) {
		return func(e *Encoder) {
			e.Long(17)
			for range lists {
				e.Strings([]string{"/a", "/b/c"})
			}
		}
	}
	all := [][]byte{
		request(fault.OpPing, func(*Encoder) {}),
		request(fault.OpCreate, create),
		request(fault.OpCreateTTL, func(e *Encoder) { create(e); e.Long(1000) }),
		request(fault.OpSetData, func(e *Encoder) { path(e); e.Buffer(nil); e.Int(-1) }),
		request(fault.OpSetACL, func(e *Encoder) {
			path(e)
			e.ACLs([]ACL{{1, "digest", "u:x"}, {31, "auth", ""}})
			e.Int(3)
		}),
		request(fault.OpGetData, func(e *Encoder) { path(e); e.Bool(true) }),
		request(fault.OpAddWatch, func(e *Encoder) { path(e); e.Int(ModeRecursive) }),
		request(fault.OpMulti, multi(fault.OpCreate, create)),
		request(fault.OpMulti, multi(fault.OpCreateTTL, func(e *Encoder) { create(e); e.Long(1) })),
		request(fault.OpMultiRead, multi(fault.OpGetData, func(e *Encoder) { path(e); e.Bool(false) })),
		request(fault.OpMultiRead, multi(fault.OpDelete, func(e *Encoder) { path(e); e.Int(1) })),
		request(fault.OpSetWatches, watches(3)),
		request(fault.OpSetWatches2, watches(5)),
		request(fault.OpAuth, func(e *Encoder) { e.Int(0); e.String("digest"); e.Buffer([]byte("u:p")) }),
		request(fault.OpSync, func(e *Encoder) { e.String("\xed\xa0\x80\xff\U0001f600") }),
	}
	connect := Frame(45)
	connect.Int(0)
	connect.Long(5)
	connect.Int(4000)
	connect.Long(0)
	connect.Buffer(make([]byte, 16))
	connect.Bool(true)
	return append(all, connect.Finish())
}

// Any input is read to its end, and the memory used is bounded by the bytes that were sent.
func FuzzStream(f *testing.F) {
	var whole []byte
	for _, frame := range seeds() {
		f.Add(frame)
		whole = append(whole, frame...)
	}
	f.Add(whole)
	f.Add([]byte{0x7f, 0xff, 0xff, 0xff, 1})
	f.Add([]byte{0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, stream []byte) {
		in := bytes.NewReader(stream)
		for {
			frame, err := ReadFrame(in, DefaultMaxFrame)
			if cap(frame) > 2*len(stream)+128<<10 {
				t.Fatalf("%d bytes for a stream of %d", cap(frame), len(stream))
			}
			if err != nil {
				return
			}
			decode(t, frame)
		}
	})
}

func decode(t *testing.T, frame []byte) {
	if c, err := ParseConnect(frame); err == nil && len(c.Password) > len(frame) {
		t.Fatalf("a password of %d bytes out of %d", len(c.Password), len(frame))
	}
	req, err := Parse(frame)
	if size := sizeOf(&req); size > 8*len(frame)+8 {
		t.Fatalf("%d bytes in a request of %d", size, len(frame))
	}
	if again, errAgain := Parse(frame); (err == nil) != (errAgain == nil) || again.Path != req.Path {
		t.Fatalf("%q, %v and then %q, %v", req.Path, err, again.Path, errAgain)
	}
}

// sizeOf returns the size of a request: the bytes of its strings, in which one byte can have become
// three, and at least one for each element.
func sizeOf(r *Request) int {
	size := len(r.Path) + len(r.Data) + len(r.Scheme)
	for _, a := range r.ACL {
		size += 1 + len(a.Scheme) + len(a.ID)
	}
	for _, list := range r.Watches {
		for _, path := range list.Paths {
			size += 1 + len(path)
		}
	}
	for i := range r.Parts {
		size += 1 + sizeOf(&r.Parts[i])
	}
	return size
}

func TestSeedsAreWhole(t *testing.T) {
	for _, frame := range seeds()[:len(seeds())-1] {
		if req, err := Parse(frame[PrefixSize:]); err != nil && !req.Misplaced {
			t.Errorf("%v: %v", req.Op, err)
		}
	}
}

// Sent text equals the original, UTF-16 unit by unit.
func FuzzText(f *testing.F) {
	f.Add([]byte("plain"))
	f.Add([]byte("\xed\xa0\x80\U0001f600\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := Text(b)
		if s != Text([]byte(s)) {
			t.Fatalf("%q is not stable: %q", b, s)
		}
		if len(s) > 3*len(b) || len(unitwise(s)) > 2*len(s) {
			t.Fatalf("%d bytes became %d and %d", len(b), len(s), len(unitwise(s)))
		}
	})
}
