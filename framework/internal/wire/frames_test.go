package wire

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

// reply is a frame with a body of so many bytes.
func reply(xid int32, zxid int64, body int) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(replyHeaderSize+body))
	b = binary.BigEndian.AppendUint32(b, uint32(xid))
	b = binary.BigEndian.AppendUint64(b, uint64(zxid))
	b = binary.BigEndian.AppendUint32(b, 0)
	return append(b, bytes.Repeat([]byte{0xee}, body)...)
}

// pieces is a connection from which a stream comes in pieces of the given sizes, over and over.
type pieces struct {
	net.Conn
	stream []byte
	sizes  []int
	next   int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.stream) == 0 {
		return 0, io.EOF
	}
	n := min(max(1, p.sizes[p.next%len(p.sizes)]), len(p.stream), len(b))
	p.next++
	copy(b, p.stream[:n])
	p.stream = p.stream[n:]
	return n, nil
}

func (p *pieces) Write(b []byte) (int, error)     { return len(b), nil }
func (p *pieces) SetReadDeadline(time.Time) error { return nil }
func (p *pieces) Close() error                    { return nil }

// ours is a reply to a request of ours.
type ours struct {
	xid  int32
	zxid int64
	body int
	err  error
}

// listen is what the driver reads of the stream, and what we are told of the replies to our requests, which have the given numbers.
func listen(stream []byte, requests []int32, sizes ...int) (through []byte, told []ours) {
	owner := &Conn{log: zap.NewNop(), hosts: newHosts([]string{"a:1"}, time.Second, nil, nil)}
	s := newShim(&pieces{stream: stream, sizes: sizes}, owner, "a:1", time.Time{})
	s.greeted = true
	for _, xid := range requests {
		s.waiting = append(s.waiting, request{xid: xid, done: func(r Reply) {
			told = append(told, ours{xid, r.Zxid, len(r.body), r.err})
		}})
	}
	through, _ = io.ReadAll(s)
	s.Close()
	owner.writing.Wait()
	return through, told
}

func TestRepliesFindWhoHasAskedHoweverTheyAreCut(t *testing.T) {
	var stream, wiped []byte
	add := func(xid int32, zxid int64, body int) {
		stream = append(stream, reply(xid, zxid, body)...)
		if xid < firstXid || xid == farewellXid {
			wiped = append(wiped, reply(xid, 0, body)...)
		}
	}
	add(1, 10, 0)
	add(firstXid+1, 10, 0)
	add(-2, 11, 0)
	add(firstXid+2, 1<<40+5, 100_000)
	add(firstXid+3, 1<<40+6, 7)
	add(-1, -1, 35)
	add(0x7fffffff, 1<<40+7, 100_000)
	add(2, 12, 1)
	add(firstXid+4, 1<<40+8, 3)
	want := []ours{{firstXid + 1, 10, 0, nil}, {firstXid + 2, 1<<40 + 5, 100_000, nil}, {firstXid + 3, 1<<40 + 6, 7, nil}, {firstXid + 4, 1<<40 + 8, 3, nil}}
	for name, sizes := range map[string][]int{
		"whole": {len(stream)}, "bytes": {1}, "threes": {3}, "primes": {2, 3, 5, 7, 11, 13, 17, 19},
		"headers": {4, 16, 4, 16, 4, 51}, "around headers": {3, 2, 15, 19, 21}, "kilobytes": {1024},
	} {
		through, told := listen(stream, []int32{firstXid + 1, firstXid + 2, firstXid + 3, firstXid + 4}, sizes...)
		require.True(t, bytes.Equal(wiped, through), "%s: only the zxids may change", name)
		require.Equal(t, want, told, name)
	}
}

func TestReplyOfImpossibleLengthIsTheEnd(t *testing.T) {
	for _, length := range [][]byte{{0, 0, 0, 0}, {0, 0, 0, 3}, {0, 0, 0, 15}, {0x80, 0, 0, 0}, {0xff, 0xff, 0xff, 0xff}, {0x10, 0, 0, 1}} {
		stream := append(append(reply(5, 50, 2), length...), reply(6, 60, 2)...)
		for size := 1; size <= len(stream); size++ {
			through, _ := listen(stream, nil, size)
			require.Equal(t, reply(5, 0, 2), through, "length %x, in pieces of %d", length, size)
		}
	}
}

// parse is the obvious way to do it, for a stream that is there as a whole: what the driver is to read of it.
func parse(stream []byte) (through []byte) {
	for len(stream) >= lengthSize+replyHeaderSize {
		length := int(binary.BigEndian.Uint32(stream))
		if length < replyHeaderSize || length > maxReply {
			break
		}
		frame := bytes.Clone(stream[:min(lengthSize+length, len(stream))])
		clear(frame[replyZxid : replyZxid+zxidSize])
		through, stream = append(through, frame...), stream[len(frame):]
	}
	return through
}

func FuzzRepliesComeThroughHoweverTheyAreCut(f *testing.F) {
	f.Add(append(reply(1, 2, 3), reply(4, 5, 0)...), []byte{1})
	f.Add([]byte{0, 0, 0, 1, 9, 0, 0, 0, 16}, []byte{3, 2})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff}, []byte{4})
	f.Fuzz(func(t *testing.T, stream, cuts []byte) {
		sizes := []int{len(stream)}
		for _, c := range cuts {
			sizes = append(sizes, int(c))
		}
		want := parse(stream)
		whole, _ := listen(stream, nil, len(stream))
		require.True(t, bytes.Equal(want, whole))
		inPieces, _ := listen(stream, nil, sizes[min(1, len(sizes)-1):]...)
		require.True(t, bytes.Equal(want, inPieces), "cut by %v", sizes)
	})
}
