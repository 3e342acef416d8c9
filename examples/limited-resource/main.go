// Limited-resource attacks every kind of lock with several clients and many goroutines, to get at a resource that finds out by itself if
// somebody is inside who must not be: what LockingExample and FakeLimitedResource are in Curator's examples.
//
//	go run ./examples/limited-resource                          # is its own ZooKeeper server, for tests
//	go run ./examples/limited-resource -connect 127.0.0.1:2181  # uses a real one
//	go run ./examples/limited-resource -clients 8 -goroutines 20 -cycles 50
//
// Where to look: resource.go is what is protected; kinds.go is how each lock is made; this file is how all of them are used.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/docent-zk/docent/examples/internal/program"
	"github.com/docent-zk/docent/framework"
)

func main() { program.Main(newAttack(flag.CommandLine).run) }

// folder is where the locks are.
const folder = "/docent-examples/limited-resource/"

// attack is what is done to each kind of lock.
type attack struct {
	kinds                       []kind
	clients, goroutines, cycles int
	work                        func(context.Context, *resource) error // what is done inside
}

// newAttack is one on all kinds. Its numbers come from flags that are still to be parsed.
func newAttack(flags *flag.FlagSet) *attack {
	a := &attack{kinds: kinds(), work: work}
	flags.IntVar(&a.clients, "clients", 4, "how many clients, each with a session of its own, as if it were a process")
	flags.IntVar(&a.goroutines, "goroutines", 5, "how many goroutines of each client")
	flags.IntVar(&a.cycles, "cycles", 10, "how often each goroutine uses the resource, under each kind of lock")
	return a
}

// work is something that takes time. It stops when ctx ends, and with it the hold.
func work(ctx context.Context, _ *resource) error {
	select {
	case <-time.After(time.Millisecond):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// run attacks one kind after another, and says how it went. Violations are an error, but do not end it.
func (a *attack) run(ctx context.Context, connect string, out io.Writer) (err error) {
	if min(a.clients, a.goroutines, a.cycles) < 1 {
		return errors.New("-clients, -goroutines and -cycles must be 1 or more")
	}
	clients := make([]*framework.Client, a.clients)
	for i := range clients {
		if clients[i], err = framework.New(connect); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, clients[i].Close()) }()
	}
	var broken []error
	for _, k := range a.kinds {
		r := &resource{room: k.room}
		if err := a.on(ctx, k, r, clients); err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
		fmt.Fprintf(out, "%-16s %d cycles, at most %d inside at once, violations %d\n", k.name+":", r.uses, r.peak, len(r.violations))
		if len(r.violations) > 0 {
			broken = append(broken, fmt.Errorf("%s does not exclude: %w", k.name, r.violations[0]))
		}
	}
	return errors.Join(broken...)
}

// on has all goroutines use the resource at the same time. The first error ends it for all of them.
func (a *attack) on(ctx context.Context, k kind, r *resource, clients []*framework.Client) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var all sync.WaitGroup
	for user := range a.clients * a.goroutines {
		all.Go(func() {
			if err := a.cycle(ctx, k, r, clients[user%a.clients], user); err != nil {
				fail(err)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

func (a *attack) cycle(ctx context.Context, k kind, r *resource, client *framework.Client, user int) error {
	ways, err := k.ways(client, folder+k.name)
	if err != nil {
		return err
	}
	for i := range a.cycles {
		if err := a.use(ctx, ways[(user+i)%len(ways)], r); err != nil {
			return err
		}
	}
	return nil
}

// use is how any lock is used.
func (a *attack) use(ctx context.Context, w way, r *resource) (err error) {
	hold, err := w.lock.Acquire(ctx) // ctx bounds the wait, not the hold
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hold.Release()) }() // tells if the lock was lost before the work was done
	ctx = hold.Context(ctx)                                   // ends if the lock is lost
	return r.use(w.alone, hold.Token(), func() error { return a.work(ctx, r) })
}
