// Limited-resource uses a resource under each kind of lock, from several clients with many
// goroutines. The resource detects an access that its lock should have excluded. The classes of
// Curator's examples are LockingExample and FakeLimitedResource.
//
//	go run ./examples/limited-resource                          # starts a test server in this process
//	go run ./examples/limited-resource -connect 127.0.0.1:2181  # uses a real one
//	go run ./examples/limited-resource -clients 8 -goroutines 20 -cycles 50
//
// resource.go is the resource, kinds.go makes the locks, and this file uses them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/docent-zk/docent/examples/internal/program"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
)

func main() { program.Main(newWorkload(flag.CommandLine).run) }

// folder is the path below which the locks are.
const folder = "/docent-examples/limited-resource/"

// workload is how each kind of lock is used.
type workload struct {
	kinds                       []kind
	clients, goroutines, cycles int
	work                        func(context.Context, *resource) error // what is done under the lock
}

// newWorkload defines the flags and returns a workload for all kinds of locks. Its numbers are
// valid once flags are parsed.
func newWorkload(flags *flag.FlagSet) *workload {
	w := &workload{kinds: kinds(), work: work}
	flags.IntVar(&w.clients, "clients", 4, "how many clients, each with a session of its own, as if it were a process")
	flags.IntVar(&w.goroutines, "goroutines", 5, "how many goroutines of each client")
	flags.IntVar(&w.cycles, "cycles", 10, "how often each goroutine uses the resource, under each kind of lock")
	return w
}

// work takes a millisecond. It stops when ctx ends, which it does with the hold.
func work(ctx context.Context, _ *resource) error {
	select {
	case <-time.After(time.Millisecond):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// run uses one kind of lock after the other and prints the counts. A violation is an error, but the
// run goes on.
func (w *workload) run(ctx context.Context, connect string, out io.Writer) (err error) {
	if min(w.clients, w.goroutines, w.cycles) < 1 {
		return errors.New("-clients, -goroutines and -cycles must be 1 or more")
	}
	clients := make([]*framework.Client, w.clients)
	for i := range clients {
		if clients[i], err = framework.New(connect); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, clients[i].Close()) }()
	}
	var broken []error
	for _, k := range w.kinds {
		r := &resource{room: k.room}
		if err := w.runKind(ctx, k, r, clients); err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
		fmt.Fprintf(out, "%-16s %d cycles, at most %d inside at once, violations %d\n",
			k.name+":", r.uses, r.peak, len(r.violations))
		if len(r.violations) > 0 {
			broken = append(broken, fmt.Errorf("%s does not exclude: %w", k.name, r.violations[0]))
		}
	}
	return errors.Join(broken...)
}

// runKind runs all goroutines at the same time. The first error ends all of them.
func (w *workload) runKind(ctx context.Context, k kind, r *resource, clients []*framework.Client) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var all sync.WaitGroup
	for user := range w.clients * w.goroutines {
		all.Go(func() {
			if err := w.cycle(ctx, k, r, clients[user%w.clients], user); err != nil {
				fail(err)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

func (w *workload) cycle(ctx context.Context, k kind, r *resource, client *framework.Client, user int) error {
	accesses, err := k.accesses(client, folder+k.name)
	if err != nil {
		return err
	}
	for i := range w.cycles {
		if err := w.use(ctx, accesses[(user+i)%len(accesses)], r); err != nil {
			return err
		}
	}
	return nil
}

// use shows how to use any lock.
func (w *workload) use(ctx context.Context, a access, r *resource) error {
	return recipes.Do(ctx, a.lock, func(ctx context.Context, hold *recipes.Hold) error {
		// This context ends if the lock is lost. A multi-lock has a token for each of its locks. All of
		// them protect this resource, so the largest one serves.
		return r.use(a.alone, slices.Max(hold.Tokens()), func() error { return w.work(ctx, r) })
	}) // also reports a loss before the end of the work
}
