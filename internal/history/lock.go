package history

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
)

// Acquire is an operation of Lock and of Semaphore: a hold begins.
type Acquire struct {
	Hold  int    // its number, different for each hold
	Name  string // for messages
	Token int64
	By    int // holds by the same number do not exclude each other; 0 excludes all others
	Wiped int // how often the servers had lost all data: tokens before and after are not compared

	Shared bool // it does not exclude other shared holds
	Beside bool // it has the position of an earlier hold by the same
	Passed bool // it may have the token of the hold before it

	Permits int   // of a semaphore
	Slots   []int // of a semaphore with slots
}

// String returns a description for messages.
func (a Acquire) String() string {
	kind := ""
	if a.Shared {
		kind = "shared "
	}
	if a.Permits > 0 {
		kind = fmt.Sprintf("%d permits ", a.Permits)
	}
	return fmt.Sprintf("%shold %s with token %d", kind, cmp.Or(a.Name, strconv.Itoa(a.Hold)), a.Token)
}

func (a Acquire) excludes(other Acquire) bool {
	return !(a.Shared && other.Shared) && (a.By == 0 || a.By != other.By)
}

// End is an operation of Lock and of Semaphore: a hold has ended.
type End struct{ Hold int }

// String returns a description for messages.
func (e End) String() string { return fmt.Sprintf("end of hold %d", e.Hold) }

// holders are the holds that have begun and not ended.
type holders []Acquire

// with returns the holders after one more has begun.
func (h holders) with(a Acquire) holders { return append(slices.Clip(h), a) }

// without returns the holders after one has ended.
func (h holders) without(e End) (holders, error) {
	i := slices.IndexFunc(h, func(a Acquire) bool { return a.Hold == e.Hold })
	if i < 0 {
		return nil, fmt.Errorf("hold %d has ended and did not begin", e.Hold)
	}
	return slices.Delete(slices.Clone(h), i, i+1), nil
}

// Lock is a model of a lock with exclusive and shared holds. Its operations are Acquire and End.
//
// No two holds that exclude each other are valid at a time. The token of an exclusive hold is larger
// than those of all holds before it that it excludes. That of a shared hold is larger than those of
// the exclusive holds before it.
type Lock struct {
	Exclusive int64 // the largest token of an exclusive hold
	Shared    int64 // of a shared one

	by    int // of the last exclusive hold
	wiped int
	held  holders
}

// Next implements State.
func (l Lock) Next(what any) (State, error) {
	switch op := what.(type) {
	case Acquire:
		return l.acquire(op)
	case End:
		var err error
		l.held, err = l.held.without(op)
		return l, err
	}
	return nil, fmt.Errorf("a lock has no operation %T", what)
}

func (l Lock) acquire(a Acquire) (State, error) {
	for _, other := range l.held {
		if a.excludes(other) {
			return nil, fmt.Errorf("two valid holds at a time: %v and %v", other, a)
		}
	}
	if a.Wiped != l.wiped {
		l.Exclusive, l.Shared, l.by, l.wiped = 0, 0, 0, a.Wiped
	}
	same := a.Passed || a.By != 0 && a.By == l.by
	if a.Token < l.Exclusive || a.Token == l.Exclusive && !same {
		return nil, fmt.Errorf("a token is not larger than %d, an earlier one: %v", l.Exclusive, a)
	}
	if !a.Shared && !a.Beside && a.Token <= l.Shared {
		return nil, fmt.Errorf("a token is not larger than %d of an earlier shared hold: %v", l.Shared, a)
	}
	if a.Shared {
		l.Shared = max(l.Shared, a.Token)
	} else {
		l.Exclusive, l.by = a.Token, a.By
	}
	l.held = l.held.with(a)
	return l, nil
}

// Limit is an operation of Semaphore: its limit is changed by the transaction Zxid.
type Limit struct {
	Zxid    int64
	Permits int
}

// Semaphore is a model of a semaphore. Its operations are Acquire, End and Limit.
//
// As of the transaction of each acquire, which is its token, there are no more permits than the limit,
// and no two have one slot. Transactions take effect in their order.
type Semaphore struct {
	Permits int // the limit
	Zxid    int64

	held holders
}

// Next implements State.
func (s Semaphore) Next(what any) (State, error) {
	switch op := what.(type) {
	case Acquire:
		return s.acquire(op)
	case End:
		var err error
		s.held, err = s.held.without(op)
		return s, err
	case Limit:
		if op.Zxid <= s.Zxid {
			return nil, fmt.Errorf("a limit is not set after transaction %d: %+v", s.Zxid, op)
		}
		s.Permits, s.Zxid = op.Permits, op.Zxid
		return s, nil
	}
	return nil, fmt.Errorf("a semaphore has no operation %T", what)
}

func (s Semaphore) acquire(a Acquire) (State, error) {
	if a.Token <= s.Zxid {
		return nil, fmt.Errorf("a token is not larger than %d, an earlier one: %v", s.Zxid, a)
	}
	taken := a.Permits
	for _, other := range s.held {
		taken += other.Permits
		if i := slices.IndexFunc(a.Slots, func(n int) bool { return slices.Contains(other.Slots, n) }); i >= 0 {
			return nil, fmt.Errorf("slot %d is of two holds: %v and %v", a.Slots[i], other, a)
		}
	}
	if taken > s.Permits {
		return nil, fmt.Errorf("%d valid permits at a time of %d: %v beside %v", taken, s.Permits, a, s.held)
	}
	s.Zxid, s.held = a.Token, s.held.with(a)
	return s, nil
}
