package condition_test

import (
	"context"
	"fmt"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/condition"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
)

// One holder waits until another one has done something. In a program they are two processes.
func Example() {
	srv, err := zktest.New() // in a program: the real servers
	if err != nil {
		panic(err)
	}
	defer srv.Close()
	client, err := framework.New(srv.Addr())
	if err != nil {
		panic(err)
	}
	defer client.Close()
	mu, err := mutex.New(client, "/orders/lock")
	if err != nil {
		panic(err)
	}
	paid, err := condition.New(mu, "/orders/paid")
	if err != nil {
		panic(err)
	}

	ctx := context.Background()
	done := false // in a program: data on the servers, or in a database
	hold, err := mu.Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	go func() { // the other process
		_ = pay(ctx, mu, paid, &done)
	}()
	for !done {
		fmt.Println("waiting")
		if hold, err = paid.Wait(ctx, hold); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println("paid")
	_ = hold.Release()
	// Output:
	// waiting
	// paid
}

func pay(ctx context.Context, mu *mutex.Mutex, paid *condition.Condition, done *bool) error {
	hold, err := mu.Acquire(ctx)
	if err != nil {
		return err
	}
	defer hold.Release()
	*done = true
	return paid.Signal(ctx, hold)
}
