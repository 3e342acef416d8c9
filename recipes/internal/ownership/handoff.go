package ownership

import "time"

// Handoff decides whether a released lock node is deleted, passed on to another hold, or kept.
type Handoff interface {
	// Next is called with a new hold of the node when the hold before has ended, and says what
	// becomes of it. It must not wait for anything, nor end the hold before it returns.
	Next(h *Hold) Decision
	// Requested is called at most once, when another client asks for the release of the node:
	// Next is not called any more. It must not wait for anything.
	Requested()
	// Ended is called once, when there will be no further hold of the node: it is deleted, or
	// being deleted, or was lost.
	Ended()
}

// Decision is what a Handoff does with a node.
type Decision int

const (
	Delete Decision = iota // the nodes are deleted, and the hold given to Next does not begin
	Passed                 // another goroutine has the hold
	Kept                   // for a later hold: until then it is not measured, and its loss is not reported
)

// SetHandoff sets the hand-off policy of h. Call it before h is shared.
func (h *Hold) SetHandoff(policy Handoff) {
	o := h.owned
	o.mu.Lock()
	ended := o.err != nil // then policy is not called when it ends
	if !ended {
		o.handoff = policy
	}
	o.mu.Unlock()
	if ended {
		policy.Ended()
	}
}

// passOnLocked passes the node on or keeps it, unless another client asks for its release or a
// transaction that was guarded by it may still be applied.
func (o *ownership) passOnLocked() bool {
	if o.handoff == nil || o.guards > 0 || o.uncertain || isClosed(o.requested) {
		return false
	}
	next := o.newHoldLocked()
	decision := o.handoff.Next(next)
	if decision == Delete {
		o.removeLocked(next)
		return false
	}
	o.begun, o.kept = time.Now(), decision == Kept
	if !o.kept {
		o.addHeld(1)
	}
	return true
}

func (o *ownership) notifyEnded() { o.notify(Handoff.Ended) }

// notify calls a method of the hand-off policy, if there is one.
func (o *ownership) notify(call func(Handoff)) {
	o.mu.Lock()
	policy := o.handoff
	o.mu.Unlock()
	if policy != nil {
		call(policy)
	}
}
