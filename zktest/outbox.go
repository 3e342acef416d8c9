package zktest

import "sync"

// mostUnsent bounds what a connection keeps for its client, in bytes. A frame is kept if what is not sent yet
// before it is not more than that.
const mostUnsent = 128 << 20

// outbox is what a connection has yet to send. Adding to it never blocks.
type outbox struct {
	mu     sync.Mutex
	frames []outFrame
	unsent int // the size of what was put and is not sent, also of frames that were taken
	corked bool
	how    ending
	wake   chan struct{} // of capacity 1
	cut    chan struct{} // closed when the connection ends without waiting
}

// outFrame is a frame or a part of one.
type outFrame struct {
	data  []byte
	event bool
}

// ending is how a connection ends.
type ending int

const (
	goesOn   ending = iota
	flushAll        // when all has been sent
	dropAll         // at once; what has not been sent is dropped
	resetAll        // at once, with a reset
)

func newOutbox() *outbox {
	return &outbox{wake: make(chan struct{}, 1), cut: make(chan struct{})}
}

// put adds a frame. It reports false if too much is unsent.
func (o *outbox) put(f outFrame) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.how != goesOn || o.corked:
		return true
	case o.unsent > mostUnsent:
		return false
	}
	o.frames = append(o.frames, f)
	o.unsent += len(f.data)
	o.wakeWriter()
	return true
}

// sent notes that so many bytes were sent, or discarded.
func (o *outbox) sent(size int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.unsent -= size
}

// wakeWriter wakes the writer. The caller holds o.mu.
func (o *outbox) wakeWriter() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// cork makes put discard all later frames.
func (o *outbox) cork() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.corked = true
}

// end ends the outbox. A harder end may follow a softer one.
func (o *outbox) end(how ending) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if how <= o.how {
		return
	}
	if how != flushAll && o.how <= flushAll {
		o.frames = nil
		close(o.cut)
	}
	o.how = how
	o.wakeWriter()
}

// take returns the frames to send now, and how the outbox has ended.
func (o *outbox) take() ([]outFrame, ending) {
	o.mu.Lock()
	defer o.mu.Unlock()
	frames := o.frames
	o.frames = nil
	return frames, o.how
}

// hardestEnd returns how the outbox has ended by now if the frames that were taken must not be sent
// any more. Otherwise it returns how.
func (o *outbox) hardestEnd(how ending) ending {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.how > flushAll {
		return o.how
	}
	return how
}
