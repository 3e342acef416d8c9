package ensembles_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/ensembles"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
)

// connect returns the client of an ensemble with one server.
func connect() (client *framework.Client, stop func()) {
	srv, err := zktest.New() // in a program: the real servers
	if err != nil {
		panic(err)
	}
	if client, err = framework.New(srv.Addr()); err != nil {
		panic(err)
	}
	return client, func() {
		_ = client.Close()
		srv.Close()
	}
}

// order returns how the lock of an order is made on one ensemble.
func order(id string) func(c *framework.Client) (recipes.Locker, error) {
	return func(c *framework.Client) (recipes.Locker, error) { return mutex.New(c, "/locks/"+id) }
}

// Each order has its ensemble, and all programs agree on which one it is.
func Example() {
	east, stop := connect()
	defer stop()
	west, stop := connect()
	defer stop()
	set, err := ensembles.New([]ensembles.Ensemble{{Name: "east", Client: east}, {Name: "west", Client: west}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, id := range []string{"order-1", "order-2", "order-3"} {
		lock, err := set.Lock(id, order(id))
		if err != nil {
			fmt.Println(err)
			return
		}
		err = lock.Do(context.Background(), func(_ context.Context, hold *recipes.Hold) error {
			fmt.Println(id, "is locked on", set.Of(id)[0].Name)
			return nil
		})
		if err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// order-1 is locked on east
	// order-2 is locked on west
	// order-3 is locked on east
}

// An ensemble is added while programs run. This is the step between: the lock of an order that moves
// is held on both ensembles. So it excludes programs with either set.
func ExampleWithPrevious() {
	east, stop := connect()
	defer stop()
	west, stop := connect()
	defer stop()
	before := []ensembles.Ensemble{{Name: "east", Client: east}}
	after := []ensembles.Ensemble{{Name: "east", Client: east}, {Name: "west", Client: west}}
	changing, err := ensembles.New(after, ensembles.WithPrevious(before...))
	if err != nil {
		fmt.Println(err)
		return
	}
	lock, err := changing.Lock("order-2", order("order-2"))
	if err != nil {
		fmt.Println(err)
		return
	}
	hold, err := lock.Acquire(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, e := range changing.Of("order-2") {
		fmt.Println("held on", e.Name+", with a token:", hold.Tokens()[i] > 0)
	}
	for _, step := range [][]ensembles.Ensemble{before, after} { // programs of the steps before and after
		other, err := ensembles.New(step)
		if err != nil {
			fmt.Println(err)
			return
		}
		lock, err := other.Lock("order-2", order("order-2"))
		if err != nil {
			fmt.Println(err)
			return
		}
		_, err = lock.TryAcquire(context.Background())
		fmt.Println("busy:", errors.Is(err, recipes.ErrNotAcquired))
	}
	fmt.Println(hold.Release())
	// Output:
	// held on east, with a token: true
	// held on west, with a token: true
	// busy: true
	// busy: true
	// <nil>
}
