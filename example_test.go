package docent_test

import (
	"context"
	"fmt"
	"log"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
)

// A program names its servers in place of zktest's.
func Example() {
	server, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	client, err := framework.New(server.Addr())
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	mu, err := mutex.New(client, "/locks/orders")
	if err != nil {
		log.Fatal(err)
	}
	err = recipes.Do(context.Background(), mu, func(ctx context.Context, hold *recipes.Hold) error {
		fmt.Println("holds the lock, with a token:", hold.Token() > 0)
		return ctx.Err()
	})
	fmt.Println("released:", err == nil)
	// Output:
	// holds the lock, with a token: true
	// released: true
}
