package redislock_test

import (
	"context"
	"fmt"
	"log"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/docent-zk/docent/contrib/redislock"
	"github.com/docent-zk/docent/recipes"
)

// A real program has a server in place of miniredis.
func Example() {
	srv, err := miniredis.Run()
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	rdb := redis.NewClient(&redis.Options{Addr: srv.Addr(), ContextTimeoutEnabled: true})
	defer rdb.Close()
	client, err := redislock.NewClient(rdb)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	lock, err := redislock.New(client, "orders")
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		err = lock.Do(context.Background(), func(ctx context.Context, hold *recipes.Hold) error {
			fmt.Println("token", hold.Token()) // a resource refuses smaller ones: see package fence
			return ctx.Err()                   // ctx ends when the lock is lost
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// token 1
	// token 2
}
