package redislock_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/contrib/redislock"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/locktest"
)

const ttl = 3 * time.Second

// newClient returns a client that is closed with the test, before rdb.
func newClient(t testing.TB, opts *redis.Options, more ...redislock.Option) *redislock.Client {
	t.Helper()
	rdb := redis.NewClient(opts)
	t.Cleanup(func() { require.NoError(t, rdb.Close()) })
	c, err := redislock.NewClient(rdb, append([]redislock.Option{redislock.WithTTL(ttl)}, more...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func newLock(t testing.TB, c *redislock.Client, name string) *redislock.Lock {
	t.Helper()
	lock, err := redislock.New(c, name)
	require.NoError(t, err)
	return lock
}

func bounded(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func acquire(t testing.TB, l recipes.Locker) *recipes.Hold {
	t.Helper()
	hold, err := l.Acquire(bounded(t))
	require.NoError(t, err)
	return hold
}

// The suite for any lock, on a real server, each client behind a proxy of its own.
func TestLock(t *testing.T) {
	srv := startServer(t)
	locktest.Run(t, locktest.Service{
		Lease: ttl, Tokens: true,
		Client: func(t testing.TB, _ string) locktest.Client {
			p := startProxy(t, srv.socket())
			opts := srv.options()
			opts.Network, opts.Addr = "tcp", p.addr()
			c := newClient(t, opts)
			lock := newLock(t, c, t.Name())
			return locktest.Client{
				Lock: lock, Cut: p.cut,
				Delete: func() { require.NoError(t, srv.direct.Del(context.Background(), lock.Key()).Err()) },
				Close:  func() { require.NoError(t, c.Close()) },
			}
		},
		// The tests that wait for leases wait at the same time.
		Around: func(t *testing.T, run func(t *testing.T)) { t.Parallel(); run(t) },
	})
}
