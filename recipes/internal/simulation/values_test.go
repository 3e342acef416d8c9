package simulation_test

import (
	"context"
	"encoding/binary"
	"slices"
	"sync"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/history"
	"github.com/docent-zk/docent/recipes/counter"
)

// value is a number that workers set, as a Count and as a Value with the same data. No number is set twice.
type value struct {
	clock history.Recorder

	mu      sync.Mutex
	last    int32
	ops     []history.Op
	unknown []setting
	seen    map[int64]int64 // when a number was first known to be set
}

// setting is an operation of unknown outcome that sets a number.
type setting struct {
	history.Op
	number int64
}

// another returns a number that was not set yet. It returns 0 after some numbers.
func (v *value) another() int32 {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.last == 20 {
		return 0
	}
	v.last++
	return v.last
}

// register is what Count and Value have in common.
type register[T any] interface {
	GetVersioned(context.Context) (counter.Versioned[T], error)
	Set(context.Context, T) error
	CompareAndSet(context.Context, counter.Versioned[T], T) (counter.Versioned[T], bool, error)
}

func (w *worker) useCount(l *locks) error {
	same := func(n int32) int32 { return n }
	return useRegister(w, l.count, same, func(n int32) int64 { return int64(n) })
}

func (w *worker) useValue(l *locks) error {
	encode := func(n int32) []byte { return number(int(n)) }
	return useRegister(w, l.value, encode, decodeNumber)
}

func decodeNumber(data []byte) int64 { return int64(binary.BigEndian.Uint32(data)) }

// useRegister either sets the number, or reads it and then compares and sets it.
func useRegister[T any](w *worker, r register[T], encode func(int32) T, decode func(T) int64) error {
	ctx, cancel := w.patience()
	defer cancel()
	v, next := &w.value, w.value.another()
	if next != 0 && w.random.IntN(2) == 0 {
		call := v.clock.Call()
		return v.updated(call, history.Put{Value: int64(next)}, int64(next), r.Set(ctx, encode(next)))
	}
	call := v.clock.Call()
	old, err := r.GetVersioned(ctx)
	if err != nil {
		return err
	}
	read := decode(old.Value)
	if w.plan.followers == 0 { // otherwise it may be an older value
		v.returned(call, history.Get{Value: read}, read)
	}
	if next == 0 {
		return nil
	}
	call = v.clock.Call()
	now, wrote, err := r.CompareAndSet(ctx, old, encode(next))
	if err == nil && !wrote {
		if decode(now.Value) == read {
			w.errorf("%s: %d was not set, and the number is %d as before", w.id, next, read)
		}
		v.returned(call, history.Get{Value: decode(now.Value)}, decode(now.Value)) // it is not older than the call
		return nil
	}
	return v.updated(call, history.Swap{Old: read, New: int64(next)}, int64(next), err)
}

// updated records an update by its outcome.
func (v *value) updated(call int64, update any, number int64, err error) error {
	switch outcome := framework.OutcomeOf(err); {
	case err == nil, outcome == framework.Applied:
		seen := number
		if swap, is := update.(history.Swap); is {
			seen = swap.Old
		}
		v.returned(call, update, seen)
	case outcome == framework.Unknown:
		v.mu.Lock()
		defer v.mu.Unlock()
		v.unknown = append(v.unknown, setting{history.Op{Call: call, What: update}, number})
		return nil
	}
	return err
}

// returned records an operation, and that a number was set before it returned.
func (v *value) returned(call int64, what any, seen int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := v.clock.Call()
	v.ops = append(v.ops, history.Op{Call: call, Return: now, What: what})
	v.see(seen, now)
}

// see notes that a number was set by a moment.
func (v *value) see(number, by int64) {
	if v.seen == nil {
		v.seen = map[int64]int64{}
	}
	if first, known := v.seen[number]; !known || by < first {
		v.seen[number] = by
	}
}

// check checks the history.
func (v *value) check(run *simulation) {
	last := int64(0)
	if data := run.counterData(valuePath); data != nil {
		last = decodeNumber(data)
	}
	v.returned(v.clock.Call(), history.Get{Value: last}, last)
	for v.decide() {
	}
	if err := history.Check(history.Counter{}, v.ops); err != nil {
		run.errorf("the history of the shared value: %v", err)
	}
}

// decide records one of the operations of unknown outcome whose number was seen: it had its effect before, and
// a Swap saw another number. It reports false if there is none. Nothing depends on those that are left.
func (v *value) decide() bool {
	i := slices.IndexFunc(v.unknown, func(s setting) bool { return v.seen[s.number] > 0 })
	if i < 0 {
		return false
	}
	s := v.unknown[i]
	s.Return = v.seen[s.number]
	if swap, is := s.What.(history.Swap); is {
		v.see(swap.Old, s.Return)
	}
	v.ops, v.unknown = append(v.ops, s.Op), slices.Delete(v.unknown, i, i+1)
	return true
}
