package proxy

import (
	"bufio"
	"encoding/binary"
	"io"

	"github.com/docent-zk/docent/zktest/fault"
)

const (
	maxFrame = 1 << 26 // text read as a length, such as a four-letter word, is larger
	prefix   = 4       // bytes of a frame's length
	header   = prefix + 8
	pingXID  = -2 // the xid of each answer to a ping, whatever the ping's own was
)

// readFrame reads a frame with its length. If whole is false, data has what could be read of it:
// with an error a frame that was cut off, and without one the first bytes of something that is not
// a frame.
func readFrame(r *bufio.Reader) (data []byte, whole bool, err error) {
	data = make([]byte, prefix)
	n, err := io.ReadFull(r, data)
	if err != nil {
		return data[:n], false, err
	}
	length := int32(binary.BigEndian.Uint32(data))
	if length < 0 || length > maxFrame {
		return data, false, nil
	}
	data = append(data, make([]byte, length)...)
	n, err = io.ReadFull(r, data[prefix:])
	return data[:prefix+n], err == nil, err
}

// request is the part of a request that the proxy uses.
type request struct {
	xid  int32
	op   fault.Op
	path string
}

// parseRequest reports false if the frame is too short for a request.
func parseRequest(frame []byte) (request, bool) {
	if len(frame) < header {
		return request{}, false
	}
	req := request{xid: int32At(frame, prefix), op: fault.Op(int32At(frame, prefix+4))}
	if req.op == fault.OpPing {
		req.xid = pingXID
	}
	req.path = parsePath(req.op, frame[header:])
	return req, true
}

// parsePath returns the path of a request, or nothing if the request has none.
func parsePath(op fault.Op, body []byte) string {
	const part = 9 // the header of a part of a multi: type, done, error
	switch {
	case op.PathFirst():
		return parseString(body)
	case (op == fault.OpMulti || op == fault.OpMultiRead) && len(body) > part:
		return parseString(body[part:])
	}
	return ""
}

// parseString returns nothing for a malformed string, which the server will reject.
func parseString(data []byte) string {
	if len(data) < prefix {
		return ""
	}
	length := int(int32At(data, 0))
	if length < 0 || length > len(data)-prefix {
		return ""
	}
	return string(data[prefix : prefix+length])
}

// replyXID reports false if the frame is too short for a reply.
func replyXID(frame []byte) (int32, bool) {
	if len(frame) < prefix+4 {
		return 0, false
	}
	return int32At(frame, prefix), true
}

func int32At(data []byte, offset int) int32 {
	return int32(binary.BigEndian.Uint32(data[offset:]))
}
