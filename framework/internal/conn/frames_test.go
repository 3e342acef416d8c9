package conn

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

// reply returns a frame with a body of so many bytes.
func reply(xid int32, zxid int64, body int) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(replyHeaderSize+body))
	b = binary.BigEndian.AppendUint32(b, uint32(xid))
	b = binary.BigEndian.AppendUint64(b, uint64(zxid))
	b = binary.BigEndian.AppendUint32(b, 0)
	return append(b, bytes.Repeat([]byte{0xee}, body)...)
}

// pieces is a connection on which a stream arrives in pieces of the given sizes, over and over.
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

// received is a received reply.
type received struct {
	xid  int32
	zxid int64
	body int
	err  error
}

// readReplies reads a stream that arrives in pieces of the given sizes. It returns the replies to
// the requests with the given numbers, and why reading ended.
func readReplies(stream []byte, requests []int32, sizes ...int) (all []received, end error) {
	l := newLink(&pieces{stream: stream, sizes: sizes}, unstarted("a:1"), "a:1", 0)
	for _, xid := range requests {
		l.waiting = append(l.waiting, request{xid: xid, done: func(r Reply) {
			all = append(all, received{xid, r.Zxid, len(r.body), r.err})
		}})
	}
	end = l.read()
	l.Close()
	return all, end
}

func TestRepliesReachTheirRequestsInPiecesOfAnySize(t *testing.T) {
	stream := slices.Concat(reply(1, 10, 0), reply(-2, 11, 0), reply(2, 1<<40+5, 100_000), reply(3, 1<<40+6, 7),
		reply(77, 3, 100_000), reply(4, 1<<40+8, 3))
	want := []received{{1, 10, 0, nil}, {2, 1<<40 + 5, 100_000, nil}, {3, 1<<40 + 6, 7, nil}, {4, 1<<40 + 8, 3, nil},
		{5, 0, 0, zk.ErrConnectionClosed}}
	for name, sizes := range map[string][]int{
		"whole": {len(stream)}, "bytes": {1}, "threes": {3}, "primes": {2, 3, 5, 7, 11, 13, 17, 19},
		"headers": {4, 16, 4, 16, 4, 51}, "around headers": {3, 2, 15, 19, 21}, "kilobytes": {1024},
	} {
		all, end := readReplies(stream, []int32{1, 2, 3, 4, 5}, sizes...)
		require.ErrorIs(t, end, io.EOF, name)
		require.Equal(t, want, all, name)
	}
}

func TestReplyOfImpossibleLengthEndsTheConnection(t *testing.T) {
	for _, length := range [][]byte{
		{0, 0, 0, 0}, {0, 0, 0, 3}, {0, 0, 0, 15}, {0x80, 0, 0, 0}, {0xff, 0xff, 0xff, 0xff}, {0x10, 0, 0, 1},
	} {
		stream := append(append(reply(5, 50, 2), length...), reply(6, 60, 2)...)
		for size := 1; size <= len(stream); size++ {
			all, end := readReplies(stream, []int32{5, 6}, size)
			want := []received{{5, 50, 2, nil}, {6, 0, 0, zk.ErrConnectionClosed}}
			require.Equal(t, want, all, "length %x, in pieces of %d", length, size)
			require.ErrorContains(t, end, "not a ZooKeeper server")
		}
	}
}

// parse is a simple parser to compare with. It parses a complete stream of replies to the requests
// 1 to 9 and returns the result of each request.
func parse(stream []byte) (all []received) {
	missing := []int32{1, 2, 3, 4, 5, 6, 7, 8, 9}
	for len(stream) >= lengthSize+replyHeaderSize {
		length := int(binary.BigEndian.Uint32(stream))
		h := parseHeader(stream)
		if length < replyHeaderSize || length > maxReply || h.xid == eventXid {
			break
		}
		i := slices.Index(missing, h.xid)
		whole := len(stream) >= lengthSize+length
		stream = stream[min(lengthSize+length, len(stream)):]
		if i < 0 {
			continue
		}
		missing = slices.Delete(missing, i, i+1)
		if !whole {
			all = append(all, received{xid: h.xid, err: zk.ErrConnectionClosed})
			break
		}
		all = append(all, received{h.xid, h.zxid, h.body, code(h.code)})
	}
	for _, xid := range missing {
		all = append(all, received{xid: xid, err: zk.ErrConnectionClosed})
	}
	return all
}

func FuzzRepliesInPiecesOfAnySize(f *testing.F) {
	f.Add(append(reply(1, 2, 3), reply(4, 5, 0)...), []byte{1})
	f.Add([]byte{0, 0, 0, 1, 9, 0, 0, 0, 16}, []byte{3, 2})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff}, []byte{4})
	f.Fuzz(func(t *testing.T, stream, cuts []byte) {
		sizes := []int{len(stream)}
		for _, c := range cuts {
			sizes = append(sizes, int(c))
		}
		requests := []int32{1, 2, 3, 4, 5, 6, 7, 8, 9}
		want := parse(stream)
		for _, sizes := range [][]int{{len(stream)}, sizes[min(1, len(sizes)-1):]} {
			all, _ := readReplies(stream, requests, sizes...)
			for i := range all {
				if all[i].err == zk.ErrConnectionClosed {
					all[i].zxid, all[i].body = 0, 0
				}
			}
			require.Equal(t, want, all, "cut by %v", sizes)
		}
	})
}

// A read, and what a follower or the leader refuses by itself, is no transaction.
func TestAnswersThatAreTransactions(t *testing.T) {
	const ok, noNode, badArguments, sessionMoved = 0, -101, -8, -118
	for _, row := range []struct {
		op, code    int32
		transaction bool
	}{
		{opSetData, ok, true}, {opSetData, noNode, true},
		{opSetData, badArguments, false}, {opSetData, sessionMoved, false},
		{opMulti, ok, true}, {opMulti, noNode, true},
		{opGetData, ok, false}, {opGetData, noNode, false}, {opSync, ok, false},
	} {
		require.Equal(t, row.transaction, throughQuorum(row.op, row.code), "operation %d, code %d", row.op, row.code)
	}
}
