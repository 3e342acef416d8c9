package rwlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/rwlock"
	"github.com/docent-zk/docent/zktest/fault"
)

// The servers have reported that the holder's node was deleted, and do not answer the list that would
// show whether another node is ahead. The lock may be free.
func TestWaiterBehindADeletedNodeIsBehindNoOther(t *testing.T) {
	withRequests(t, func(t *testing.T, d *requestFixture, other *rwlock.RWLock) {
		held := acquire(t, other.Write())
		result := make(chan error, 1)
		go func() {
			hold, err := d.rw.Write().AcquireWithin(context.WithoutCancel(t.Context()), 2*time.Second)
			if err == nil {
				err = hold.Release()
			}
			result <- err
		}()
		testlock.Settle()
		list := d.srv.On(fault.Match{Client: "counted", Op: fault.OpGetChildren2, Times: fault.Always}, fault.Hold())
		release(t, held)
		time.Sleep(2 * time.Second)
		require.Positive(t, list.Hits())
		list.Release()
		err := <-result
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, recipes.ErrNotAcquired)
	})
}
