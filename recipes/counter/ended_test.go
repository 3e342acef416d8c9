package counter_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/counter"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

// lateContext is a context whose end is seen by Err before it is seen by Done, as that of a deadline
// may be: requests under way get their answers.
type lateContext struct {
	context.Context
	ended func() bool
}

func (c lateContext) Err() error {
	if c.ended() {
		return context.DeadlineExceeded
	}
	return c.Context.Err()
}

// An answer that arrives when the context ends is not taken for the reason of the failure.
func TestCallWhoseContextEndsFailsWithThatAlsoWhenAnAnswerArrives(t *testing.T) {
	for name, example := range map[string]struct {
		op   fault.Op // whose answer arrives: that the version is another one, or that there is no node
		call func(ctx context.Context, t *testing.T, c *framework.Client, a *counter.Atomic) error
	}{
		"add": {fault.OpMulti, func(ctx context.Context, _ *testing.T, _ *framework.Client, a *counter.Atomic) error {
			_, err := a.Add(ctx, 1)
			return err
		}},
		"compare and set": {fault.OpMulti,
			func(ctx context.Context, _ *testing.T, _ *framework.Client, a *counter.Atomic) error {
				_, err := a.CompareAndSet(ctx, 1, 7)
				return err
			}},
		"get": {fault.OpGetData, func(ctx context.Context, t *testing.T, c *framework.Client, _ *counter.Atomic) error {
			_, err := newAtomic(t, c, path+"-missing").Get(ctx)
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, func(t *testing.T, srv *zktest.Server) {
				c := client(t, srv, "c")
				a, other := newAtomic(t, c, path), newAtomic(t, client(t, srv, "other"), path)
				added(t, a, 1, 1)
				added(t, other, 1, 2) // a does not know it
				held := srv.On(fault.Match{Client: "c", Op: example.op}, fault.Hold())
				var ended atomic.Bool
				ctx := lateContext{background(), ended.Load}
				done := make(chan error, 1)
				go func() { done <- example.call(ctx, t, c, a) }()
				require.NoError(t, held.Wait(t.Context()))
				ended.Store(true)
				held.Release()

				failed(t, <-done, framework.NotApplied, context.DeadlineExceeded)
				require.Equal(t, int64(2), stored(t, srv, path))
			})
		})
	}
}
