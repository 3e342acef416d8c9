package main

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/docent-zk/docent/fence"
)

// store is where the effects go. In a real program, it is a database table that has the number of
// the tick as its key. The largest token is kept beside it, and is compared and written in the same
// transaction.
type store struct {
	mu      sync.Mutex
	fencing fence.Register
	runs    []request // the requests that had an effect: of tick 1, 2, ...
}

// request asks for the effect of a tick.
type request struct {
	Process int
	Token   int64
	Tick    int
}

func (q request) String() string { return fmt.Sprintf("process %d (token %d)", q.Process, q.Token) }

// answer is the store's answer.
type answer struct {
	By     request // the request that had the effect
	Before bool    // the tick had its effect before this request
}

const stepRun = "run"

// errLeftOut is the fault of a schedule: a tick was not run.
var errLeftOut = errors.New("BROKEN SCHEDULE: a tick was left out")

// put makes the effect of a tick, unless the tick has had it before.
func (s *store) put(q request) (a answer, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err = s.fencing.Do(q.Token, func() error {
		switch next := len(s.runs) + 1; {
		case q.Tick < 1:
			return fmt.Errorf("no such tick: %d", q.Tick)
		case q.Tick > next:
			return fmt.Errorf("%w: %s runs tick %d, the next is %d", errLeftOut, q, q.Tick, next)
		case q.Tick == next:
			s.runs = append(s.runs, q)
		default:
			a.Before = true
		}
		a.By = s.runs[q.Tick-1]
		return nil
	})
	return a, err
}

// all returns the requests that had an effect.
func (s *store) all() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.runs)
}
