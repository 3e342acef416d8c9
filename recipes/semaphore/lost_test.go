package semaphore_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// The reply to a transaction with many permits is lost. The number of requests after that must not
// grow faster than the number of permits.
func TestManyPermitsWithALostReplyAreFoundWithFewRequests(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		const n = 300
		s := newSemaphore(t, client(t, srv, "s"), "/sem", n)
		release(t, acquire(t, s, 1))
		srv.On(zktest.Match{Client: "s", Op: zktest.OpMulti}, zktest.DropAfter())
		before, began := srv.Requests(), time.Now()
		hold := acquire(t, s, n)
		after := srv.Requests()
		t.Logf("%d lists, %d syncs, %d exists, %d multi, %v",
			after[zktest.OpGetChildren2]-before[zktest.OpGetChildren2],
			after[zktest.OpSync]-before[zktest.OpSync], after[zktest.OpExists]-before[zktest.OpExists],
			after[zktest.OpMulti]-before[zktest.OpMulti], time.Since(began))
		require.Less(t, after[zktest.OpGetChildren2]-before[zktest.OpGetChildren2], 20, "lists of all children")
		release(t, hold)
	})
}
