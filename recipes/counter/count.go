package counter

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"

	"github.com/docent-zk/docent/framework"
)

// Count is a number of 32 bits that processes share: four bytes, big endian. The data of a missing
// node is the seed, and so is empty data. It has no state of its own: all Count values for one path
// are the same number. It is safe for concurrent use. Curator: SharedCount, and with the seed 0
// DistributedAtomicInteger. kazoo: Counter with support_curator=True.
type Count struct {
	cell *cell[int32] // nil in the zero value
}

// NewCount returns the number at path. The first call of any method creates a missing node with the
// seed, and Observe does too. If another client has created the node, the seed is ignored. NewCount
// makes no request. It returns an error for a nil or unusable client, an invalid path, "/", and an
// invalid option.
func NewCount(c *framework.Client, path string, seed int32, opts ...Option) (*Count, error) {
	cfg, lock, err := newConfig(c, path, opts)
	if err == nil && cfg.text {
		err = errNoText
	}
	if err != nil {
		return nil, fmt.Errorf("new count: %w", err)
	}
	decode := func(data []byte) (int32, error) {
		if len(data) == 0 {
			return seed, nil
		}
		return decodeCount(data)
	}
	return &Count{&cell[int32]{client: c, path: path, lock: lock, seed: encodeCount(seed), seeded: true,
		decode: decode, encode: encodeCount, equal: same[int32]}}, nil
}

var errNoText = errors.New("WithText: only an Atomic can be text")

func encodeCount(n int32) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }

func decodeCount(data []byte) (int32, error) {
	if len(data) != 4 {
		return 0, fmt.Errorf("it has %d bytes instead of 4", len(data))
	}
	return int32(binary.BigEndian.Uint32(data)), nil
}

// Path returns the path given to NewCount, and "" for the zero value.
func (c *Count) Path() string {
	if c.cell == nil {
		return ""
	}
	return c.cell.path
}

// Get reads the number, with one request. It fails with ErrCorrupt, when ctx ends, and like
// framework.Client.Get and Create. Curator: getCount, which returns a copy in memory.
func (c *Count) Get(ctx context.Context) (int32, error) {
	now, err := c.GetVersioned(ctx)
	return now.Value, err
}

// GetVersioned is Get that also returns the version, for CompareAndSet. Curator: getVersionedValue.
func (c *Count) GetVersioned(ctx context.Context) (Versioned[int32], error) {
	if err := c.cell.check(ctx, "get", "Count"); err != nil {
		return Versioned[int32]{}, err
	}
	return c.cell.get(ctx)
}

// Add adds delta and returns the result. It fails like Atomic.Add.
func (c *Count) Add(ctx context.Context, delta int32) (int32, error) {
	if err := c.cell.check(ctx, "add", "Count"); err != nil {
		return 0, err
	}
	var sum int64
	err := c.cell.update(ctx, "add", func(now int32) (int32, bool, error) {
		sum = int64(now) + int64(delta)
		if sum < math.MinInt32 || sum > math.MaxInt32 {
			return 0, false, fmt.Errorf("%w: %d + %d", ErrOverflow, now, delta)
		}
		return int32(sum), delta != 0, nil
	})
	if err != nil {
		return 0, err
	}
	return int32(sum), nil
}

// CompareAndSet writes the number if the node still has the version of old, and reports whether it
// did. It returns what the node has then: after true the number that was written, after false that of
// another client. It fails like Atomic.Add. Curator: trySetCount.
func (c *Count) CompareAndSet(ctx context.Context, old Versioned[int32], number int32) (Versioned[int32], bool, error) {
	if err := c.cell.check(ctx, "compare and set", "Count"); err != nil {
		return Versioned[int32]{}, false, err
	}
	return c.cell.compareVersionAndSet(ctx, old, number)
}

// Set writes the number, whatever the data is. It fails like Atomic.Add. Curator: setCount.
func (c *Count) Set(ctx context.Context, number int32) error {
	if err := c.cell.check(ctx, "set", "Count"); err != nil {
		return err
	}
	return c.cell.set(ctx, number)
}

// Observe returns a sequence of the number: the number now, and a new one when it has changed. It is
// as Atomic.Observe, except that a missing node is created at the beginning. If it is deleted later,
// that counts as the seed. Curator: addListener, whose listeners are also called without a change.
func (c *Count) Observe(ctx context.Context) iter.Seq2[int32, error] {
	return c.cell.observe(ctx, "Count")
}
