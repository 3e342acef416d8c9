package queue_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/recipes/internal/queue"
	"github.com/docent-zk/docent/zktest"
)

// The lists of a long line would keep the answers to the signs of life waiting, if each of those who come together asked for one.
func TestThousandsWhoComeTogetherShareAFewLists(t *testing.T) {
	inLine(t, func(t *testing.T, c *counter) {
		const waiters, most = 5000, 20
		holder := c.enter(c.of("other"), 1)[0].holds()
		c.srv.ResetCounts()
		var all []*waiter
		for range waiters {
			all = append(all, c.start(c.mine))
		}
		gotInLine := func() {
			t.Helper()
			time.Sleep(10 * time.Second)
			synctest.Wait()
			require.Equal(t, waiters, queue.Neighbours(), "not all are in line, with a watch")
			asked := c.srv.Client("me").Requests()
			require.Equal(t, waiters, asked[zktest.OpCreate], "some had to queue again")
			require.LessOrEqual(t, asked[zktest.OpGetChildren2], most)
			t.Log(asked)
			c.srv.ResetCounts()
		}
		gotInLine()
		for _, s := range c.srv.Client("me").Sessions() {
			require.NoError(t, s.Expire())
		}
		gotInLine()
		require.Len(t, c.srv.Client("me").Sessions(), 1)
		for _, w := range all {
			w.cancel()
		}
		for _, w := range all {
			<-w.done
		}
		require.NoError(t, holder.Release())
	})
}
