package main

import (
	"context"
	"fmt"
	"math"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/counter"
)

// number is a number in a node.
type number interface {
	Get(ctx context.Context) (int64, error)
	Add(ctx context.Context, delta int64) (int64, error)
	CompareAndSet(ctx context.Context, old, number int64) (bool, error)
}

// narrow is a counter.Count as a number. It refuses numbers of more than 32 bits.
type narrow struct{ *counter.Count }

func (n narrow) Get(ctx context.Context) (int64, error) {
	now, err := n.Count.Get(ctx)
	return int64(now), err
}

func (n narrow) Add(ctx context.Context, delta int64) (int64, error) {
	if err := fits(delta); err != nil {
		return 0, err
	}
	sum, err := n.Count.Add(ctx, int32(delta))
	return int64(sum), err
}

func (n narrow) CompareAndSet(ctx context.Context, old, number int64) (bool, error) {
	if err := fits(number); err != nil {
		return false, err
	}
	now, err := n.GetVersioned(ctx)
	if err != nil || int64(now.Value) != old {
		return false, err
	}
	_, wrote, err := n.Count.CompareAndSet(ctx, now, int32(number))
	return wrote, err
}

func fits(n int64) error {
	if n < math.MinInt32 || n > math.MaxInt32 {
		return usagef("%d has more than the 32 bits of the counter", n)
	}
	return nil
}

// replace writes a number, and returns the one that it has replaced.
func replace(ctx context.Context, n number, by int64) (old int64, err error) {
	for {
		if old, err = n.Get(ctx); err != nil {
			return 0, err
		}
		if wrote, err := n.CompareAndSet(ctx, old, by); wrote || err != nil {
			return old, err
		}
	}
}

// newest reads a node as it is now, not as it was when the client's server last heard of it.
func newest(ctx context.Context, client *framework.Client, path string) ([]byte, error) {
	if err := client.Sync(ctx, path); err != nil {
		return nil, err
	}
	data, _, err := client.Get(ctx, path)
	return data, err
}

// change is a number as docent limit and docent counter print it.
type change struct {
	Path   string `json:"path"`
	Format string `json:"format,omitempty"`
	Old    *int64 `json:"old,omitempty"` // nil: nothing was written, or there was none
	Value  int64  `json:"value"`
	wrote  bool
}

// number prints a number: the one that is there, or the old and the new one.
func (o output) number(c change) error {
	text := fmt.Sprint(c.Value)
	switch {
	case o.json:
		return o.object(c)
	case c.Old != nil:
		text = fmt.Sprintf("%d -> %d", *c.Old, c.Value)
	case c.wrote:
		text = fmt.Sprintf("none -> %d", c.Value)
	}
	_, err := fmt.Fprintln(o, text)
	return err
}
