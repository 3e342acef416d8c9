package semaphore_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/semaphore"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// withRequests runs a test on a server. asked returns the requests of a client since the last call,
// without heartbeats.
func withRequests(t *testing.T, test func(t *testing.T, srv *zktest.Server, asked func(name string) string)) {
	t.Helper()
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		sent := testlock.RequestsOn(srv)
		test(t, srv, func(name string) string {
			testlock.Settle()
			return sent.Of(name)
		})
	})
}

func TestUncontendedAcquireAndReleaseAreOneRequestEach(t *testing.T) {
	for _, opts := range [][]semaphore.Option{nil, {semaphore.WithSharedLimit("/limit")}} {
		for n, releases := range map[int]string{1: "delete", 5: "multi"} {
			withRequests(t, func(t *testing.T, srv *zktest.Server, asked func(string) string) {
				s := newSemaphore(t, client(t, srv, "c"), "/sem", 5, opts...)
				release(t, acquire(t, s, 1)) // creates the directories
				asked("c")
				hold := acquire(t, s, n)
				require.Equal(t, "multi", asked("c"))
				release(t, hold)
				require.Equal(t, releases, asked("c"))
			})
		}
	}
}

func TestSlotsNeedOneMoreRead(t *testing.T) {
	withRequests(t, func(t *testing.T, srv *zktest.Server, asked func(string) string) {
		s := newSemaphore(t, client(t, srv, "c"), "/sem", 5, semaphore.WithSlots())
		release(t, acquire(t, s, 1))
		asked("c")
		hold := acquire(t, s, 3)
		require.Equal(t, "getChildren2 multi", asked("c"))
		release(t, hold)
		require.Equal(t, "multi", asked("c"))
	})
}

func TestFailedTryAcquireIsTwoReads(t *testing.T) {
	for name, opts := range map[string][]semaphore.Option{"fixed": nil, "slots": {semaphore.WithSlots()}} {
		withRequests(t, func(t *testing.T, srv *zktest.Server, asked func(string) string) {
			s := newSemaphore(t, client(t, srv, "c"), "/sem", 2, opts...)
			release(t, acquire(t, s, 1))
			hold := acquire(t, newSemaphore(t, client(t, srv, "other"), "/sem", 2, opts...), 2)
			asked("c")
			refused(t, s, 1)
			require.Equal(t, "getChildren2 getChildren2", asked("c"), name)
			release(t, hold)
		})
	}
}

func TestTryAcquireReadsASharedLimitBeforeItFails(t *testing.T) {
	withRequests(t, func(t *testing.T, srv *zktest.Server, asked func(string) string) {
		shared := semaphore.WithSharedLimit("/limit")
		s := newSemaphore(t, client(t, srv, "c"), "/sem", 2, shared)
		hold := acquire(t, s, 2)
		asked("c")
		refused(t, s, 1)
		require.Equal(t, "getChildren2 getChildren2 getData", asked("c"))
		release(t, hold)
	})
}

func TestTryAcquireNeedsTwoMoreReads(t *testing.T) {
	withRequests(t, func(t *testing.T, srv *zktest.Server, asked func(string) string) {
		s := newSemaphore(t, client(t, srv, "c"), "/sem", 2)
		release(t, acquire(t, s, 1))
		asked("c")
		hold, err := s.TryAcquireN(t.Context(), 2)
		require.NoError(t, err)
		require.Equal(t, "getChildren2 getChildren2 multi", asked("c"))
		release(t, hold)
	})
}

// The first waiter reads the leases whenever they change. When enough permits are free, it
// exchanges its queue node for them.
func TestFirstWaiterReadsTheLeasesAndExchangesItsNode(t *testing.T) {
	withRequests(t, func(t *testing.T, srv *zktest.Server, asked func(string) string) {
		holder := newSemaphore(t, client(t, srv, "holder"), "/sem", 1)
		release(t, acquire(t, holder, 1))
		s := newSemaphore(t, client(t, srv, "c"), "/sem", 1)
		release(t, acquire(t, s, 1))
		hold := acquire(t, holder, 1)
		asked("c")
		waiter := start(t, s, 1)
		time.Sleep(50 * time.Millisecond)
		require.Equal(t, "multi delete create getChildren2 getChildren2 getData", asked("c"),
			"deletes its lease, enqueues and lists the queue, lists the leases, watches its own node")
		release(t, hold)
		hold = waiter.Won(t)
		require.Equal(t, "getChildren2 multi", asked("c"))
		release(t, hold)
		require.Equal(t, "delete", asked("c"))

		hold = acquire(t, holder, 1)
		waiter = start(t, s, 1)
		require.Equal(t, "create getChildren2 getChildren2 getData", asked("c"),
			"it had to wait the last time, so it enqueues at once")
		release(t, hold)
		release(t, waiter.Won(t))
		asked("c")
		release(t, acquire(t, s, 1))
		require.Equal(t, "create getChildren2 getChildren2 multi delete", asked("c"), "it enqueues at once again")
		release(t, acquire(t, s, 1))
		require.Equal(t, "multi delete", asked("c"), "it does not after an acquire without waiting")
	})
}

func TestNextAcquireAfterAWaitEnqueuesAtOnce(t *testing.T) {
	withRequests(t, func(t *testing.T, srv *zktest.Server, asked func(string) string) {
		s := newSemaphore(t, client(t, srv, "c"), "/sem", 1)
		release(t, acquire(t, s, 1))
		hold := acquire(t, newSemaphore(t, client(t, srv, "holder"), "/sem", 1), 1)
		impatient := start(t, s, 1)
		time.Sleep(time.Second)
		impatient.Cancel()
		_, err := impatient.Wait()
		require.ErrorIs(t, err, recipes.ErrNotAcquired)
		release(t, hold)
		asked("c")
		release(t, acquire(t, s, 1))
		require.Equal(t, "create getChildren2 getChildren2 multi delete", asked("c"))
	})
}

func TestSecondWaiterReadsTheQueueOnceAndWatchesTwoNodes(t *testing.T) {
	withRequests(t, func(t *testing.T, srv *zktest.Server, asked func(string) string) {
		hold := acquire(t, newSemaphore(t, client(t, srv, "holder"), "/sem", 1), 1)
		first := start(t, newSemaphore(t, client(t, srv, "first"), "/sem", 1), 1)
		time.Sleep(time.Second)
		require.True(t, first.Waiting())
		s := newSemaphore(t, client(t, srv, "c"), "/sem", 1)
		acquireAndRelease := start(t, s, 1)
		time.Sleep(time.Second)
		require.True(t, acquireAndRelease.Waiting())
		require.Regexp(t, `multi delete create getChildren2 getData getData$`, asked("c"))
		release(t, hold)
		time.Sleep(50 * time.Millisecond)
		require.Equal(t, "getChildren2", asked("c"), "the leases: it is the first waiter now, and all permits are held")
		release(t, first.Won(t))
		release(t, acquireAndRelease.Won(t))
	})
}
