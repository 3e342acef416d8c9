package redislock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/contrib/redislock"
)

// kind is a kind of lock, for tests that all kinds pass.
type kind struct {
	// exclusive returns a lock that one hold has at a time.
	exclusive func(t testing.TB, c *redislock.Client, name string) *redislock.Lock
	// locks returns what excludes each other: holds of each one take so many of the places.
	locks  func(t testing.TB, c *redislock.Client, name string) []*redislock.Lock
	takes  []int
	places int
	// waiters returns the sorted set of the waiters of a lock, in their order. Nil: there is no order.
	waiters func(key string) string
}

var kinds = map[string]kind{
	"lock": {
		exclusive: newLock, places: 1, takes: []int{1},
		locks: func(t testing.TB, c *redislock.Client, name string) []*redislock.Lock {
			return []*redislock.Lock{newLock(t, c, name)}
		},
	},
	"fair": {
		exclusive: newFair, places: 1, takes: []int{1, 1},
		locks: func(t testing.TB, c *redislock.Client, name string) []*redislock.Lock {
			return []*redislock.Lock{newFair(t, c, name), newLock(t, c, name)}
		},
		waiters: func(key string) string { return "{" + key + "}:queue" },
	},
	"read-write": {
		exclusive: newWriter, places: simClients, takes: []int{1, 1, simClients},
		locks: func(t testing.TB, c *redislock.Client, name string) []*redislock.Lock {
			rw := newReadWrite(t, c, name)
			return []*redislock.Lock{rw.Read(), rw.Read(), rw.Write()}
		},
	},
	"semaphore": {
		exclusive: func(t testing.TB, c *redislock.Client, name string) *redislock.Lock {
			return newSemaphore(t, c, name, 1)
		},
		places: 2, takes: []int{1},
		locks: func(t testing.TB, c *redislock.Client, name string) []*redislock.Lock {
			return []*redislock.Lock{newSemaphore(t, c, name, 2)}
		},
	},
}

func newFair(t testing.TB, c *redislock.Client, name string) *redislock.Lock {
	t.Helper()
	lock, err := redislock.New(c, name, redislock.WithFairQueue())
	require.NoError(t, err)
	return lock
}

func newReadWrite(t testing.TB, c *redislock.Client, name string) *redislock.ReadWrite {
	t.Helper()
	rw, err := redislock.NewReadWrite(c, name)
	require.NoError(t, err)
	return rw
}

func newWriter(t testing.TB, c *redislock.Client, name string) *redislock.Lock {
	t.Helper()
	return newReadWrite(t, c, name).Write()
}

func newSemaphore(t testing.TB, c *redislock.Client, name string, permits int) *redislock.Lock {
	t.Helper()
	lock, err := redislock.NewSemaphore(c, name, permits)
	require.NoError(t, err)
	return lock
}
