package memnet

import (
	"sync"
	"time"
)

// turn lets one Read at a time access the data; the others wait in a queue. Only the Read that has
// the turn waits for data, so an arrival wakes at most one goroutine. Its methods are called with
// the lock that guards it.
type turn struct {
	taken   bool
	queue   []chan struct{} // each closed when its turn comes
	waiting bool            // a Read waits for data
	woken   chan struct{}   // of capacity 1, wakes that Read; nil before the first one waits
	alarm   *time.Timer     // wakes it at an instant; nil before the first instant
}

// take waits for the caller's turn. It releases the lock meanwhile.
func (t *turn) take(mu *sync.Mutex) {
	if !t.taken {
		t.taken = true
		return
	}
	mine := make(chan struct{})
	t.queue = append(t.queue, mine)
	mu.Unlock()
	<-mine
	mu.Lock()
}

// pass ends the caller's turn.
func (t *turn) pass() {
	if len(t.queue) == 0 {
		t.taken, t.queue = false, nil
		return
	}
	close(t.queue[0]) // taken stays true: the turn passes directly
	t.queue = t.queue[1:]
}

// wait returns at the given instant, zero for never, or when woken. wakeAt may change the instant. It
// releases the lock meanwhile.
func (t *turn) wait(mu *sync.Mutex, until time.Time) {
	if t.woken == nil {
		t.woken = make(chan struct{}, 1)
	}
	t.set(until)
	var alarm <-chan time.Time
	if t.alarm != nil {
		alarm = t.alarm.C
	}
	t.waiting = true
	mu.Unlock()
	select {
	case <-t.woken:
	case <-alarm:
	}
	mu.Lock()
	if !t.waiting { // woken, perhaps at the instant of the alarm
		select {
		case <-t.woken:
		default:
		}
	}
	t.waiting = false
}

// set sets the alarm to an instant, zero for never.
func (t *turn) set(at time.Time) {
	switch {
	case at.IsZero() && t.alarm != nil:
		t.alarm.Stop()
	case at.IsZero():
	case t.alarm == nil:
		t.alarm = time.NewTimer(time.Until(at))
	default:
		t.alarm.Reset(time.Until(at))
	}
}

// wake wakes the waiting Read, if one waits.
func (t *turn) wake() {
	if t.waiting {
		t.waiting = false
		t.woken <- struct{}{}
	}
}

// wakeAt replaces the instant at which the waiting Read returns, if one waits. A Read that waits
// without an alarm is woken at once, to wait again with one.
func (t *turn) wakeAt(until time.Time) {
	switch {
	case !t.waiting:
	case t.alarm == nil, reached(until, time.Now()):
		t.wake()
	default:
		t.set(until)
	}
}
