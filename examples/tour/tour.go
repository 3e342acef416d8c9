package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/docent-zk/docent/examples/internal/program"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/zktest"
)

// colours are the styles of the output on a terminal.
var colours = []program.Rule{
	{Pattern: `^== .*`, Styles: []program.Style{program.Bold}},
	{Pattern: `^  Ann`, Styles: []program.Style{program.Cyan}},
	{Pattern: `^  Bob`, Styles: []program.Style{program.Yellow}},
	{Pattern: `^  \*\*\* .*`, Styles: []program.Style{program.Red}},
	{Pattern: `-> .*`, Styles: []program.Style{program.Green}},
}

// tour is what one chapter uses: a server of its own, and two clients that could be processes on two
// machines.
type tour struct {
	server   *zktest.Server
	ann, bob *framework.Client

	calls sync.WaitGroup // that start has begun
	mu    sync.Mutex
	out   io.Writer
}

// show runs one chapter.
func show(ctx context.Context, out io.Writer, c chapter) (err error) {
	fmt.Fprintf(out, "\n== %s: %s\n", c.name, c.text)
	server, err := zktest.New()
	if err != nil {
		return err
	}
	defer server.Close()
	ann, err := framework.New(server.Addr())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ann.Close()) }()
	bob, err := framework.New(server.Addr())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bob.Close()) }()
	t := &tour{server: server, ann: ann, bob: bob, out: out}
	defer t.calls.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return c.run(ctx, t)
}

// call prints a call of a client and its result.
func (t *tour) call(client, call, format string, args ...any) {
	t.print(fmt.Sprintf("  %s  %-42s -> %s\n", client, call, fmt.Sprintf(format, args...)))
}

// event prints what happens to the clients.
func (t *tour) event(format string, args ...any) {
	t.print(fmt.Sprintf("  *** %s\n", fmt.Sprintf(format, args...)))
}

func (t *tour) print(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, _ = io.WriteString(t.out, line)
}

// refused prints a call that must fail with an error that matches want.
func (t *tour) refused(client, call string, err, want error) error {
	if err := program.Expect(err, want); err != nil {
		return err
	}
	t.call(client, call, "%v", want)
	return nil
}

// waiting is a call in another goroutine.
type waiting[T any] struct{ ended chan result[T] }

type result[T any] struct {
	value T
	err   error
}

// start calls fn in another goroutine, which the end of the chapter waits for.
func start[T any](t *tour, fn func() (T, error)) waiting[T] {
	w := waiting[T]{make(chan result[T], 1)}
	t.calls.Go(func() {
		value, err := fn()
		w.ended <- result[T]{value, err}
	})
	return w
}

// result waits for what the call returns.
func (w waiting[T]) result() (T, error) {
	r := <-w.ended
	return r.value, r.err
}

// hold acquires a lock and prints the call.
func (t *tour) hold(ctx context.Context, client, call string, lock recipes.Locker) (*recipes.Hold, error) {
	hold, err := lock.Acquire(ctx)
	if err == nil {
		t.call(client, call, "holds, token %d", hold.Token())
	}
	return hold, err
}

// release releases a hold and prints the call.
func (t *tour) release(client, call string, hold *recipes.Hold) error {
	if err := hold.Release(); err != nil {
		return err
	}
	t.call(client, call, "released")
	return nil
}

// queue is a lock that lists its queue.
type queue interface {
	Participants(ctx context.Context) ([]recipes.Participant, error)
}

// waitQueue waits until a queue has n nodes.
func waitQueue(ctx context.Context, q queue, n int) error {
	var failed error
	err := program.Wait(ctx, "the queue is not complete", func() bool {
		var list []recipes.Participant
		list, failed = q.Participants(ctx)
		return failed != nil || len(list) == n
	})
	return errors.Join(failed, err)
}
