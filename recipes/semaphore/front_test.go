package semaphore_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/semaphore"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// front runs a test with n permits, all held, and a waiter for all of them at the front of the
// queue.
func front(
	t *testing.T, n int, test func(t *testing.T, srv *zktest.Server, holds []*recipes.Hold, waiter *testlock.Attempt),
) {
	t.Helper()
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		opts := []semaphore.Option{semaphore.WithSlots(), semaphore.WithSharedLimit("/limit")}
		holder := newSemaphore(t, client(t, srv, "holder"), "/sem", n, opts...)
		var holds []*recipes.Hold
		for range n {
			holds = append(holds, acquire(t, holder, 1))
		}
		c := client(t, srv, "waiter", framework.WithRetry(retry.Never()))
		waiter := start(t, newSemaphore(t, c, "/sem", n, opts...), n)
		time.Sleep(time.Second)
		test(t, srv, holds, waiter)
		requireEmpty(t, srv, "/sem")
	})
}

// The acquire survives the end of the connection at each of its requests, whatever the client's
// retry policy is.
func TestAcquireSurvivesAnOutageWhenAPermitIsFree(t *testing.T) {
	for name, action := range map[string]fault.Action{"request": fault.DropBefore(), "answer": fault.DropAfter()} {
		for n, reached := 0, true; reached; n++ {
			front(t, 1, func(t *testing.T, srv *zktest.Server, holds []*recipes.Hold, waiter *testlock.Attempt) {
				lost := srv.On(fault.Match{Client: "waiter", Path: "/sem", Skip: n}, action)
				release(t, holds...)
				hold, err := waiter.Wait()
				require.NoError(t, err, "%s %d lost", name, n)
				reached = lost.Hits() > 0
				release(t, hold)
			})
			require.True(t, reached || n > 1, "it reads the leases and takes a permit")
		}
	}
}

func TestWaitThatEndsDuringARequestIsNotAcquired(t *testing.T) {
	for _, op := range []fault.Op{fault.OpGetChildren2, fault.OpGetData} {
		front(t, 2, func(t *testing.T, srv *zktest.Server, holds []*recipes.Hold, waiter *testlock.Attempt) {
			path := map[fault.Op]string{fault.OpGetChildren2: "/sem/leases", fault.OpGetData: "/limit"}[op]
			held := srv.On(fault.Match{Client: "waiter", Op: op, Path: path}, fault.Hold())
			require.NoError(t, srv.Set("/limit", number(2)))
			release(t, holds[0])
			require.NoError(t, held.Wait(t.Context()))
			waiter.Cancel()
			_, err := waiter.Wait()
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, err, recipes.ErrNotAcquired, "one of two permits was never free")
			held.Release()
			release(t, holds[1])
		})
	}
}

func TestRevocationOfAWaiterReachesItsHold(t *testing.T) {
	for _, late := range []bool{false, true} { // just before the queue node is exchanged for a permit
		front(t, 1, func(t *testing.T, srv *zktest.Server, holds []*recipes.Hold, waiter *testlock.Attempt) {
			c := client(t, srv, "other")
			queue, err := newSemaphore(t, c, "/sem", 1).Participants(t.Context())
			require.NoError(t, err)
			exchange := srv.On(fault.Match{Client: "waiter", Op: fault.OpMulti}, fault.Hold())
			if late {
				release(t, holds...)
				require.NoError(t, exchange.Wait(t.Context()))
			}
			require.NoError(t, recipes.Revoke(t.Context(), c, queue[len(queue)-1]))
			if !late {
				time.Sleep(time.Second)
				release(t, holds...)
			}
			exchange.Release()
			hold := waiter.Won(t)
			testzk.Closes(t, hold.Revoked(), "the revocation was lost with the queue node")
			release(t, hold)
		})
	}
}
