package main

import (
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/docent-zk/docent/fence"
)

// store keeps the record that the workers share. It stands for whatever a lock protects in real life: a database row, a file, a device.
//
// It does two things. It defends itself, by refusing what comes with an old token; any resource can do that, it takes one number
// to remember. And, because this is a demonstration of the lock, it looks for everything that cannot happen while the lock works:
// two workers at once, an update that overwrites another, a token that is not larger than the last. Such a finding is a fault.
type store struct {
	mu      sync.Mutex
	value   int             // the record
	newest  int64           // the largest token seen
	first   int64           // the first token seen
	turns   int             // how often somebody has entered
	inside  map[int64]guest // who is in the critical section, by token
	written map[int]int     // accepted writes by worker
	faults  []error
}

// guest is a worker that is inside.
type guest struct {
	worker int
	until  time.Time // how long its hold was good for when it entered
}

// visit is what a worker says to the store in each step.
type visit struct {
	Worker int
	Token  int64
	Value  int       // with a write
	Until  time.Time // how long its hold is good for from what it knows when it enters
}

// answer is what the store says.
type answer struct {
	Value   int    // the record
	Written int    // how many writes of this worker have been accepted
	Turn    int    // the number of the turn
	Refused string // why, if it was
}

// The faults. That a token is too old, fence.ErrStale, is none: a worker that was slow or paused for so long that its lock passed on gets
// it, and has to start over.
var (
	errOverlap    = errors.New("BROKEN EXCLUSION: two workers hold the lock at once")
	errLostUpdate = errors.New("BROKEN EXCLUSION: lost update")
	errOutside    = errors.New("BROKEN EXCLUSION: access by a worker that does not hold the lock")
	errTokenOrder = errors.New("BROKEN TOKEN: not larger than the last")
)

func newStore() *store {
	return &store{inside: map[int64]guest{}, written: map[int]int{}}
}

// The steps of a turn, in their order.
const (
	stepEnter = "enter" // I hold the lock now
	stepRead  = "read"
	stepWrite = "write"
	stepLeave = "leave" // I am about to give it back
)

// apply takes one step.
func (s *store) apply(step string, v visit) (answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	switch step {
	case stepEnter:
		err = s.enter(v)
	case stepRead:
		err = s.admit(v)
	case stepWrite:
		err = s.write(v)
	case stepLeave:
		delete(s.inside, v.Token)
	default:
		err = fmt.Errorf("no such step: %q", step)
	}
	if err != nil && !errors.Is(err, fence.ErrStale) {
		s.faults = append(s.faults, err)
	}
	return answer{Value: s.value, Written: s.written[v.Worker], Turn: s.turns}, err
}

// enter takes a note of the token. It counts from now on and not from the first write: what this worker is about to read must not be
// changed any more by those who came before.
//
// Others inside are a fault only while their holds are good. A worker that has heard nothing from the servers for so long that its hold
// has run out may not have found the time to leave.
func (s *store) enter(v visit) error {
	var err error
	for token, other := range s.inside {
		if time.Now().After(other.until) {
			delete(s.inside, token)
			continue
		}
		err = errors.Join(err, fmt.Errorf("%w: worker %d enters with token %d, worker %d is inside with token %d",
			errOverlap, v.Worker, v.Token, other.worker, token))
	}
	if v.Token <= s.newest {
		err = errors.Join(err, fmt.Errorf("%w: worker %d enters with token %d, the last was %d", errTokenOrder, v.Worker, v.Token, s.newest))
	}
	if s.turns++; s.turns == 1 {
		s.first = v.Token
	}
	s.newest = max(s.newest, v.Token)
	s.inside[v.Token] = guest{v.Worker, v.Until}
	return err
}

// admit is the check of the token.
func (s *store) admit(v visit) error {
	if v.Token < s.newest {
		return fmt.Errorf("%w: it is %d, and %d has been here", fence.ErrStale, v.Token, s.newest)
	}
	if s.inside[v.Token].worker != v.Worker {
		return fmt.Errorf("%w: worker %d with token %d", errOutside, v.Worker, v.Token)
	}
	return nil
}

func (s *store) write(v visit) error {
	if err := s.admit(v); err != nil {
		return err
	}
	if v.Value != s.value+1 {
		return fmt.Errorf("%w: worker %d (token %d) adds 1 to %d, but the record is %d", errLostUpdate, v.Worker, v.Token, v.Value-1, s.value)
	}
	s.value = v.Value
	s.written[v.Worker]++
	return nil
}

// crashed tells the store that a worker is dead and therefore not inside any more. Its token stays on record.
func (s *store) crashed(worker int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.inside, func(_ int64, g guest) bool { return g.worker == worker })
}

// totals is what the store knows at the end.
type totals struct {
	value, turns, writes int
	first, newest        int64 // tokens
}

// check tells the totals, and what is wrong with them, if anything is. Each worker must have written as often as wanted, except for the
// dead one, and no write may be missing from the record.
func (s *store) check(workers, increments, dead int) (totals, error) {
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
