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
	maxEvent        = 4 << 20 // most of an event is a path

	// Numbers of requests. Servers do not count a request with a number below 1 as outstanding.
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
	opGetChildren     = 8
	opSync            = 9
	opGetChildren2    = 12
	opCheck           = 13
	opMulti           = 14
	opCreate2         = 15
	opReconfig        = 16
	opRemoveWatches   = 18
	opCreateContainer = 19
	opCreateTTL       = 21
	opMultiRead       = 22
	opAuth            = 100
	opSetWatches      = 101
	opEphemerals      = 103
	opCountAll        = 104
	opSetWatches2     = 105
	opAddWatch        = 106
	opCloseSession    = -11

	// Offsets from the start of the length field.
	replyZxid      = lengthSize + 4
	replyCode      = replyZxid + zxidSize
	setWatchesZxid = lengthSize + requestHeaderSize
)

// writes are the operations that change something. A follower forwards them to the ZooKeeper
// leader.
var writes = map[int32]bool{
	opCreate: true, opDelete: true, opSetData: true, opSetACL: true, opMulti: true, opCreate2: true, opReconfig: true,
	opCreateContainer: true, opCreateTTL: true,
}

// refusals are the errors by which the ZooKeeper leader refuses a write. A refused write is a
// transaction too. The errors are: no node, no permission, another version, ephemeral parent, node
// exists, node has children.
var refusals = map[int32]bool{-101: true, -102: true, -103: true, -108: true, -110: true, -111: true}

// throughQuorum reports whether most servers have agreed to the reply to an operation.
func throughQuorum(op, code int32) bool { return writes[op] && (code == 0 || refusals[code]) }

// replyHeader is the header of a reply or an event.
type replyHeader struct {
	xid  int32
	zxid int64
	code int32
	body int // length of the body in bytes
}

// parseHeader decodes the length and the header of a reply.
func parseHeader(b []byte) replyHeader {
	return replyHeader{
		xid:  int32(binary.BigEndian.Uint32(b[lengthSize:])),
		zxid: int64(binary.BigEndian.Uint64(b[replyZxid:])),
		code: int32(binary.BigEndian.Uint32(b[replyCode:])),
		body: int(binary.BigEndian.Uint32(b)) - replyHeaderSize,
	}
}

// closeSession is the request that ends a session.
var closeSession = header(endXid, opCloseSession)

// header returns a frame of the given numbers, of which there are at least two.
func header(numbers ...int32) []byte {
	frame := binary.BigEndian.AppendUint32(nil, uint32(4*len(numbers)))
	for _, n := range numbers {
		frame = binary.BigEndian.AppendUint32(frame, uint32(n))
	}
	return frame
}
