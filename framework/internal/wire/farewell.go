package wire

import (
	"context"
	"encoding/binary"
	"slices"
	"sync/atomic"
)

// The driver can end a session itself, but not while it has requests under way, for it races with their answers then; nor can it
// try again on the next connection. So the shim asks the server, behind everything that was written before. When that is
// confirmed nothing more will come from the server; the shim keeps the driver from noticing, so that it can be told to close,
// and answers that in the server's place.

// farewell is the end of a session on one connection.
type farewell struct {
	begun *atomic.Bool
	ended chan struct{} // closed by answered
	last  chan int32    // the number of the request by which the driver closes
}

func newFarewell() farewell {
	return farewell{begun: new(atomic.Bool), ended: make(chan struct{}), last: make(chan int32, 1)}
}

// answered is called on the reading goroutine. Such a reply has no body, and the driver must not take anything else for one.
func (f farewell) answered(r replyHeader) bool {
	if r.code != 0 || r.body != 0 || f.over() {
		return false
	}
	close(f.ended)
	return true
}

// over reports whether the server has confirmed the end.
func (f farewell) over() bool {
	select {
	case <-f.ended:
		return true
	default:
		return false
	}
}

// part asks the server to end the session, and says whether it has confirmed that in the time that ctx allows.
func (s *shim) part(ctx context.Context) bool {
	s.mu.Lock()
	first := s.welcome && !s.farewell.begun.Swap(true)
	mine := first && s.out.put(closeSession) // from now on nothing of ours comes behind it
	s.mu.Unlock()
	if !first {
		return false
	}
	stop := context.AfterFunc(ctx, func() { s.Close() }) // which ends a write that waits, too
	defer stop()
	if mine {
		s.start(false)
	}
	select {
	case <-s.farewell.ended:
	case <-s.gone: // perhaps after the answer
	}
	return s.farewell.over()
}

// closeSession is the request.
var closeSession = header(farewellXid, opCloseSession)

// header is a frame of two or more numbers.
func header(numbers ...int32) []byte {
	frame := binary.BigEndian.AppendUint32(nil, uint32(4*len(numbers)))
	for _, n := range numbers {
		frame = binary.BigEndian.AppendUint32(frame, uint32(n))
	}
	return frame
}

// heed sees what the driver writes after the end: that it closes, or a ping. Anything else would wait for an answer in vain.
func (s *shim) heed(frame []byte) {
	xid := int32(binary.BigEndian.Uint32(frame[lengthSize:]))
	switch op := int32(binary.BigEndian.Uint32(frame[lengthSize+4:])); {
	case op == opCloseSession:
		s.farewell.last <- xid
	case xid != pingXid:
		s.Close()
	}
}

// lastWords is what the driver reads after the end. Requests that came too late for an answer are not to wait for one.
func (s *shim) lastWords(b []byte) (int, error) {
	s.mu.Lock()
	late := slices.ContainsFunc(s.waiting, func(r request) bool { return r.xid != pingXid })
	s.mu.Unlock()
	if late {
		s.Close()
	}
	select {
	case xid := <-s.farewell.last:
		s.pending = header(xid, 0, 0, 0) // no transaction, no error
		n := copy(b, s.pending)
		s.pending = s.pending[n:]
		return n, nil
	case <-s.gone:
		return 0, errOver
	}
}
