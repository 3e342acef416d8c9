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
	maxDriverReply  = 4 << 20 // which the driver takes room for at once; a path is the longest that it is told
	codeAuthFailed  = -115

	// The numbers of requests. Those of the driver begin with 1, and end where ours begin, or would with its 2^30th request. Below 1 servers
	// do not count what is under way.
	eventXid    = -1
	pingXid     = -2
	firstXid    = 1 << 30           // of ours
	lastXid     = math.MaxInt32 - 1 // of ours
	farewellXid = math.MaxInt32

	requestHeaderSize = 4 + 4 // xid, operation
	opError           = -1
	opCreate          = 1
	opDelete          = 2
	opExists          = 3
	opGetData         = 4
	opSetData         = 5
	opGetACL          = 6
	opSetACL          = 7
	opSync            = 9
	opGetChildren2    = 12
	opCheck           = 13
	opMulti           = 14
	opCreateContainer = 19
	opCreateTTL       = 21
	opAuth            = 100
	opSetWatches      = 101
	opCloseSession    = -11

	// Counted from the length field.
	replyZxid             = lengthSize + 4
	replyCode             = replyZxid + zxidSize
	connectRequestZxid    = lengthSize + 4
	connectRequestTimeout = lengthSize + 4 + zxidSize
	connectRequestSession = lengthSize + 4 + zxidSize + 4
	setWatchesZxid        = lengthSize + 4 + 4
	// Of the connect reply, counted behind the length field.
	connectReplyTimeout  = 4
	connectReplySession  = 8
	connectReplyPassword = 16
	connectReplyMin      = connectReplyPassword + 4
	connectReplyMax      = 4096
)

// writes are the operations that change something, of which a follower makes requests to the leader.
var writes = map[int32]bool{1: true, 2: true, 5: true, 7: true, 14: true, 15: true, 16: true, 19: true, 21: true}

// refusals are the answers by which a leader refuses a write, which is a transaction all the same: no node, no permission, another version,
// ephemeral parent, node exists, children.
var refusals = map[int32]bool{-101: true, -102: true, -103: true, -108: true, -110: true, -111: true}

// throughQuorum reports whether most servers have agreed to the answer to an operation.
func throughQuorum(op, code int32) bool { return writes[op] && (code == 0 || refusals[code]) }

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
