package counter

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/recipes/internal/check"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/retry"
)

// Versioned is a value with the version of the node that holds it. The version is that of one write
// to one node: a node that is deleted and created again has other versions. CompareAndSet takes it.
// The version of the zero Versioned is that of no node. Curator: VersionedValue.
type Versioned[T any] struct {
	Value   T
	version version
}

// version is one state of one node. Numbers wrap around after 2^31 writes, so only equality counts.
type version struct {
	czxid  int64
	number int32
}

// reading is a node as it was read or written.
type reading struct {
	data []byte
	version
}

// cell is a node that holds a T.
type cell[T any] struct {
	client *framework.Client
	path   string
	lock   *mutex.Mutex
	seed   []byte // data of a node that was missing
	seeded bool   // a read creates a missing node, so that the first seed counts
	decode func(data []byte) (T, error)
	encode func(T) []byte
	equal  func(a, b T) bool
}

// check returns an error for a call that cannot succeed. c may be nil.
func (c *cell[T]) check(ctx context.Context, op, kind string) error {
	err := check.Call(ctx, "counter", kind, c != nil)
	switch {
	case err == nil:
		return nil
	case c == nil:
		return &framework.Error{Op: op, Outcome: framework.NotApplied, Err: err}
	}
	return c.failed(op, err)
}

// failed returns the error of an operation that has changed nothing.
func (c *cell[T]) failed(op string, err error) error {
	return &framework.Error{Op: op, Path: c.path, Outcome: framework.NotApplied, Err: err}
}

// now returns the value that data holds.
func (c *cell[T]) now(data []byte) (T, error) {
	value, err := c.decode(data)
	if err != nil {
		return value, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return value, nil
}

// get reads the value.
func (c *cell[T]) get(ctx context.Context) (Versioned[T], error) {
	var none Versioned[T]
	r, err := c.read(ctx)
	if err != nil {
		return none, c.failed("get", ctxerr.With(ctx, err))
	}
	value, err := c.now(r.data)
	if err != nil {
		return none, c.failed("get", err)
	}
	return Versioned[T]{value, r.version}, nil
}

// read reads the node. A missing node has the seed as its data, and no version, unless it is
// created.
func (c *cell[T]) read(ctx context.Context) (reading, error) {
	for {
		data, stat, err := c.client.Get(ctx, c.path)
		switch {
		case err == nil:
			return readingOf(data, stat), nil
		case !ctxerr.Answered(ctx, err, zk.ErrNoNode):
			return reading{}, err
		case !c.seeded:
			return reading{data: c.seed}, nil
		}
		if err := createNode(ctx, c.client, c.path, c.seed); err != nil {
			return reading{}, err
		}
	}
}

func readingOf(data []byte, stat *zk.Stat) reading {
	return reading{data, version{stat.Czxid, stat.Version}}
}

// createNode creates the node if it does not exist. It does not matter which client creates it, so it
// is repeated after an unknown outcome, by the client's retry policy.
func createNode(ctx context.Context, c *framework.Client, path string, seed []byte) error {
	return retry.Do(ctx, bridge.Of(c).RetryPolicy(), framework.IsTransient, func(ctx context.Context) error {
		_, err := c.Create(ctx, path, seed, framework.Parents())
		if ctxerr.Answered(ctx, err, zk.ErrNodeExists) {
			return nil
		}
		return err
	})
}

// update makes an update: a write of what change returns for the current value. If change returns
// false or an error, nothing is written. change is called by other goroutines too, perhaps several
// times; the last call counts.
func (c *cell[T]) update(ctx context.Context, op string, change func(now T) (next T, write bool, err error)) error {
	var failure error
	u := &update{op: op, lock: c.lock, seed: c.seed}
	u.apply = func(r reading) (next []byte, write bool) {
		failure = nil
		now, err := c.now(r.data)
		if err != nil {
			failure = err
			return nil, false
		}
		value, write, err := change(now)
		if err != nil || !write {
			failure = err
			return nil, false
		}
		return c.encode(value), true
	}
	if err := c.do(ctx, u); err != nil {
		return err
	}
	if failure != nil {
		return c.failed(op, failure)
	}
	return nil
}

// set writes the value, whatever the data is.
func (c *cell[T]) set(ctx context.Context, value T) error {
	data := c.encode(value)
	return c.do(ctx, &update{op: "set", lock: c.lock, seed: c.seed, apply: func(reading) ([]byte, bool) {
		return data, true
	}})
}

// compareVersionAndSet writes the value if the node has the version of old.
func (c *cell[T]) compareVersionAndSet(ctx context.Context, old Versioned[T], value T) (Versioned[T], bool, error) {
	var none Versioned[T]
	data := c.encode(value)
	var now reading
	wrote := false
	u := &update{op: "compare and set", lock: c.lock, seed: c.seed, alone: true}
	u.apply = func(r reading) ([]byte, bool) {
		now, wrote = r, r.version == old.version
		return data, wrote
	}
	if err := c.do(ctx, u); err != nil {
		return none, false, err
	}
	if wrote {
		return Versioned[T]{value, u.after}, true, nil
	}
	current, err := c.now(now.data)
	if err != nil {
		return none, false, c.failed(u.op, err)
	}
	return Versioned[T]{current, now.version}, false, nil
}

// fits returns an error if a transaction cannot write the data.
func (c *cell[T]) fits(data []byte) error {
	_, err := bridge.Of(c.client).Room(framework.SetOp(c.path, nil, -1), framework.SetOp(c.path, data, 0),
		framework.SetOp(c.path+"/"+longestMarker, number(0), -1))
	return err
}

// do makes an update by the client's writer of the node.
func (c *cell[T]) do(ctx context.Context, u *update) error {
	w := join(c.client, c.path)
	defer w.leave()
	if outcome, err := w.do(ctx, u); err != nil {
		return &framework.Error{Op: u.op, Path: c.path, Outcome: outcome, Err: err}
	}
	return nil
}

// The pauses of observe after errors.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = time.Second
)

// observe returns the values that the node has had.
func (c *cell[T]) observe(ctx context.Context, kind string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		if ctx != nil && ctx.Err() != nil {
			return
		}
		if err := c.check(ctx, "observe", kind); err != nil {
			yield(none, err)
			return
		}
		if err := c.follow(ctx, yield); err != nil && ctx.Err() == nil {
			yield(none, err)
		}
	}
}

// follow yields the values. It returns nil when the loop over them has ended, and an error that does
// not pass.
func (c *cell[T]) follow(ctx context.Context, yield func(T, error) bool) error {
	var none, last T
	known, wait, create := false, firstPause, c.seeded
	for ctx.Err() == nil {
		r, watch, err := c.readWatched(ctx, create)
		if err != nil {
			err = c.failed("observe", err)
			if !framework.IsTransient(err) {
				return err
			}
			if ctx.Err() != nil || !yield(none, err) {
				return nil
			}
			known = false
			pause(ctx, wait)
			wait = min(2*wait, lastPause)
			continue
		}
		wait, create = firstPause, false
		switch value, err := c.now(r.data); {
		case err != nil:
			known = false
			if !yield(none, c.failed("observe", err)) {
				return nil
			}
		case !known || !c.equal(value, last):
			known = true
			last, _ = c.now(r.data) // a copy: value is the program's then
			if !yield(value, nil) {
				return nil
			}
		}
		select {
		case <-watch.Fired():
		case <-ctx.Done():
		}
	}
	return nil
}

// readWatched reads the node with a watch. With create it creates a missing node.
func (c *cell[T]) readWatched(ctx context.Context, create bool) (reading, *framework.Watch, error) {
	for {
		data, stat, watch, err := c.client.GetW(ctx, c.path)
		if !ctxerr.Answered(ctx, err, zk.ErrNoNode) {
			if err != nil {
				return reading{}, nil, err
			}
			return readingOf(data, stat), watch, nil
		}
		if create {
			if err := createNode(ctx, c.client, c.path, c.seed); err != nil {
				return reading{}, nil, err
			}
			continue
		}
		stat, watch, err = c.client.ExistsW(ctx, c.path)
		if err != nil || stat == nil {
			return reading{data: slices.Clone(c.seed)}, watch, err
		} // otherwise it has just been created
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
