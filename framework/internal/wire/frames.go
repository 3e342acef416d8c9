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
	codeAuthFailed  = -115

	// The numbers of requests. Those of the driver begin with 1, and end where ours begin, or would with its 2^30th request. Below 1 servers
	// do not count what is under way.
	pingXid     = -2
	firstXid    = 1 << 30           // of ours
	lastXid     = math.MaxInt32 - 1 // of ours
	farewellXid = math.MaxInt32

	requestHeaderSize = 4 + 4 // xid, operation
	opError           = -1
	opDelete          = 2
	opExists          = 3
	opGetData         = 4
	opSetData         = 5
	opSync            = 9
	opGetChildren2    = 12
	opCheck           = 13
	opMulti           = 14
	opCreate          = 1
	opAuth            = 100
	opSetWatches      = 101
	opCloseSession    = -11

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

// replyHeader is what every reply begins with.
type replyHeader struct {
	xid  int32
	zxid int64
	code int32
	body int // how many bytes come after it
}

// headerOf is what the first bytes of a reply say.
func headerOf(b []byte) replyHeader {
	return replyHeader{
		xid:  int32(binary.BigEndian.Uint32(b[lengthSize:])),
		zxid: int64(binary.BigEndian.Uint64(b[replyZxid:])),
		code: int32(binary.BigEndian.Uint32(b[replyCode:])),
		body: int(binary.BigEndian.Uint32(b)) - replyHeaderSize,
	}
}
