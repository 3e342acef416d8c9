package conn

import (
	"crypto/tls"
	"math"
	"net"
	"runtime"
	"sync"

	"go.uber.org/zap"
)

// outbox is what is to be written to a socket. What is put while a goroutine writes leaves in one piece afterwards.
type outbox struct {
	buffered bool          // to write a little while nothing else is under way does not wait
	wake     chan struct{} // has room for one: there is something to write in the background

	mu    sync.Mutex
	next  []byte // to be written next
	spare []byte // for what comes after that
	busy  bool   // a goroutine writes, or is about to
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

// buffered reports whether it is known of a connection that it has a buffer of the system. One that the program makes itself may have none, so
// that to write is to wait for the reader.
func buffered(c net.Conn) bool {
	switch c := c.(type) {
	case *net.TCPConn, *net.UnixConn:
		return true
	case *tls.Conn:
		return buffered(c.NetConn())
	}
	return false
}

// put adds a frame, and reports whether no goroutine writes: then the caller has to start.
func (o *outbox) put(frame []byte) (mine bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.next = append(o.next, frame...)
	mine = !o.busy
	o.busy = true
	return mine
}

// hold keeps what is put from now on until start, and reports whether no goroutine writes: then the caller has to start.
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

// finish takes back what was written, and reports whether that was all: then the next caller of put has to start.
func (o *outbox) finish(written []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if cap(written) <= keep {
		o.spare = written[:0]
	}
	o.busy = len(o.next) > 0
	return !o.busy
}

// start has the outbox written: by the caller if that does not wait for anything, otherwise in the background.
func (l *link) start(here bool) {
	if here && l.out.buffered && l.flush(atOnce) {
		return
	}
	l.out.wake <- struct{}{}
}

// hold keeps requests back until the returned function is called.
func (l *link) hold() (let func()) {
	l.mu.Lock()
	idle := len(l.waiting) == 0
	mine := l.out.hold()
	l.mu.Unlock()
	return func() {
		if mine {
			l.start(idle && l.out.size() <= atOnce)
		}
	}
}

// write writes the outbox in the background until the link is closed.
func (l *link) write() {
	for {
		select {
		case <-l.out.wake:
			runtime.Gosched() // other goroutines may be about to put something
			for !l.flush(math.MaxInt) {
			}
		case <-l.closed:
			return
		}
	}
}

// flush writes what there is, if it is not more than most, or closes the socket, and reports whether that was all.
func (l *link) flush(most int) bool {
	all, ok := l.out.take(most)
	if !ok {
		return false
	}
	if len(all) == 0 {
		return l.out.finish(all)
	}
	if _, err := l.Conn.Write(all); err != nil {
		l.owner.log.Debug("write failed: closing the connection", zap.String("server", l.server), zap.Error(err))
		l.Close()
	}
	return l.out.finish(all)
}
