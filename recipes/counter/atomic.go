package counter

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"strconv"

	"github.com/docent-zk/docent/framework"
)

// Atomic is a number of 64 bits that processes share: eight bytes, big endian. A missing node and
// empty data are 0. It has no state of its own: all Atomic values for one path are the same number.
// It is safe for concurrent use. Curator: DistributedAtomicLong. For DistributedAtomicInteger use a
// Count with the seed 0.
type Atomic struct {
	cell *cell[int64] // nil in the zero value
}

// NewAtomic returns the number at path. It makes no request. It returns an error for a nil or unusable
// client, an invalid path, "/", and an invalid option.
func NewAtomic(c *framework.Client, path string, opts ...Option) (*Atomic, error) {
	cfg, lock, err := newConfig(c, path, opts)
	if err != nil {
		return nil, fmt.Errorf("new atomic: %w", err)
	}
	a := &cell[int64]{client: c, path: path, lock: lock, decode: decodeLong, encode: encodeLong, equal: same[int64]}
	if cfg.text {
		a.decode, a.encode = decodeText, encodeText
	}
	a.seed = a.encode(0)
	return &Atomic{a}, nil
}

func same[T comparable](a, b T) bool { return a == b }

func encodeLong(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

func decodeLong(data []byte) (int64, error) {
	switch len(data) {
	case 0:
		return 0, nil
	case 8:
		return int64(binary.BigEndian.Uint64(data)), nil
	}
	return 0, fmt.Errorf("it has %d bytes instead of 8", len(data))
}

func encodeText(n int64) []byte { return strconv.AppendInt(nil, n, 10) }

func decodeText(data []byte) (int64, error) {
	if len(data) == 0 {
		return 0, nil
	}
	n, err := strconv.ParseInt(string(data), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("it has %d bytes that are not decimal digits", len(data))
	}
	return n, nil
}

// Path returns the path given to NewAtomic, and "" for the zero value.
func (a *Atomic) Path() string {
	if a.cell == nil {
		return ""
	}
	return a.cell.path
}

// Get reads the number, with one request. It fails with ErrCorrupt, when ctx ends, and like
// framework.Client.Get. Curator: get.
func (a *Atomic) Get(ctx context.Context) (int64, error) {
	if err := a.cell.check(ctx, "get", "Atomic"); err != nil {
		return 0, err
	}
	now, err := a.cell.get(ctx)
	return now.Value, err
}

// Add adds delta, which may be negative, and returns the result. Subtract delta for the number
// before. Nothing is written if delta is 0, but a missing node is created. Add waits until it is
// applied, also while other clients write. It fails
//
//   - with ErrOverflow and ErrCorrupt; nothing was written then;
//   - when ctx ends;
//   - when the client's retry policy is exhausted: framework.ErrNotConnected and others;
//   - if an answer is missing, the session is lost, and others have written since;
//   - with framework.ErrClosed when the client is closed, and with refusals of the servers, such as
//     zk.ErrNoAuth.
//
// framework.OutcomeOf says whether it may have been applied. It is never applied twice. Curator: add,
// increment, decrement, subtract.
func (a *Atomic) Add(ctx context.Context, delta int64) (int64, error) {
	if err := a.cell.check(ctx, "add", "Atomic"); err != nil {
		return 0, err
	}
	var sum int64
	err := a.cell.update(ctx, "add", func(now int64) (int64, bool, error) {
		sum = now + delta
		if (sum > now) != (delta > 0) && delta != 0 {
			return 0, false, fmt.Errorf("%w: %d + %d", ErrOverflow, now, delta)
		}
		return sum, delta != 0, nil
	})
	if err != nil {
		return 0, err
	}
	return sum, nil
}

// CompareAndSet writes the number if it is old now, and reports whether it did. It fails like Add.
// A missing node counts as 0, and is created with 0 also if CompareAndSet then returns false. Curator:
// compareAndSet, which fails for a missing node. Curator's initialize is framework.Client.Create with
// the eight bytes, and false is zk.ErrNodeExists.
func (a *Atomic) CompareAndSet(ctx context.Context, old, number int64) (bool, error) {
	if err := a.cell.check(ctx, "compare and set", "Atomic"); err != nil {
		return false, err
	}
	var wrote bool
	err := a.cell.update(ctx, "compare and set", func(now int64) (int64, bool, error) {
		wrote = now == old
		return number, wrote, nil
	})
	return wrote && err == nil, err
}

// Set writes the number, whatever the data is. It fails like Add. Curator: trySet and forceSet.
func (a *Atomic) Set(ctx context.Context, number int64) error {
	if err := a.cell.check(ctx, "set", "Atomic"); err != nil {
		return err
	}
	return a.cell.set(ctx, number)
}

// Observe returns a sequence of the number: the number now, and a new one when it has changed. Of
// quick changes only the last may be there. A missing node is 0.
//
//	for number, err := range counter.Observe(ctx) {
//
// An error means that the number is not known any more. If no server can be reached, it comes when
// the session is lost and the client's retry policy is exhausted. After an error of the connection,
// and after ErrCorrupt, the sequence continues when the number is known again. It ends after
// framework.ErrClosed, and after refusals of the servers. When ctx ends it ends without an error. It
// costs one watch for any number of observers of one client, and a read for each change.
func (a *Atomic) Observe(ctx context.Context) iter.Seq2[int64, error] {
	return a.cell.observe(ctx, "Atomic")
}
