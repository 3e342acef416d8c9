// Semaphore-mutex shows the lock that is not reentrant. The class of Curator is
// InterProcessSemaphoreMutex. Use package mutex instead, unless the lock is shared with Curator
// programs or must not be reentrant.
//
//	go run ./examples/semaphore-mutex                          # starts a test server in this process
//	go run ./examples/semaphore-mutex -connect 127.0.0.1:2181  # uses a real one; two take turns
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
	_, err = mu.TryAcquire(first.Context(ctx)) // a mutex.Mutex would be acquired again
	if err := program.Expect(err, recipes.ErrNotAcquired); err != nil {
		return errors.Join(err, first.Release())
	}
	fmt.Fprintln(out, "the holder of the lock does not get it again")

	released := make(chan error, 1)
	go func() { released <- first.Release() }() // any goroutine may release a hold, as with all locks of docent
	err = mu.Do(ctx, func(_ context.Context, second *recipes.Hold) error {
		fmt.Fprintln(out, "another goroutine releases it; now it can be acquired again, with a larger token:",
			second.Token() > first.Token())
		return nil
	})
	return errors.Join(err, <-released)
}
