package counter

import (
	"context"
	"errors"
	"fmt"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/internal/check"
)

// Sequence hands out numbers that no other Sequence or Add of the same Atomic gets. It takes a block
// of them from the Atomic with one Add, and hands them out without further requests. The numbers of
// one Sequence grow. What a process has left of its block when it ends is never handed out, and
// neither is a block whose Add failed with an unknown outcome: there are gaps. Other processes may have
// other sizes of blocks. A Sequence is safe for concurrent use. Curator: CachedAtomicLong,
// CachedAtomicInteger.
type Sequence struct {
	counter *Atomic
	block   int64
	turn    chan struct{} // of capacity 1: full while a goroutine uses the fields below

	last int64 // the number that was handed out last
	left int64 // how many are left in the block
}

// NewSequence returns a Sequence that takes blocks of the given size, which is positive. The first
// number is the one after that of counter. NewSequence makes no request.
func NewSequence(counter *Atomic, block int64) (*Sequence, error) {
	switch {
	case counter == nil:
		return nil, errors.New("new sequence: the counter is nil")
	case counter.cell == nil:
		return nil, fmt.Errorf("new sequence: %w: counter.Atomic", framework.ErrZeroValue)
	case block < 1:
		return nil, fmt.Errorf("new sequence: the block of %d numbers is not positive", block)
	}
	return &Sequence{counter: counter, block: block, turn: make(chan struct{}, 1)}, nil
}

// Next returns the next number. It makes a request when a block is used up, and fails then like
// Atomic.Add. After any failure it can be called again: no number is handed out twice. Curator: next.
func (s *Sequence) Next(ctx context.Context) (int64, error) {
	if err := check.Call(ctx, "counter", "Sequence", s.counter != nil); err != nil {
		return 0, &framework.Error{Op: "next", Outcome: framework.NotApplied, Err: err}
	}
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return 0, s.counter.cell.check(ctx, "next", "Sequence")
	}
	defer func() { <-s.turn }()
	if s.left == 0 {
		end, err := s.counter.Add(ctx, s.block)
		if err != nil {
			return 0, err
		}
		s.last, s.left = end-s.block, s.block
	}
	s.last++
	s.left--
	return s.last, nil
}
