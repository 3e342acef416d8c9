package main

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/docent-zk/docent/fence"
)

// store is where the effects go. In earnest it is a database: a table with the number of the tick as its key, and the largest token beside it,
// compared and written in the same transaction.
type store struct {
	mu      sync.Mutex
	fencing fence.Register
	runs    []visit // those that had an effect: tick 1, 2, ...
}

// visit is the request of a process to do what is to be done for a tick.
type visit struct {
	Process int
	Token   int64
	Tick    int
}

func (v visit) String() string { return fmt.Sprintf("process %d (token %d)", v.Process, v.Token) }

// answer is what the store says.
type answer struct {
	By     visit // whose effect it is
	Before bool  // it was there before
}

const stepRun = "run"

// errLeftOut is what exactly once is not.
var errLeftOut = errors.New("BROKEN SCHEDULE: a tick was left out")

// put has the effect, unless it was had before.
func (s *store) put(v visit) (a answer, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err = s.fencing.Do(v.Token, func() error {
		switch next := len(s.runs) + 1; {
		case v.Tick < 1:
			return fmt.Errorf("no such tick: %d", v.Tick)
		case v.Tick > next:
			return fmt.Errorf("%w: %s runs tick %d, the next is %d", errLeftOut, v, v.Tick, next)
		case v.Tick == next:
			s.runs = append(s.runs, v)
		default:
			a.Before = true
		}
		a.By = s.runs[v.Tick-1]
		return nil
	})
	return a, err
}

// all are the effects.
func (s *store) all() []visit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.runs)
}
