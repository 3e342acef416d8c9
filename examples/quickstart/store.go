package main

import (
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/docent-zk/docent/fence"
)

// store keeps the record that the workers share. It takes the place of what a lock protects in a
// real program: a database row, a file, a device.
//
// The store refuses requests with an old token. Any resource that can remember one number can do
// that. The store also detects what cannot happen while the lock works, because this is a
// demonstration: two workers at once, an update that overwrites another, a token that is not larger
// than the last. Each of these is a fault.
type store struct {
	mu      sync.Mutex
	value   int              // the record
	newest  int64            // the largest token seen
	first   int64            // the first token seen
	turns   int              // how often a worker has entered
	inside  map[int64]holder // the workers in the critical section, by token
	written map[int]int      // accepted writes by worker
	faults  []error
}

// holder is a worker in the critical section.
type holder struct {
	worker int
	until  time.Time // the deadline of its hold when it entered
}

// request is what a worker sends to the store in each step.
type request struct {
	Worker int
	Token  int64
	Value  int       // of a write
	Until  time.Time // the deadline of the hold, as far as the worker knows when it enters
}

// answer is the store's answer.
type answer struct {
	Value   int // the record
	Written int // how many writes of this worker the store has accepted
	Turn    int // the number of the turn
}

// The faults. An old token, fence.ErrStale, is not a fault. A worker gets it if it was slow or
// paused for so long that it lost the lock, and starts over.
var (
	errOverlap    = errors.New("BROKEN EXCLUSION: two workers hold the lock at once")
	errLostUpdate = errors.New("BROKEN EXCLUSION: lost update")
	errOutside    = errors.New("BROKEN EXCLUSION: access by a worker that does not hold the lock")
	errTokenOrder = errors.New("BROKEN TOKEN: not larger than the last")
)

func newStore() *store {
	return &store{inside: map[int64]holder{}, written: map[int]int{}}
}

// The steps of a turn, in their order.
const (
	stepEnter = "enter" // the worker holds the lock
	stepRead  = "read"
	stepWrite = "write"
	stepLeave = "leave" // the worker is about to release the lock
)

// apply takes one step.
func (s *store) apply(step string, q request) (answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	switch step {
	case stepEnter:
		err = s.enter(q)
	case stepRead:
		err = s.check(q)
	case stepWrite:
		err = s.write(q)
	case stepLeave:
		delete(s.inside, q.Token)
	default:
		err = fmt.Errorf("no such step: %q", step)
	}
	if err != nil && !errors.Is(err, fence.ErrStale) {
		s.faults = append(s.faults, err)
	}
	return answer{Value: s.value, Written: s.written[q.Worker], Turn: s.turns}, err
}

// enter records the token. Smaller tokens are refused from now on, and not only from the first
// write on: no earlier holder may change what this worker is about to read.
//
// Another worker inside is a fault only before the deadline of its hold. After the deadline, that
// worker may not have had the time to leave.
func (s *store) enter(q request) error {
	var err error
	for token, other := range s.inside {
		if time.Now().After(other.until) {
			delete(s.inside, token)
			continue
		}
		err = errors.Join(err, fmt.Errorf("%w: worker %d enters with token %d, worker %d is inside with token %d",
			errOverlap, q.Worker, q.Token, other.worker, token))
	}
	if q.Token <= s.newest {
		err = errors.Join(err, fmt.Errorf("%w: worker %d enters with token %d, the last was %d",
			errTokenOrder, q.Worker, q.Token, s.newest))
	}
	if s.turns++; s.turns == 1 {
		s.first = q.Token
	}
	s.newest = max(s.newest, q.Token)
	s.inside[q.Token] = holder{q.Worker, q.Until}
	return err
}

// check returns an error if the token is not that of the current holder.
func (s *store) check(q request) error {
	if q.Token < s.newest {
		return fmt.Errorf("%w: it is %d, and %d has been here", fence.ErrStale, q.Token, s.newest)
	}
	if s.inside[q.Token].worker != q.Worker {
		return fmt.Errorf("%w: worker %d with token %d", errOutside, q.Worker, q.Token)
	}
	return nil
}

func (s *store) write(q request) error {
	if err := s.check(q); err != nil {
		return err
	}
	if q.Value != s.value+1 {
		return fmt.Errorf("%w: worker %d (token %d) adds 1 to %d, but the record is %d",
			errLostUpdate, q.Worker, q.Token, q.Value-1, s.value)
	}
	s.value = q.Value
	s.written[q.Worker]++
	return nil
}

// crashed removes a dead worker from the critical section. Its token still counts.
func (s *store) crashed(worker int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.inside, func(_ int64, h holder) bool { return h.worker == worker })
}

// totals are the numbers of a whole run.
type totals struct {
	value, turns, writes int
	first, newest        int64 // tokens
}

// conclude returns the totals, and all faults. Each worker except the dead one must have written as
// often as wanted, and no write may be missing from the record.
func (s *store) conclude(workers, increments, dead int) (totals, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := totals{value: s.value, turns: s.turns, first: s.first, newest: s.newest}
	err := errors.Join(s.faults...)
	for worker := 1; worker <= workers; worker++ {
		n := s.written[worker]
		t.writes += n
		if n != increments && worker != dead {
			err = errors.Join(err, fmt.Errorf("worker %d wrote %d times, not %d", worker, n, increments))
		}
	}
	if t.value != t.writes {
		err = errors.Join(err, fmt.Errorf("%w: the record is %d after %d writes", errLostUpdate, t.value, t.writes))
	}
	return t, err
}
