package acceptance_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
)

// A hold whose acquire context is cancelled 1 ms after the grant is still valid three session
// timeouts later, also on the servers.
func TestP08_HoldOutlivesTheContextOfItsAcquire(t *testing.T) {
	t.Parallel()
	anywhere(t, func(t *testing.T, in place) {
		c := in.client(t)
		mu := in.lockOn(t, c)
		ctx, cancel := context.WithCancel(t.Context())
		hold, err := mu.Acquire(ctx)
		require.NoError(t, err)
		time.Sleep(time.Millisecond)
		cancel()

		time.Sleep(3 * in.timeout)
		require.NoError(t, hold.Err())
		require.True(t, hold.ValidUntil().After(time.Now()))
		select {
		case <-hold.Done():
			require.Fail(t, "Done is closed")
		default:
		}
		_, err = hold.Guard(t.Context())
		require.NoError(t, err)
		require.NoError(t, c.WaitConnected(testzk.Context(t))) // a busy machine loses a connection
		require.True(t, c.State().IsConnected())
		require.NoError(t, hold.Release())
	})
}

// The contexts of the acquire and of the work are cancelled at the time of the release. The lock is
// released nevertheless, and the next waiter has it within 1 s (10 s where time is real and the
// machine busy).
func TestP08_ReleaseUnderCancelledContextsLetsTheNextIn(t *testing.T) {
	t.Parallel()
	anywhere(t, func(t *testing.T, in place) {
		holder, next := in.lock(t), in.lock(t)
		ctx, cancel := context.WithCancel(t.Context())
		hold, err := holder.Acquire(ctx)
		require.NoError(t, err)
		work := hold.Context(ctx)
		var waiter sync.WaitGroup
		defer waiter.Wait()
		granted := make(chan time.Time, 1)
		waiter.Go(func() {
			hold, err := next.Acquire(testzk.Context(t))
			granted <- time.Now()
			assert.NoError(t, err)
			assert.NoError(t, hold.Release())
		})
		testzk.Eventually(t, func() bool {
			queue, err := holder.Participants(t.Context())
			return err == nil && len(queue) == 2
		}, "no waiter is in the queue")

		cancel()
		<-work.Done()
		time.Sleep(time.Second)
		require.NoError(t, hold.Err(), "the end of the work's context must not end the hold")
		start := time.Now()
		require.NoError(t, hold.Release())
		require.Less(t, (<-granted).Sub(start), in.within(time.Second))
	})
}
