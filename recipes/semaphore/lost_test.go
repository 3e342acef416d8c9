package semaphore_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// The reply to a transaction with many permits is lost. The number of requests after that must not
// grow faster than the number of permits.
func TestManyPermitsWithALostReplyAreFoundWithFewRequests(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		const n = 300
		s := newSemaphore(t, client(t, srv, "s"), "/sem", n)
		release(t, acquire(t, s, 1))
		srv.On(fault.Match{Client: "s", Op: fault.OpMulti}, fault.DropAfter())
		before, began := srv.Requests(), time.Now()
		hold := acquire(t, s, n)
		after := srv.Requests()
		t.Logf("%d lists, %d exists, %d multi, %v",
			after[fault.OpGetChildren2]-before[fault.OpGetChildren2], after[fault.OpExists]-before[fault.OpExists],
			after[fault.OpMulti]-before[fault.OpMulti], time.Since(began))
		require.Less(t, after[fault.OpGetChildren2]-before[fault.OpGetChildren2], 20, "lists of all children")
		release(t, hold)
	})
}
