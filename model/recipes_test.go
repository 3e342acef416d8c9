package model

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/multilock"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/recipes/rwlock"
	"github.com/docent-zk/docent/recipes/semaphore"
)

// recipe is what a replay has to know of a lock.
type recipe struct {
	model string
	dirs  []string // of its nodes
	// parallel: a client waits in all directories at the same time.
	parallel bool
	// acquirer makes the lock for client i, and returns its Acquire.
	acquirer func(t *testing.T, client *framework.Client, i int) testlock.Acquire
	// ordered reports whether the tokens of client i are larger than those of all holds before.
	ordered func(i int) bool
	// turn has a holder do what only this lock has; nil: it has nothing of its own.
	turn func(t *testing.T, c *replayed)
}

func recipeOf(t *testing.T, model string) recipe {
	t.Helper()
	for _, r := range all {
		if r.model == model {
			return r
		}
	}
	require.Fail(t, "unknown model", model)
	return recipe{}
}

var all = []recipe{
	{
		model: "mutex",
		dirs:  []string{"/lock"},
		acquirer: func(t *testing.T, client *framework.Client, _ int) testlock.Acquire {
			lock, err := mutex.New(client, "/lock")
			require.NoError(t, err)
			return lock.Acquire
		},
		ordered: always,
	},
	{
		model: "rwlock",
		dirs:  []string{"/lock"},
		acquirer: func(t *testing.T, client *framework.Client, i int) testlock.Acquire {
			lock, err := rwlock.New(client, "/lock")
			require.NoError(t, err)
			if i < writers {
				return lock.Write().Acquire
			}
			return lock.Read().Acquire
		},
		ordered: func(i int) bool { return i < writers },
		turn:    downgrade,
	},
	{
		model: "semaphore",
		dirs:  []string{"/lock/locks", "/lock/leases"},
		acquirer: func(t *testing.T, client *framework.Client, _ int) testlock.Acquire {
			lock, err := semaphore.New(client, "/lock", 1)
			require.NoError(t, err)
			hold, err := lock.Acquire(t.Context()) // the first acquire also reads the limit and the directories
			require.NoError(t, err)
			require.NoError(t, hold.Release())
			return lock.Acquire
		},
		ordered: never,
	},
	{
		model:    "multilock",
		dirs:     []string{"/a", "/b"},
		parallel: true,
		acquirer: func(t *testing.T, client *framework.Client, i int) testlock.Acquire {
			if i == onlyOne {
				lock, err := mutex.New(client, "/b")
				require.NoError(t, err)
				return lock.Acquire
			}
			lock, err := multilock.New(client, []string{"/a", "/b"})
			require.NoError(t, err)
			return lock.Acquire
		},
		ordered: always,
	},
}

const onlyOne = 2 // the client of a multi-lock that wants only one of the locks

const writers = 2 // the first clients of a read-write lock; the others read

func always(int) bool { return true }
func never(int) bool  { return false }

// downgrade has a writer become a reader: it acquires the read side, and then releases the write side.
func downgrade(t *testing.T, c *replayed) {
	lock, err := rwlock.New(c.client, "/lock")
	require.NoError(t, err)
	write := c.hold()
	require.NotNil(t, write)
	c.turned = write
	c.attempt = testlock.StartUnder(t, write.Context(context.Background()),
		func(ctx context.Context) (*recipes.Hold, error) {
			read, err := lock.Read().Acquire(ctx)
			if err == nil {
				c.gate.hold(read.Path())
				c.release(write)
			}
			return read, err
		})
}
