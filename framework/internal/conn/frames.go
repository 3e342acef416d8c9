package conn

import (
	"encoding/binary"
	"math"
)

// Frames of the protocol: a length, then a header, then a body.
const (
	lengthSize      = 4
	zxidSize        = 8
	replyHeaderSize = 4 + zxidSize + 4 // xid, zxid, error code
	maxReply        = 1 << 28
	maxEvent        = 4 << 20 // a path is the longest that it has

	// The numbers of requests. Servers do not count requests below 1 as under way.
	eventXid = -1
	firstXid = 1
	lastXid  = math.MaxInt32 - 1
	endXid   = math.MaxInt32

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
	replyZxid      = lengthSize + 4
	replyCode      = replyZxid + zxidSize
	setWatchesZxid = lengthSize + requestHeaderSize
)

// writes are the operations that change something, which a follower sends on to the leader.
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

// closeSession is the request that ends a session.
var closeSession = header(endXid, opCloseSession)

// header is a frame of two or more numbers.
func header(numbers ...int32) []byte {
	frame := binary.BigEndian.AppendUint32(nil, uint32(4*len(numbers)))
	for _, n := range numbers {
		frame = binary.BigEndian.AppendUint32(frame, uint32(n))
	}
	return frame
}
