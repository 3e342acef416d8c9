// Semaphore-mutex shows the lock that is not reentrant: Curator's InterProcessSemaphoreMutex. Use package mutex unless you port a program
// that shares this one with Curator, or do not want to re-enter.
//
//	go run ./examples/semaphore-mutex                          # is its own ZooKeeper server, for tests
//	go run ./examples/semaphore-mutex -connect 127.0.0.1:2181  # uses a real one: start it twice at the same time, and they take turns
package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/docent-zk/docent/examples/internal/program"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/semaphore"
)

func main() { program.Main(run) }

func run(ctx context.Context, connect string, out io.Writer) (err error) {
	client, err := framework.New(connect)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	mu, err := semaphore.NewMutex(client, "/docent-examples/semaphore-mutex")
	if err != nil {
		return err
	}
	first, err := mu.Acquire(ctx)
	if err != nil {
		return err
	}
	_, err = mu.TryAcquire(first.Context(ctx)) // a mutex.Mutex would let its holder in again
	if err := program.Expect(err, recipes.ErrNotAcquired); err != nil {
		return errors.Join(err, first.Release())
	}
	fmt.Fprintln(out, "who holds the lock does not get it again")

	released := make(chan error, 1)
	go func() { released <- first.Release() }() // whoever has the hold may, as with all locks of docent
	second, err := mu.Acquire(ctx)
	if err := errors.Join(err, <-released); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, second.Release()) }() // tells if the lock was lost before the work was done
	fmt.Fprintln(out, "another goroutine gives it back; now it can be had again, with a larger token:", second.Token() > first.Token())
	return nil
}
