package counter

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/docent-zk/docent/framework"
)

// Value is data that processes share. It has no state of its own: all Value values for one path are
// the same data. It is safe for concurrent use. Curator: SharedValue, DistributedAtomicValue.
type Value struct {
	cell *cell[[]byte] // nil in the zero value
}

// NewValue returns the data at path. The first call of any method creates a missing node with the
// seed, and Observe does too. If another client has created the node, the seed is ignored. NewValue
// makes no request. It returns an error for a nil or unusable client, an invalid path, "/", and an
// invalid option.
func NewValue(c *framework.Client, path string, seed []byte, opts ...Option) (*Value, error) {
	cfg, lock, err := newConfig(c, path, opts)
	if err == nil && cfg.text {
		err = errNoText
	}
	if err != nil {
		return nil, fmt.Errorf("new value: %w", err)
	}
	copied := func(data []byte) []byte { return slices.Clone(data) }
	decode := func(data []byte) ([]byte, error) { return copied(data), nil }
	return &Value{&cell[[]byte]{client: c, path: path, lock: lock, seed: copied(seed), seeded: true,
		decode: decode, encode: copied, equal: bytes.Equal}}, nil
}

// Path returns the path given to NewValue, and "" for the zero value.
func (v *Value) Path() string {
	if v.cell == nil {
		return ""
	}
	return v.cell.path
}

// Get reads the data, with one request. It fails when ctx ends, and like framework.Client.Get and
// Create. Curator: getValue, which returns a copy in memory.
func (v *Value) Get(ctx context.Context) ([]byte, error) {
	now, err := v.GetVersioned(ctx)
	return now.Value, err
}

// GetVersioned is Get that also returns the version, for CompareAndSet. Curator: getVersionedValue.
func (v *Value) GetVersioned(ctx context.Context) (Versioned[[]byte], error) {
	if err := v.cell.check(ctx, "get", "Value"); err != nil {
		return Versioned[[]byte]{}, err
	}
	return v.cell.get(ctx)
}

// Set writes the data. It fails like Atomic.Add, and with framework.ErrTooLarge. Curator: setValue.
func (v *Value) Set(ctx context.Context, data []byte) error {
	if err := v.check(ctx, "set", data); err != nil {
		return err
	}
	return v.cell.set(ctx, data)
}

// CompareAndSet writes the data if the node still has the version of old, and reports whether it did.
// It returns what the node has then: after true the data that was written, after false that of another
// client. It fails like Set. Curator: trySetValue.
func (v *Value) CompareAndSet(
	ctx context.Context, old Versioned[[]byte], data []byte,
) (Versioned[[]byte], bool, error) {
	if err := v.check(ctx, "compare and set", data); err != nil {
		return Versioned[[]byte]{}, false, err
	}
	return v.cell.compareVersionAndSet(ctx, old, data)
}

// check also returns an error if a transaction cannot hold the data. Updates of others may share the
// transaction, so it must not be the servers that refuse it.
func (v *Value) check(ctx context.Context, op string, data []byte) error {
	if err := v.cell.check(ctx, op, "Value"); err != nil {
		return err
	}
	if err := v.cell.fits(data); err != nil {
		return v.cell.failed(op, err)
	}
	return nil
}

// Observe returns a sequence of the data: the data now, and new data when it has changed. It is as
// Atomic.Observe, except that a missing node is created at the beginning. If it is deleted later, that
// counts as the seed. Curator: addListener, whose listeners are also called without a change.
func (v *Value) Observe(ctx context.Context) iter.Seq2[[]byte, error] {
	return v.cell.observe(ctx, "Value")
}
