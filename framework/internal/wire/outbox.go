package wire

import (
	"crypto/tls"
	"math"
	"net"
	"runtime"
	"sync"

	"go.uber.org/zap"
)

// outbox is what is to be written to a socket. Whoever comes while somebody writes leaves its frame behind: then many leave in one piece.
type outbox struct {
	buffered bool          // to write a little while nothing else is under way does not wait
	wake     chan struct{} // has room for one: there is something to write in the background

	mu    sync.Mutex
	next  []byte // to be written next
	spare []byte // for what comes after that
	busy  bool   // somebody writes, or is about to
}

const (
	// atOnce is what any socket takes at once while nothing else is under way.
	atOnce = 4 << 10
	// keep is how large a buffer may be that is kept.
	keep = 16 << 10
)

func newOutbox(c net.Conn) *outbox {
	return &outbox{buffered: buffered(c), wake: make(chan struct{}, 1)}
}

// buffered reports whether it is known of a connection that it has a buffer of the system. One that a program makes itself may have none, so
// that to write is to wait for who reads.
func buffered(c net.Conn) bool {
	switch c := c.(type) {
	case *net.TCPConn, *net.UnixConn:
		return true
	case *tls.Conn:
		return buffered(c.NetConn())
	}
	return false
}

// put adds a frame, and reports whether nobody writes: then the caller has to start.
func (o *outbox) put(frame []byte) (mine bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.next = append(o.next, frame...)
	mine = !o.busy
	o.busy = true
	return mine
}

// hold keeps what is put from now on until somebody starts, and reports whether nobody writes: then the caller has to start.
func (o *outbox) hold() (mine bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	mine = !o.busy
	o.busy = true
	return mine
}

// size is how many bytes are to be written.
func (o *outbox) size() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.next)
}

// take is what is to be written now. If it is more than most it stays where it is.
func (o *outbox) take(most int) (all []byte, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.next) > most {
		return nil, false
	}
	all = o.next
	o.next, o.spare = o.spare, nil
	return all, true
}

// finish takes back what was written, and reports whether that was all: then somebody else may start next time.
func (o *outbox) finish(written []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if cap(written) <= keep {
		o.spare = written[:0]
	}
	o.busy = len(o.next) > 0
	return !o.busy
}

// start has written what was put; here, if that does not wait for anything. Others may have put more since.
func (s *shim) start(here bool) {
	if here && s.out.buffered && s.flush(atOnce) {
		return
	}
	s.out.wake <- struct{}{}
}

// Together calls fn, which must not wait for anything. The requests that it makes by Ask leave in one piece, in their order, as long as the
// connection is the same.
func (c *Conn) Together(fn func()) {
	if socket := c.current(); socket != nil {
		defer socket.hold()()
	}
	fn()
}

// hold keeps requests back until the returned function is called.
func (s *shim) hold() (let func()) {
	s.mu.Lock()
	idle := len(s.waiting) == 0
	mine := s.out.hold()
	s.mu.Unlock()
	return func() {
		if mine {
			s.start(idle && s.out.size() <= atOnce)
		}
	}
}

// write writes what is put, until the socket is closed.
func (s *shim) write() {
	for {
		select {
		case <-s.out.wake:
			runtime.Gosched() // others who have something to write may be about to
			for !s.flush(math.MaxInt) {
			}
		case <-s.gone:
			return
		}
	}
}

// flush writes what there is, if it is not more than most, or closes the socket, and reports whether that was all.
func (s *shim) flush(most int) bool {
	all, ok := s.out.take(most)
	if !ok {
		return false
	}
	if len(all) == 0 {
		return s.out.finish(all)
	}
	if _, err := s.Conn.Write(all); err != nil {
		s.owner.log.Debug("write failed: closing the connection", zap.String("server", s.server), zap.Error(err))
		s.Close()
	}
	return s.out.finish(all)
}
