package simulation_test

import (
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/counter"
)

// numbers has the numbers that sequences have handed out.
type numbers struct {
	mu     sync.Mutex
	owners map[int64]string // by the number
	last   map[*counter.Sequence]int64
	gaps   int64 // how many numbers may be missing
}

// next takes the next number of the client's sequence, or of the counter below it.
func (w *worker) next(l *locks) error {
	ctx, cancel := w.patience()
	defer cancel()
	if w.random.IntN(4) == 0 {
		n, err := l.below.Add(ctx, 1)
		return w.numbers.take(w, n, 1, err)
	}
	before := w.numbers.lastOf(l.sequence, l.block)
	n, err := l.sequence.Next(ctx)
	if err == nil {
		w.numbers.checkOrder(w, l.sequence, before, n)
	}
	return w.numbers.take(w, n, l.block, err)
}

// lastOf returns the largest number that a sequence has returned. The rest of its last block is lost
// in the end.
func (s *numbers) lastOf(sequence *counter.Sequence, block int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		s.last = map[*counter.Sequence]int64{}
	}
	last, used := s.last[sequence]
	if !used {
		s.last[sequence] = 0
		s.gaps += block - 1
	}
	return last
}

// checkOrder checks that a number is larger than those that were returned before the call.
func (s *numbers) checkOrder(w *worker, sequence *counter.Sequence, before, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n <= before {
		w.errorf("%s: the sequence returns %d after %d", w.id, n, before)
	}
	s.last[sequence] = max(s.last[sequence], n)
}

// take records the result of a call, a number that no other call may return. A call that fails may
// have taken a block. take returns its error, unless the error is that the outcome is unknown.
func (s *numbers) take(w *worker, n, block int64, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	outcome := framework.OutcomeOf(err)
	switch {
	case err != nil && outcome == framework.NotApplied:
		return err
	case err != nil:
		s.gaps += block
		if outcome == framework.Unknown {
			return nil
		}
		return err
	}
	if s.owners == nil {
		s.owners = map[int64]string{}
	}
	if other, taken := s.owners[n]; taken {
		w.errorf("%s: %d was returned to %s", w.id, n, other)
	}
	s.owners[n] = w.id
	return nil
}

// check compares the numbers with the counter. It is not below them, and no block is missing that no
// call has lost.
func (s *numbers) check(run *simulation) {
	end, taken := run.numberAt(sequencePath), int64(len(s.owners))
	for n, owner := range s.owners {
		if n < 1 || n > end {
			run.errorf("%s has the number %d, and the counter has %d", owner, n, end)
		}
	}
	if end > taken+s.gaps {
		run.errorf("the counter has %d after %d numbers and at most %d that are lost", end, taken, s.gaps)
	}
}

// counterData returns the data that a counter has in the end, or nil, and checks that it has left no markers.
func (s *simulation) counterData(path string) []byte {
	if !s.srv.Exists(path) {
		return nil
	}
	if left := must(s.srv.Children(path)); len(left) > 0 {
		s.errorf("below the counter %s are left: %v", path, left)
	}
	return must(s.srv.Get(path))
}

// numberAt returns the number that a counter has in the end.
func (s *simulation) numberAt(path string) int64 {
	data := s.counterData(path)
	if len(data) == 0 {
		return 0
	}
	if len(data) != 8 {
		panic(fmt.Sprintf("the counter %s has %q", path, data))
	}
	return int64(binary.BigEndian.Uint64(data))
}
