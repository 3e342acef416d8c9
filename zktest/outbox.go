package zktest

import "sync"

// outbox is what a connection has yet to send. Putting something in never blocks.
type outbox struct {
	mu     sync.Mutex
	frames []outFrame
	corked bool
	how    ending
	wake   chan struct{} // of capacity 1
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

func newOutbox() *outbox { return &outbox{wake: make(chan struct{}, 1)} }

func (o *outbox) put(f outFrame) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.how != goesOn {
		return
	}
	o.frames = append(o.frames, f)
	o.tell()
}

// tell needs o.mu.
func (o *outbox) tell() {
	if o.corked && o.how == goesOn {
		return
	}
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// cork keeps everything that is put in from now on, for as long as there is no end.
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
	o.how = how
	if how != flushAll {
		o.frames = nil
	}
	o.tell()
}

// take returns what is to be sent now, and whether and how that is the end.
func (o *outbox) take() ([]outFrame, ending) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.corked && o.how == goesOn {
		return nil, goesOn
	}
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
