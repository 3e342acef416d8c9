package queue_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/zktest/fault"
)

// Thousands of waiters that enqueue together must not read the list of a long queue each. The lists
// would delay the replies to heartbeats.
func TestThousandsOfWaitersShareAFewLists(t *testing.T) {
	inQueue(t, func(t *testing.T, c *counter) {
		const waiters, most = 2000, 20
		holder := c.enter(c.of("other"), 1)[0].holds()
		c.srv.ResetCounts()
		var all []*waiter
		for range waiters {
			all = append(all, c.start(c.mine))
		}
		requireQueued := func() {
			t.Helper()
			time.Sleep(10 * time.Second)
			synctest.Wait()
			require.Equal(t, waiters, c.sameSessionWaiters(), "not all are queued with a watch")
			requests := c.srv.Client("mine").Requests()
			require.Equal(t, waiters, requests[fault.OpCreate], "some waiters queued again")
			require.LessOrEqual(t, requests[fault.OpGetChildren2], most)
			t.Log(requests)
			c.srv.ResetCounts()
		}
		requireQueued()
		for _, s := range c.srv.Client("mine").Sessions() {
			require.NoError(t, s.Expire())
		}
		requireQueued()
		require.Len(t, c.srv.Client("mine").Sessions(), 1)
		for _, w := range all {
			w.cancel()
		}
		for _, w := range all {
			<-w.done
		}
		require.NoError(t, holder.Release())
	})
}
