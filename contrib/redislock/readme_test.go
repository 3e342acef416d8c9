package redislock_test

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/docent-zk/docent/contrib/redislock"
	"github.com/docent-zk/docent/recipes"
)

// These functions are on the page README.md, and on docs/tair.md.
var _, _ = withLock, withLockTwice

// fragment redis-lock
func withLock(ctx context.Context, write func(context.Context, int64) error) error {
	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379", ContextTimeoutEnabled: true})
	defer rdb.Close()
	client, err := redislock.NewClient(rdb) // WithTTL, WithPrefix, WithPollInterval, WithLogger, WithMetrics
	if err != nil {
		return err
	}
	defer client.Close()
	lock, err := redislock.New(client, "orders")
	if err != nil {
		return err
	}
	return lock.Do(ctx, func(ctx context.Context, hold *recipes.Hold) error {
		return write(ctx, hold.Token()) // ctx ends with the hold
	})
}

// end

func withLockTwice(ctx context.Context, lock *redislock.Lock) error {
	// fragment tair-again
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	defer hold.Release()
	again, err := lock.Acquire(hold.Context(ctx)) // shares the hold, without a request
	if err != nil {
		return err
	}
	defer again.Release()
	// end
	return nil
}
