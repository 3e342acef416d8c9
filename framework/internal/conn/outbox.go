package conn

import (
	"crypto/tls"
	"math"
	"net"
	"runtime"
	"sync"

	"go.uber.org/zap"
)

// outbox holds what is to be written to a socket. What is put while a goroutine writes is written
// in one piece afterwards.
type outbox struct {
	buffered bool          // whether a small write returns at once while nothing else is under way
	wake     chan struct{} // has a buffer of one; tells the background goroutine to write

	mu    sync.Mutex
	next  []byte // to be written next
	spare []byte // buffer for what comes after next
	busy  bool   // whether a goroutine writes or is about to
}

const (
	// smallFrame is a size that any buffered socket takes at once while nothing else is under way.
	smallFrame = 4 << 10
	// maxKept is the largest capacity of a buffer that is kept for reuse.
	maxKept = 16 << 10
)

func newOutbox(c net.Conn) *outbox {
	return &outbox{buffered: buffered(c), wake: make(chan struct{}, 1)}
}

// buffered reports whether c is known to have a buffer of the operating system. A connection made
// by the program may have none. Then a write waits for the reader.
func buffered(c net.Conn) bool {
	switch c := c.(type) {
	case *net.TCPConn, *net.UnixConn:
		return true
	case *tls.Conn:
		return buffered(c.NetConn())
	}
	return false
}

// put appends a frame and reports whether no goroutine writes. If so, the caller must call start.
func (o *outbox) put(frame []byte) (mustStart bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.next = append(o.next, frame...)
	mustStart = !o.busy
	o.busy = true
	return mustStart
}

// delay keeps back what is put from now on until start. It reports whether no goroutine writes. If
// so, the caller must call start.
func (o *outbox) delay() (mustStart bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	mustStart = !o.busy
	o.busy = true
	return mustStart
}

// size returns the number of bytes to be written.
func (o *outbox) size() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.next)
}

// take removes and returns what is to be written, unless it is more than most bytes.
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

// finish takes back the buffer that was written and reports whether nothing else is to be written.
// If so, the next caller of put must call start.
func (o *outbox) finish(written []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if cap(written) <= maxKept {
		o.spare = written[:0]
	}
	o.busy = len(o.next) > 0
	return !o.busy
}

// start has the outbox written. The caller writes it if here is set and the write does not wait.
// Otherwise the background goroutine does.
func (l *link) start(here bool) {
	if here && l.out.buffered && l.flush(smallFrame) {
		return
	}
	l.out.wake <- struct{}{}
}

// delay keeps requests back. It reports whether no request waits for a reply, and whether the caller
// must call startDelayed.
func (l *link) delay() (idle, mustStart bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting) == 0, l.out.delay()
}

// startDelayed has the requests written that were kept back. idle is the result of delay.
func (l *link) startDelayed(idle bool) { l.start(idle && l.out.size() <= smallFrame) }

// write writes the outbox in the background until the link is closed.
func (l *link) write() {
	for {
		select {
		case <-l.out.wake:
			runtime.Gosched() // other goroutines may be about to put more
			for !l.flush(math.MaxInt) {
			}
		case <-l.closed:
			return
		}
	}
}

// flush writes the outbox, unless it has more than most bytes, and reports whether nothing remains.
// It closes the link if the write fails.
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
