package memnet

import (
	"sync"
	"time"
)

// turn lets one Read at a time access the data; the others wait in a queue. Only the Read that has
// the turn waits for data, so an arrival wakes at most one goroutine. Its methods are called with
// the lock that guards it.
type turn struct {
	taken bool
	queue []chan struct{} // each closed when its turn comes
	woken chan struct{}   // wakes the waiting Read; nil if none waits
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

// wait returns at the given instant, zero for never, or when woken. It releases the lock meanwhile.
func (t *turn) wait(mu *sync.Mutex, until time.Time) {
	woken := make(chan struct{})
	t.woken = woken
	mu.Unlock()
	await(woken, until)
	mu.Lock()
	t.woken = nil
}

// wake wakes the waiting Read, if one waits.
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
