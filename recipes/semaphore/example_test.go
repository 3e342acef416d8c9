package semaphore_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/semaphore"
	"github.com/docent-zk/docent/zktest"
)

// exampleServer starts a server for one example.
func exampleServer() *zktest.Server {
	srv, err := zktest.New()
	if err != nil {
		panic(err)
	}
	return srv
}

func Example() {
	srv := exampleServer()
	defer srv.Close()
	client, err := framework.New(srv.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	exports, err := semaphore.New(client, "/limits/exports", 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	one, err := exports.Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	two, err := exports.AcquireN(ctx, 2) // both or none
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = exports.TryAcquire(ctx)
	fmt.Println("a fourth:", errors.Is(err, recipes.ErrNotAcquired))
	fmt.Println(two.Release(), one.Release())
	// Output:
	// a fourth: true
	// <nil> <nil>
}

func ExampleWithSlots() {
	srv := exampleServer()
	defer srv.Close()
	client, err := framework.New(srv.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	pool, err := semaphore.New(client, "/pool", 4, semaphore.WithSlots())
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	var holds []*recipes.Hold
	for range 2 {
		hold, err := pool.AcquireN(ctx, 2)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("to work at:", semaphore.Slots(hold))
		holds = append(holds, hold)
	}
	for _, hold := range holds {
		fmt.Println(hold.Release())
	}
	// Output:
	// to work at: [0 1]
	// to work at: [2 3]
	// <nil>
	// <nil>
}

func ExampleSemaphore_SetLimit() {
	srv := exampleServer()
	defer srv.Close()
	client, err := framework.New(srv.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	s, err := semaphore.New(client, "/exports", 1, semaphore.WithSharedLimit("/config/exports"))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	first, err := s.Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.SetLimit(ctx, 2)) // for all clients, from now on
	second, err := s.TryAcquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(second.Release(), first.Release())
	// Output:
	// <nil>
	// <nil> <nil>
}

func ExampleNewMutex() {
	srv := exampleServer()
	defer srv.Close()
	client, err := framework.New(srv.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	mu, err := semaphore.NewMutex(client, "/report")
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	hold, err := mu.Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = mu.TryAcquire(hold.Context(ctx))
	fmt.Println("re-entered:", err == nil)
	released := make(chan error)
	go func() { released <- hold.Release() }() // any goroutine with the hold may release it
	fmt.Println(<-released)
	// Output:
	// re-entered: false
	// <nil>
}
