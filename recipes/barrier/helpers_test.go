package barrier_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/barrier"
	"github.com/docent-zk/docent/zktest"
)

const path = "/barrier"

// The helpers of all recipes.
var (
	virtually = testlock.Virtually
	client    = testlock.Named
	expire    = testlock.Expire
	settle    = testlock.Rest
	outage    = testlock.Outage
)

// result is the result of a call that waits.
type result[T any] struct {
	value T
	err   error
}

// call is a call that waits in a goroutine of its own.
type call[T any] struct {
	t      testing.TB
	cancel context.CancelFunc
	result chan result[T]
}

// begin begins a call, and cancels it when the test ends.
func begin[T any](t testing.TB, fn func(ctx context.Context) (T, error)) *call[T] {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c := &call[T]{t: t, cancel: cancel, result: make(chan result[T], 1)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		value, err := fn(ctx)
		c.result <- result[T]{value, err}
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return c
}

// waits requires that the call has not returned.
func (c *call[T]) waits() {
	c.t.Helper()
	require.Empty(c.t, c.result, "it has returned")
}

// returns waits for the result, which must not be an error.
func (c *call[T]) returns() T {
	c.t.Helper()
	value, err := c.outcome()
	require.NoError(c.t, err)
	return value
}

// fails waits for the error.
func (c *call[T]) fails(want error) error {
	c.t.Helper()
	_, err := c.outcome()
	require.ErrorIs(c.t, err, want)
	return err
}

func (c *call[T]) outcome() (T, error) {
	c.t.Helper()
	select {
	case r := <-c.result:
		return r.value, r.err
	case <-testzk.Context(c.t).Done():
		require.Fail(c.t, "it does not return")
		panic("unreachable")
	}
}

func newBarrier(t testing.TB, c *framework.Client, path string) *barrier.Barrier {
	t.Helper()
	b, err := barrier.New(c, path)
	require.NoError(t, err)
	return b
}

func newDouble(t testing.TB, c *framework.Client, path string, n int) *barrier.Double {
	t.Helper()
	d, err := barrier.NewDouble(c, path, n)
	require.NoError(t, err)
	return d
}

func newCyclic(t testing.TB, c *framework.Client, path string, n int) *barrier.Cyclic {
	t.Helper()
	b, err := barrier.NewCyclic(c, path, n)
	require.NoError(t, err)
	return b
}

func newLatch(t testing.TB, c *framework.Client, path string, n int) *barrier.CountDown {
	t.Helper()
	l, err := barrier.NewCountDown(c, path, n)
	require.NoError(t, err)
	return l
}

// waiter is a Barrier or a CountDown.
type waiter interface {
	Wait(ctx context.Context) error
}

// wait begins a Wait.
func wait(t testing.TB, b waiter) *call[struct{}] {
	t.Helper()
	return begin(t, func(ctx context.Context) (struct{}, error) { return struct{}{}, b.Wait(ctx) })
}

func enter(t testing.TB, d *barrier.Double) *call[*barrier.Entry] {
	t.Helper()
	return begin(t, d.Enter)
}

func leave(t testing.TB, e *barrier.Entry) *call[struct{}] {
	t.Helper()
	return begin(t, func(ctx context.Context) (struct{}, error) { return struct{}{}, e.Leave(ctx) })
}

func await(t testing.TB, b *barrier.Cyclic) *call[int64] {
	t.Helper()
	return begin(t, b.Await)
}

// clients returns n clients of srv, c0 and so on.
func clients(t testing.TB, srv *zktest.Server, n int) (all []*framework.Client) {
	t.Helper()
	for i := range n {
		all = append(all, client(t, srv, fmt.Sprint("c", i)))
	}
	return all
}

// each begins a call for each of several values.
func each[S, T any](values []S, begin func(S) *call[T]) (calls []*call[T]) {
	for _, v := range values {
		calls = append(calls, begin(v))
	}
	return calls
}

// members begins to enter with each client.
func members(t testing.TB, all []*framework.Client, n int) []*call[*barrier.Entry] {
	t.Helper()
	return each(all, func(c *framework.Client) *call[*barrier.Entry] { return enter(t, newDouble(t, c, path, n)) })
}

// leaveAll begins to leave with each entry.
func leaveAll(t testing.TB, all []*barrier.Entry) []*call[struct{}] {
	t.Helper()
	return each(all, func(e *barrier.Entry) *call[struct{}] { return leave(t, e) })
}

// parties begins to await with each client.
func parties(t testing.TB, all []*framework.Client, n int) []*call[int64] {
	t.Helper()
	return partiesAt(t, all, path, n)
}

func partiesAt(t testing.TB, all []*framework.Client, path string, n int) []*call[int64] {
	t.Helper()
	return each(all, func(c *framework.Client) *call[int64] { return await(t, newCyclic(t, c, path, n)) })
}

// returned waits for all results.
func returned[T any](calls []*call[T]) []T {
	var all []T
	for _, c := range calls {
		c.t.Helper()
		all = append(all, c.returns())
	}
	return all
}

// allWait requires that no call has returned.
func allWait[T any](calls []*call[T]) {
	for _, c := range calls {
		c.t.Helper()
		c.waits()
	}
}
