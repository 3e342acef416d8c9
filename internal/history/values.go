package history

import (
	"fmt"
	"slices"
)

// Write is an operation of Register.
type Write struct {
	Token   int64 // 0 is compared with nothing
	Zxid    int64 // of the transaction that wrote; 0 if there is none
	Value   string
	Refused bool // because of the token
}

// Read is an operation of Register, with its result.
type Read struct {
	Token int64 // 0 is compared with nothing
	Value string
}

// Register is a model of a value that refuses old tokens. Its operations are Write and Read.
type Register struct {
	Token int64 // the largest one
	Zxid  int64 // of the last write
	Value string
}

// Next implements State.
func (r Register) Next(what any) (State, error) {
	switch op := what.(type) {
	case Write:
		return r.write(op)
	case Read:
		return r.read(op)
	}
	return nil, fmt.Errorf("a register has no operation %T", what)
}

func (r Register) read(op Read) (State, error) {
	switch {
	case op.Token != 0 && op.Token < r.Token:
		return nil, fmt.Errorf("a read was accepted after token %d: %+v", r.Token, op)
	case op.Value != r.Value:
		return nil, fmt.Errorf("%q was read from a register with %q", op.Value, r.Value)
	}
	r.Token = max(op.Token, r.Token)
	return r, nil
}

func (r Register) write(w Write) (State, error) {
	old := w.Token != 0 && w.Token < r.Token
	switch {
	case w.Refused && !old:
		return nil, fmt.Errorf("a write was refused after token %d: %+v", r.Token, w)
	case w.Refused:
		return r, nil
	case old:
		return nil, fmt.Errorf("a write was accepted after token %d: %+v", r.Token, w)
	case w.Zxid != 0 && w.Zxid <= r.Zxid:
		return nil, fmt.Errorf("a write was accepted after one in transaction %#x: %+v", r.Zxid, w)
	}
	return Register{Token: max(w.Token, r.Token), Zxid: max(w.Zxid, r.Zxid), Value: w.Value}, nil
}

// Add is an operation of Counter.
type Add struct {
	Delta int64
	Sum   int64 // the result, if Known
	Known bool
}

// Swap is an operation of Counter, which has compared and set it.
type Swap struct{ Old, New int64 }

// Get is an operation of Counter, with its result.
type Get struct{ Value int64 }

// Put is an operation of Counter, which has set it.
type Put struct{ Value int64 }

// Counter is a model of a number. Its operations are Add, Swap, Put and Get.
type Counter struct{ Value int64 }

// Next implements State.
func (c Counter) Next(what any) (State, error) {
	switch op := what.(type) {
	case Add:
		sum := c.Value + op.Delta
		if op.Known && op.Sum != sum {
			return nil, fmt.Errorf("%#x and %#x are not %#x", c.Value, op.Delta, op.Sum)
		}
		return Counter{sum}, nil
	case Swap:
		if op.Old != c.Value {
			return nil, fmt.Errorf("%#x became %#x, and was %#x", op.Old, op.New, c.Value)
		}
		return Counter{op.New}, nil
	case Put:
		return Counter(op), nil
	case Get:
		if op.Value != c.Value {
			return nil, fmt.Errorf("%#x was read from a counter with %#x", op.Value, c.Value)
		}
		return c, nil
	}
	return nil, fmt.Errorf("a counter has no operation %T", what)
}

// Insert is an operation of Set: it has added an element.
type Insert struct{ Element string }

// Elements is an operation of Set: it has read all elements, in any order.
type Elements struct{ All []string }

// Set is a model of a set. Its operations are Insert and Elements.
type Set struct{ all []string }

// Next implements State.
func (s Set) Next(what any) (State, error) {
	switch op := what.(type) {
	case Insert:
		all := append(slices.Clone(s.all), op.Element)
		slices.Sort(all)
		return Set{slices.Compact(all)}, nil
	case Elements:
		if got := slices.Sorted(slices.Values(op.All)); !slices.Equal(got, s.all) {
			return nil, fmt.Errorf("%v was read from a set of %v", got, s.all)
		}
		return s, nil
	}
	return nil, fmt.Errorf("a set has no operation %T", what)
}
