package zktest

import "sync"

// outbox is what a connection has yet to send. Putting something in never blocks.
type outbox struct {
	mu     sync.Mutex
	frames []outFrame
	corked bool
	how    ending
	wake   chan struct{} // of capacity 1
	cut    chan struct{} // closed when the end is one that waits for nothing
}

// outFrame is one frame, or a part of it.
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
	resetAll        // so, and with a reset
)

func newOutbox() *outbox {
	return &outbox{wake: make(chan struct{}, 1), cut: make(chan struct{})}
}

func (o *outbox) put(f outFrame) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.how != goesOn || o.corked {
		return
	}
	o.frames = append(o.frames, f)
	o.tell()
}

// tell needs o.mu.
func (o *outbox) tell() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// cork loses everything that is put in from now on.
func (o *outbox) cork() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.corked = true
}

// end is the last that happens to an outbox; a harsher end may follow a milder one.
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
	o.tell()
}

// take returns what is to be sent now, and whether and how that is the end.
func (o *outbox) take() ([]outFrame, ending) {
	o.mu.Lock()
	defer o.mu.Unlock()
	frames := o.frames
	o.frames = nil
	return frames, o.how
}

// harsher is how the outbox has ended since take said how, if what was taken is not to be sent any more.
func (o *outbox) harsher(how ending) ending {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.how > flushAll {
		return o.how
	}
	return how
}
