package ownership

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/docent-zk/docent/framework"
)

// ownership is what the reentrant holds of one lock share.
type ownership struct {
	resource
	begun     time.Time
	requested chan struct{} // closed by request

	mu        sync.Mutex
	holds     []*Hold // that are held
	handoff   Handoff // nil: the nodes are deleted at the end
	kept      bool    // the only hold is one that Handoff.Next has Kept
	guards    int     // guarded transactions under way
	uncertain bool    // one of them may still be applied
	err       error   // why the ownership has ended
	cleanup   func()  // what cleanUp is still to do after a loss
	reporting func()  // what report is still to do after a loss
}

// resource is what is owned.
type resource interface {
	session() *framework.Session // of the nodes, or of some of them; nil: there is none
	// background calls fn in the background of what the resource depends on, unless it reports false
	// because that has ended.
	background(fn func()) bool
	locks() []Lock
	paths() []string // of the resource's own nodes
	parts() []*Hold
	validUntil() time.Time
	// check returns why the resource is lost, or nil.
	check() error
	// abandon has what is left after a loss cleaned up in the background.
	abandon(reason error)
	// logLoss logs a loss.
	logLoss(reason error)
	// release deletes or releases the resource.
	release() error
	// stopLocked ends what watches the resource, once. The ownership's mu is held.
	stopLocked()
	// carry returns a context in which the resource's locks are re-entered as h.
	carry(ctx context.Context, h *Hold) context.Context
	// measure measures the end of an ownership, once: err is why it was lost, or the result of its release.
	measure(held time.Duration, err error)
	// addHeld adds n to the number of locks that are held now. The ownership's mu may be held.
	addHeld(n int64)
}

func newOwnership(r resource) *ownership {
	r.addHeld(1)
	return &ownership{resource: r, begun: time.Now(), requested: make(chan struct{})}
}

// newHoldLocked returns another hold of what o owns. The caller holds o.mu, or o is new.
func (o *ownership) newHoldLocked() *Hold {
	h := &Hold{owned: o, done: make(chan struct{})}
	o.holds = append(o.holds, h)
	return h
}

func (o *ownership) isHeldLocked(h *Hold) bool { return slices.Contains(o.holds, h) }

func (o *ownership) removeLocked(h *Hold) {
	o.holds = slices.DeleteFunc(o.holds, func(held *Hold) bool { return held == h })
}

// enter returns another hold, unless h has ended.
func (o *ownership) enter(h *Hold) (*Hold, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.isHeldLocked(h) || o.err != nil {
		return nil, false
	}
	return o.newHoldLocked(), true
}

// releaseResult is what the release of a hold comes to.
type releaseResult int

const (
	stillHeld releaseResult = iota // there are other holds
	passedOn                       // it was the last one, and the nodes have another hold now
	released                       // it was the last one, and the ownership has ended
)

// releaseHold ends h. Where it was the last hold, measured must be called with the result. The
// error says why h had ended before.
func (o *ownership) releaseHold(h *Hold) (result releaseResult, measured func(error), err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer func() { h.released = true }()
	return o.releaseHoldLocked(h)
}

// releasePart is releaseHold for a part of what is released. If it was lost, its owner has not been told.
func (o *ownership) releasePart(h *Hold) (result releaseResult, measured func(error), err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.releaseHoldLocked(h)
}

// releaseAlone is releaseHold, unless there are other holds. Then it does nothing and returns
// stillHeld without an error.
func (o *ownership) releaseAlone(h *Hold) (result releaseResult, measured func(error), err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.isHeldLocked(h) && o.err == nil && len(o.holds) > 1 {
		return stillHeld, nil, nil
	}
	defer func() { h.released = true }()
	return o.releaseHoldLocked(h)
}

func (o *ownership) releaseHoldLocked(h *Hold) (result releaseResult, measured func(error), err error) {
	switch {
	case h.released:
		return stillHeld, nil, ErrNotHeld
	case o.err != nil:
		return stillHeld, nil, o.err
	}
	h.released = true
	o.removeLocked(h)
	h.endLocked(ErrNotHeld)
	if len(o.holds) > 0 {
		return stillHeld, nil, nil
	}
	measured = o.measurementLocked()
	if o.passOnLocked() {
		return passedOn, measured, nil
	}
	o.err = ErrNotHeld
	o.stopLocked()
	return released, measured, nil
}

// measurementLocked ends the measurement of the present hold. It returns a function that reports the
// end, with its result.
func (o *ownership) measurementLocked() func(error) {
	if o.kept {
		return func(error) {}
	}
	o.addHeld(-1)
	held := time.Since(o.begun)
	return func(err error) { o.measure(held, err) }
}

// lose ends all holds because of a loss, cleans up, and reports it.
func (o *ownership) lose(reason error) {
	o.end(reason)
	o.cleanUp()
	o.report()
}

// endIfLost asks the resource whether it is lost, which compares clocks, and ends all holds if it is. It ends
// them also if code of the program ends the goroutine: then it is not known whether the resource is lost.
// What watches the resource cleans up and reports the loss: the code of the program may block.
func (o *ownership) endIfLost() {
	if o.hasEnded() {
		return
	}
	err := errCheckEnded
	defer func() {
		if err != nil {
			o.end(err)
		}
	}()
	err = o.check()
}

// errCheckEnded is why a hold ends whose resource cannot tell whether it is lost.
var errCheckEnded = fmt.Errorf("%w: code of the program ended the goroutine that asked for it", ErrForeignLost)

func (o *ownership) hasEnded() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err != nil
}

// end ends all holds because of a loss, and the holds that they are parts of.
func (o *ownership) end(reason error) {
	for _, whole := range o.endOwn(reason) {
		whole.end(reason)
	}
}

// endOwn ends all holds, and returns what they are parts of; nil: the ownership had ended before.
func (o *ownership) endOwn(reason error) (wholes []*ownership) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return nil
	}
	o.err = reason
	for _, h := range o.holds {
		wholes = append(wholes, h.wholes...)
		h.endLocked(reason)
	}
	o.cleanup = func() {
		defer o.notifyEnded()
		defer o.abandon(reason)
		loseAll(wholes, reason)
	}
	measured := o.measurementLocked()
	o.reporting = func() {
		defer measured(reason)
		o.logLoss(reason)
	}
	o.stopLocked()
	return wholes
}

// loseAll ends what has lost a part, and cleans up. There is nothing to report. If code of the program ends the
// goroutine, the others end nevertheless.
func loseAll(wholes []*ownership, reason error) {
	for _, whole := range slices.Backward(wholes) {
		defer func() {
			whole.end(reason)
			whole.cleanUp()
		}()
	}
}

// cleanUp cleans up after a loss, once. It waits for nothing.
func (o *ownership) cleanUp() { o.callOnce(&o.cleanup) }

// report logs and measures a loss, once.
func (o *ownership) report() { o.callOnce(&o.reporting) }

func (o *ownership) callOnce(fn *func()) {
	o.mu.Lock()
	call := *fn
	*fn = nil
	o.mu.Unlock()
	if call != nil {
		call()
	}
}

// finish releases the resource after the last hold.
func (o *ownership) finish(measured func(error)) (err error) {
	defer o.notifyEnded()
	err = errReleaseEnded
	defer func() { measured(err) }()
	err = o.release()
	return err
}

// startGuard notes a guarded transaction of h, until done is called with its error; false: h has
// ended. Such a transaction is applied while the node exists, so the node must not be passed on
// before its outcome is known.
func (o *ownership) startGuard(h *Hold) (done func(error), ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.isHeldLocked(h) || o.err != nil {
		return nil, false
	}
	o.guards++
	return o.endGuard, true
}

func (o *ownership) endGuard(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.guards--
	o.uncertain = o.uncertain || framework.OutcomeOf(err) == framework.Unknown
}

// request notes that another client asks for the release of the resource.
func (o *ownership) request() {
	wholes, first := o.noteRequest()
	if !first {
		return
	}
	for _, whole := range wholes {
		whole.request()
	}
	o.notify(Handoff.Requested)
}

func (o *ownership) noteRequest() (wholes []*ownership, first bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if isClosed(o.requested) {
		return nil, false
	}
	close(o.requested)
	for _, h := range o.holds {
		wholes = append(wholes, h.wholes...)
	}
	return wholes, true
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
