package acceptance_test

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest/fault"
)

// Writes of 1 MiB and 2 MiB fail with ErrTooLarge and are not sent. The connection, the held lock
// and its waiter stay. The writes are a Set, a Create, the data of a lock node, and a transaction
// of small parts.
func TestP23_TooLargeWritesDoNoHarm(t *testing.T) {
	t.Parallel()
	p, root := testzk.Proxy(t), testzk.Path(t)
	c := testzk.Connected(t, p.Addr(), framework.WithSessionTimeout(30*time.Second))
	ctx := testzk.Context(t)
	var mu sync.Mutex
	var changes []framework.State
	defer c.Listen(func(change framework.StateChange) {
		mu.Lock()
		defer mu.Unlock()
		changes = append(changes, change.State)
	})()
	lock, err := mutex.New(c, root+"/lock")
	require.NoError(t, err)
	hold := acquired(t, lock)
	waiter := make(chan error, 1)
	go func() {
		hold, err := lock.Acquire(ctx)
		if err == nil {
			err = hold.Release()
		}
		waiter <- err
	}()
	testzk.Eventually(t, func() bool {
		queue, err := lock.Participants(ctx)
		return err == nil && len(queue) == 2
	}, "no waiter is in the queue")

	writes := p23Large(c, root, 1<<20)
	maps.Copy(writes, p23Large(c, root, 2<<20))
	p.ResetCounts()
	for name, write := range writes {
		err := write(ctx)
		require.ErrorIs(t, err, framework.ErrTooLarge, name)
		require.Equal(t, framework.NotApplied, framework.OutcomeOf(err), name)
		require.False(t, framework.IsTransient(err), name)
	}
	for _, op := range []fault.Op{fault.OpSetData, fault.OpCreate, fault.OpMulti} {
		require.Zero(t, p.Requests()[op], "%v was sent", op)
	}
	require.Equal(t, 1, p.Connections())
	require.NoError(t, hold.Err())
	require.NoError(t, hold.Release())
	require.NoError(t, <-waiter)
	mu.Lock()
	defer mu.Unlock()
	assert.Empty(t, changes)
}

// p23Large returns writes of a size, by name.
func p23Large(c *framework.Client, root string, size int) map[string]func(context.Context) error {
	large := make([]byte, size)
	suffix := fmt.Sprintf(" of %d bytes", size)
	return map[string]func(context.Context) error{
		"set" + suffix: func(ctx context.Context) error {
			_, err := c.Set(ctx, root+"/lock", large, -1)
			return err
		},
		"create" + suffix: func(ctx context.Context) error {
			_, err := c.Create(ctx, root+"/large", large)
			return err
		},
		"multi" + suffix: func(ctx context.Context) error {
			small := large[:len(large)/8]
			var list []framework.Op
			for range 8 {
				list = append(list, framework.SetOp(root+"/lock", small, -1))
			}
			_, err := c.Multi(ctx, list...)
			return err
		},
		"acquire" + suffix: func(ctx context.Context) error {
			lock, err := mutex.New(c, root+"/other", mutex.WithData(large))
			if err == nil {
				_, err = lock.Acquire(ctx)
			}
			return err
		},
	}
}
