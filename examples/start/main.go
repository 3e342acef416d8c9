// fragment start-program

package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
)

func main() {
	client, err := framework.New("127.0.0.1:2181", framework.WithSlog(slog.Default())) // or "zk1:2181,zk2:2181"
	if err != nil {
		log.Fatal(err)
	}
	err = process(context.Background(), client, func(_ context.Context, token int64) error {
		_, err := fmt.Println("writing under the lock, with the token", token)
		return err
	})
	if err := errors.Join(err, client.Close()); err != nil {
		log.Fatal(err)
	}
}

// process calls write while this process has the lock.
func process(ctx context.Context, client *framework.Client, write func(context.Context, int64) error) error {
	orders, err := mutex.New(client, "/locks/orders")
	if err != nil {
		return err
	}
	return orders.Do(ctx, func(ctx context.Context, hold *recipes.Hold) error { // waits in the queue
		return write(ctx, hold.Token()) // this ctx ends if the lock is lost
	})
}

// end
