package proto

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/docent-zk/docent/zktest/fault"
)

// Sizes of frames.
const (
	PrefixSize      = 4       // the length before each frame
	DefaultMaxFrame = 0xfffff // jute.maxbuffer
)

// ReadFrame reads a frame's body, whose length must be 0 to limit. It allocates memory as data
// arrives, whatever length was announced.
func ReadFrame(r io.Reader, limit int) ([]byte, error) {
	var prefix [PrefixSize]byte
	if _, err := io.ReadFull(r, prefix[:]); err != nil {
		return nil, err
	}
	return ReadBody(r, prefix, limit)
}

// ReadBody is ReadFrame for a length that has already been read.
func ReadBody(r io.Reader, prefix [PrefixSize]byte, limit int) ([]byte, error) {
	length := int(int32(binary.BigEndian.Uint32(prefix[:])))
	if length < 0 || length > limit {
		return nil, fmt.Errorf("frame of %d bytes: want 0 to %d", length, limit)
	}
	const step = 64 << 10
	body := make([]byte, 0, min(length, step))
	for len(body) < length {
		start := len(body)
		body = append(body, make([]byte, min(length-start, max(step, start)))...)
		if _, err := io.ReadFull(r, body[start:]); err != nil {
			return nil, err
		}
	}
	return body, nil
}

// Frame returns an Encoder with room for the length, which Finish fills in.
func Frame(capacity int) Encoder {
	return make(Encoder, PrefixSize, PrefixSize+capacity)
}

// Finish returns the whole frame.
func (e Encoder) Finish() []byte {
	binary.BigEndian.PutUint32(e, uint32(len(e)-PrefixSize))
	return e
}

// replyHeader is the size of a reply's header.
const replyHeader = 16

// Reply returns a frame that begins with a reply's header.
func Reply(xid int32, zxid int64, code Code, body int) Encoder {
	e := Frame(replyHeader + body)
	e.Int(xid)
	e.Long(zxid)
	e.Int(int32(code))
	return e
}

// Event returns the frame of a watch event.
func Event(zxid int64, kind int32, path string) []byte {
	e := Reply(XIDEvent, zxid, OK, 12+len(path))
	e.Int(kind)
	e.Int(StateConnected)
	e.String(path)
	return e.Finish()
}

// Connected returns the answer to a connect request. For an expired session the timeout, the id and
// the password are zero.
func Connected(timeout int32, session int64, password [16]byte, c Connect, readOnly bool) []byte {
	e := Frame(37)
	e.Int(0)
	e.Int(timeout)
	e.Long(session)
	e.Buffer(password[:])
	if c.HasReadOnly {
		e.Bool(readOnly)
	}
	return e.Finish()
}

// Part appends the header of a part of a multi's answer.
func (e *Encoder) Part(kind fault.Op, code Code) {
	e.Int(int32(kind))
	e.Bool(false)
	e.Int(int32(code))
}

// FailedPart appends the answer to a part of a multi that was not carried out.
func (e *Encoder) FailedPart(code Code) {
	e.Part(-1, code)
	e.Int(int32(code))
}

// EndOfParts appends a multi's end mark.
func (e *Encoder) EndOfParts() {
	e.Int(-1)
	e.Bool(true)
	e.Int(-1)
}
