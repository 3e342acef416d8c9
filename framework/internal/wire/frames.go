package wire

import (
	"encoding/binary"
	"math"
)

// Frames of the protocol, as far as the shim has to know them: a length, then a header.
const (
	lengthSize      = 4
	zxidSize        = 8
	replyHeaderSize = 4 + zxidSize + 4 // xid, zxid, error code
	maxReply        = 1 << 28
	pingXid         = -2
	farewellXid     = math.MaxInt32 // the driver gets there with its 2^31st request
	opAuth          = 100
	opSetWatches    = 101
	opCloseSession  = -11
	codeAuthFailed  = -115

	// Counted from the length field.
	replyZxid             = lengthSize + 4
	replyCode             = replyZxid + zxidSize
	connectRequestZxid    = lengthSize + 4
	connectRequestSession = lengthSize + 4 + zxidSize + 4
	setWatchesZxid        = lengthSize + 4 + 4
	// Of the connect reply, counted behind the length field.
	connectReplyTimeout  = 4
	connectReplySession  = 8
	connectReplyPassword = 16
	connectReplyMin      = connectReplyPassword + 4
	connectReplyMax      = 4096
)

// throughLeader are the operations that a follower cannot answer by itself, if it answers that all went well: those that change
// something, and sync.
var throughLeader = map[int32]bool{
	1: true, 2: true, 5: true, 7: true, 9: true, 14: true, 15: true, 16: true, 19: true, 21: true,
}

// replies follows a stream of reply frames through arbitrary cuts, reports each as its header completes, and wipes its zxid.
type replies struct {
	head [lengthSize + replyHeaderSize]byte
	have int // bytes of head that are filled
	skip int // bytes of the current frame's body still to come
}

// replyHeader is what every reply begins with.
type replyHeader struct {
	xid  int32
	zxid int64
	code int32
	body int // how many bytes come after it
}

// feed reports false at a length that no reply has, because the driver would panic at one that is too short, and believe any other; and at
// a reply that answered refuses.
func (r *replies) feed(b []byte, answered func(replyHeader) bool) bool {
	for len(b) > 0 {
		if r.skip > 0 {
			n := min(r.skip, len(b))
			r.skip -= n
			b = b[n:]
			continue
		}
		want := len(r.head)
		if r.have < lengthSize {
			want = lengthSize
		}
		n := copy(r.head[r.have:want], b)
		wipe(b[:n], r.have)
		r.have += n
		b = b[n:]
		length := int(binary.BigEndian.Uint32(r.head[:]))
		switch {
		case r.have >= lengthSize && (length < replyHeaderSize || length > maxReply):
			return false
		case r.have == len(r.head):
			r.have, r.skip = 0, length-replyHeaderSize
			if !answered(r.header()) {
				return false
			}
		}
	}
	return true
}

// header is what head says, once it is full.
func (r *replies) header() replyHeader {
	return replyHeader{
		xid:  int32(binary.BigEndian.Uint32(r.head[lengthSize:])),
		zxid: int64(binary.BigEndian.Uint64(r.head[replyZxid:])),
		code: int32(binary.BigEndian.Uint32(r.head[replyCode:])),
		body: r.skip,
	}
}

// wipe clears what part of the zxid there is in b, which begins at that position of a frame.
func wipe(b []byte, position int) {
	from, to := max(0, replyZxid-position), min(len(b), replyZxid+zxidSize-position)
	if from < to {
		clear(b[from:to])
	}
}
