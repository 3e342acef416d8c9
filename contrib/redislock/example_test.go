package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/docent-zk/docent/contrib/redislock"
	"github.com/docent-zk/docent/recipes"
)

// connect returns a client. A real program has a server in place of miniredis.
func connect() (client *redislock.Client, stop func()) {
	srv, err := miniredis.Run()
	if err != nil {
		log.Fatal(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: srv.Addr(), ContextTimeoutEnabled: true})
	client, err = redislock.NewClient(rdb)
	if err != nil {
		log.Fatal(err)
	}
	return client, func() {
		client.Close()
		rdb.Close()
		srv.Close()
	}
}

func Example() {
	client, stop := connect()
	defer stop()
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

// A function that holds a lock calls another one that needs the same lock.
func ExampleLock_Acquire_reentry() {
	client, stop := connect()
	defer stop()
	lock, err := redislock.New(client, "orders", redislock.WithFairQueue())
	if err != nil {
		log.Fatal(err)
	}
	store := func(ctx context.Context) error {
		return lock.Do(ctx, func(ctx context.Context, hold *recipes.Hold) error {
			fmt.Println("store with token", hold.Token())
			return nil
		})
	}
	err = lock.Do(context.Background(), func(ctx context.Context, hold *recipes.Hold) error {
		fmt.Println("hold with token", hold.Token())
		return store(ctx)
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// hold with token 1
	// store with token 1
}

func ExampleNewReadWrite() {
	client, stop := connect()
	defer stop()
	ctx := context.Background()
	catalogue, err := redislock.NewReadWrite(client, "catalogue")
	if err != nil {
		log.Fatal(err)
	}
	first, err := catalogue.Read().Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	second, err := catalogue.Read().Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	_, err = catalogue.Write().TryAcquire(ctx)
	fmt.Println(errors.Is(err, recipes.ErrNotAcquired))
	if err := errors.Join(first.Release(), second.Release()); err != nil {
		log.Fatal(err)
	}
	writing, err := catalogue.Write().TryAcquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("token of the writer", writing.Token())
	if err := writing.Release(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// true
	// token of the writer 3
}

func ExampleNewSemaphore() {
	client, stop := connect()
	defer stop()
	exports, err := redislock.NewSemaphore(client, "exports", 2)
	if err != nil {
		log.Fatal(err)
	}
	for range 3 {
		permit, err := exports.TryAcquire(context.Background())
		if err != nil {
			fmt.Println(errors.Is(err, recipes.ErrNotAcquired))
			continue
		}
		defer permit.Release()
		fmt.Println("permit", permit.Token())
	}
	// Output:
	// permit 1
	// permit 2
	// true
}
