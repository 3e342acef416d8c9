package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
)

// orders returns a lock on a test server. A program calls framework.New with its own servers.
func orders() (lock *mutex.Mutex, stop func()) {
	server, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	client, err := framework.New(server.Addr())
	if err != nil {
		log.Fatal(err)
	}
	lock, err = mutex.New(client, "/locks/orders")
	if err != nil {
		log.Fatal(err)
	}
	return lock, func() {
		client.Close()
		server.Close()
	}
}

// The context of the function ends when the lock is lost, and the token tells the resource which holder is
// the later one.
func ExampleDo() {
	lock, stop := orders()
	defer stop()
	err := recipes.Do(context.Background(), lock, func(ctx context.Context, hold *recipes.Hold) error {
		fmt.Println("held:", hold.Err() == nil, "token:", hold.Token() > 0)
		return ctx.Err()
	})
	fmt.Println("released:", err == nil)
	// Output:
	// held: true token: true
	// released: true
}

// The time limits the wait, and not the hold. A time of 0 is one attempt.
func ExampleAcquireWithin() {
	lock, stop := orders()
	defer stop()
	ctx := context.Background()
	hold, err := recipes.AcquireWithin(ctx, lock, time.Minute)
	if err != nil {
		log.Fatal(err)
	}
	defer hold.Release()
	_, err = recipes.AcquireWithin(ctx, lock, 0) // as another program would
	fmt.Println(errors.Is(err, recipes.ErrNotAcquired))
	// Output: true
}

// A hold ends once: by Release, or by a loss, of which Err has the reason.
func ExampleHold() {
	lock, stop := orders()
	defer stop()
	hold, err := lock.Acquire(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	work := hold.Context(context.Background())
	if err := hold.Release(); err != nil {
		log.Fatal(err)
	}
	<-work.Done()
	fmt.Println(context.Cause(work) == hold.Err(), hold.Err())
	// Output: true recipes: not held
}
