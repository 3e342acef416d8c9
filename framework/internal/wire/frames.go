package wire

import "encoding/binary"

// Frames of the protocol, as far as the shim has to know them: a length, then a header.
const (
	lengthSize      = 4
	replyHeaderSize = 16 // xid, zxid, error code
	opAuth          = 100

	// Of the connect request, counted from the length field.
	connectRequestSession = lengthSize + 4 + 8 + 4
	// Of the connect reply, counted behind the length field.
	connectReplyTimeout  = 4
	connectReplySession  = 8
	connectReplyPassword = 16
	connectReplyMin      = connectReplyPassword + 4
	connectReplyMax      = 4096
)

// replies follows a stream of reply frames through arbitrary cuts and reports the xid of each as its header completes.
type replies struct {
	head [lengthSize + replyHeaderSize]byte
	have int // bytes of head that are filled
	skip int // bytes of the current frame's body still to come
}

func (r *replies) feed(b []byte, answered func(xid int32)) {
	for len(b) > 0 {
		if r.skip > 0 {
			n := min(r.skip, len(b))
			r.skip -= n
			b = b[n:]
			continue
		}
		n := copy(r.head[r.have:], b)
		r.have += n
		b = b[n:]
		if r.have == len(r.head) {
			length := int(binary.BigEndian.Uint32(r.head[:]))
			r.skip = max(0, length-replyHeaderSize)
			r.have = 0
			answered(int32(binary.BigEndian.Uint32(r.head[lengthSize:])))
		}
	}
}
