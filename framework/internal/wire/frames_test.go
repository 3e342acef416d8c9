package wire

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

type heard struct {
	xid  int32
	zxid int64
}

// reply is a frame with a body of so many bytes.
func reply(xid int32, zxid int64, body int) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(replyHeaderSize+body))
	b = binary.BigEndian.AppendUint32(b, uint32(xid))
	b = binary.BigEndian.AppendUint64(b, uint64(zxid))
	b = append(b, 0xff, 0xff, 0xff, 0x9b)
	return append(b, bytes.Repeat([]byte{0xee}, body)...)
}

// listen feeds the stream in pieces of the given sizes, over and over, and returns what was heard and what came through.
func listen(stream []byte, sizes ...int) (all []heard, through []byte) {
	var r replies
	for i := 0; len(stream) > 0; i++ {
		n := min(max(1, sizes[i%len(sizes)]), len(stream))
		piece := bytes.Clone(stream[:n])
		if !r.feed(piece, func(h replyHeader) bool { all = append(all, heard{h.xid, h.zxid}); return true }) {
			return all, nil
		}
		through, stream = append(through, piece...), stream[n:]
	}
	return all, through
}

func TestRepliesAreHeardHoweverTheyAreCut(t *testing.T) {
	frames := []heard{{1, 10}, {-2, 11}, {-1, -1}, {0x7fffffff, 1<<40 + 7}, {2, 12}}
	bodies := []int{0, 0, 35, 100_000, 1}
	var stream, wiped []byte
	for i, f := range frames {
		stream = append(stream, reply(f.xid, f.zxid, bodies[i])...)
		wiped = append(wiped, reply(f.xid, 0, bodies[i])...)
	}
	for name, sizes := range map[string][]int{
		"whole": {len(stream)}, "bytes": {1}, "threes": {3}, "primes": {2, 3, 5, 7, 11, 13, 17, 19},
		"headers": {4, 16, 4, 16, 4, 51}, "around headers": {3, 2, 15, 19, 21}, "kilobytes": {1024},
	} {
		got, through := listen(stream, sizes...)
		require.Equal(t, frames, got, name)
		require.True(t, bytes.Equal(wiped, through), "%s: only the zxids may change", name)
	}
}

func TestReplyOfImpossibleLengthIsTheEnd(t *testing.T) {
	for _, length := range [][]byte{{0, 0, 0, 0}, {0, 0, 0, 3}, {0, 0, 0, 15}, {0x80, 0, 0, 0}, {0xff, 0xff, 0xff, 0xff}, {0x10, 0, 0, 1}} {
		stream := append(append(reply(5, 50, 2), length...), reply(6, 60, 2)...)
		for size := 1; size <= len(stream); size++ {
			got, through := listen(stream, size)
			require.Equal(t, []heard{{5, 50}}, got, "length %x, in pieces of %d", length, size)
			require.Nil(t, through)
		}
	}
}

// parse is the obvious way to do it, for a stream that is there as a whole. It cuts off what is incomplete.
func parse(stream []byte) (all []heard) {
	for len(stream) >= lengthSize {
		length := int(binary.BigEndian.Uint32(stream))
		stream = stream[lengthSize:]
		if length < replyHeaderSize || length > maxReply {
			return all
		}
		if len(stream) >= replyHeaderSize {
			all = append(all, heard{int32(binary.BigEndian.Uint32(stream)), int64(binary.BigEndian.Uint64(stream[4:]))})
		}
		stream = stream[min(length, len(stream)):]
	}
	return all
}

func FuzzRepliesAreHeardHoweverTheyAreCut(f *testing.F) {
	f.Add(append(reply(1, 2, 3), reply(4, 5, 0)...), []byte{1})
	f.Add([]byte{0, 0, 0, 1, 9, 0, 0, 0, 16}, []byte{3, 2})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff}, []byte{4})
	f.Fuzz(func(t *testing.T, stream, cuts []byte) {
		sizes := []int{len(stream)}
		for _, c := range cuts {
			sizes = append(sizes, int(c))
		}
		want := parse(stream)
		whole, once := listen(stream, len(stream))
		require.Equal(t, want, whole)
		inPieces, through := listen(stream, sizes[min(1, len(sizes)-1):]...)
		require.Equal(t, want, inPieces)
		require.Equal(t, once, through, "cut by %v", sizes)
	})
}
