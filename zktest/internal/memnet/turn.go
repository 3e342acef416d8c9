package memnet

import (
	"sync"
	"time"
)

// turn lets one Read at a time at the data; the others stand in line. Only the one whose turn it is has anything to
// wait for, so that an arrival wakes no more than one. It is guarded by the lock that its methods are given.
type turn struct {
	taken bool
	line  []chan struct{} // each closed when its turn comes
	woken chan struct{}   // of the one that waits; nil if none does
}

// take returns when it is the caller's turn. It gives up the lock meanwhile.
func (t *turn) take(mu *sync.Mutex) {
	if !t.taken {
		t.taken = true
		return
	}
	mine := make(chan struct{})
	t.line = append(t.line, mine)
	mu.Unlock()
	<-mine
	mu.Lock()
}

// pass ends the caller's turn.
func (t *turn) pass() {
	if len(t.line) == 0 {
		t.taken, t.line = false, nil
		return
	}
	close(t.line[0]) // taken stays true: it goes from hand to hand
	t.line = t.line[1:]
}

// wait returns at the given instant, zero for never, or when woken. It gives up the lock meanwhile.
func (t *turn) wait(mu *sync.Mutex, until time.Time) {
	woken := make(chan struct{})
	t.woken = woken
	mu.Unlock()
	await(woken, until)
	mu.Lock()
	t.woken = nil
}

// wake ends the wait that is on, if one is.
func (t *turn) wake() {
	if t.woken != nil {
		close(t.woken)
		t.woken = nil
	}
}

func await(woken <-chan struct{}, until time.Time) {
	if until.IsZero() {
		<-woken
		return
	}
	select {
	case <-woken:
	case <-time.After(time.Until(until)):
	}
}
