package porting

import (
	"context"
	"errors"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
)

// fragment start
func program(ctx context.Context, servers string) error {
	client, err := framework.New(servers,
		framework.WithSessionTimeout(40*time.Second),
		framework.WithRetry(retry.Exponential(time.Second, 3)))
	if err != nil {
		return err // says what is wrong
	}
	defer client.Close()
	first, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	if err := client.WaitConnected(first); err != nil {
		return err // has the error of each server
	}

	mu, err := mutex.New(client, "/locks/orders")
	if err != nil {
		return err
	}
	err = recipes.DoWithin(ctx, mu, 10*time.Second,
		func(ctx context.Context, _ *recipes.Hold) error {
			return process(ctx) // the context ends if the lock is lost
		})
	if errors.Is(err, recipes.ErrNotAcquired) && ctx.Err() == nil {
		return nil // other clients had the lock
	}
	return err
}

// end

var process = say("processing the orders")

func Example_start() {
	run(func(ctx context.Context, _ *framework.Client, srv *zktest.Server) error {
		return program(ctx, srv.Addr())
	})
	// Output:
	// processing the orders
}
