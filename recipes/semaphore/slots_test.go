package semaphore_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/semaphore"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

func TestSlotsAreTheSmallestFreeNumbers(t *testing.T) {
	root := testzk.Path(t)
	s := another(t, root, 4, semaphore.WithSlots())
	one, two := acquire(t, s, 1), acquire(t, s, 2)
	require.Equal(t, []int{0}, semaphore.Slots(one))
	require.Equal(t, []int{1, 2}, semaphore.Slots(two))
	release(t, one)
	again := acquire(t, another(t, root, 4, semaphore.WithSlots()), 2)
	require.Equal(t, []int{0, 3}, semaphore.Slots(again))
	require.Regexp(t, `^`+root+`/leases/_c_[0-9a-f-]{36}-slot-3-lease-\d{10}$`, again.Paths()[1],
		"the name of the lease has the slot")
	release(t, two, again)
	require.Equal(t, []int{0, 3}, semaphore.Slots(again), "also after the release")
	empty(t, root)
}

func TestHoldsWithoutSlotsHaveNone(t *testing.T) {
	hold := acquire(t, another(t, testzk.Path(t)+"/slots", 2), 2) // the path does not matter
	require.Nil(t, semaphore.Slots(hold))
	require.Nil(t, semaphore.Slots(new(recipes.Hold)))
	release(t, hold)
}

func TestSlotsOfLivePermitsAreDistinctAndBelowTheLimit(t *testing.T) {
	const limit, clients, turns = 3, 5, 8
	root := testzk.Path(t)
	var mu sync.Mutex
	taken := map[int]bool{}
	take := func(hold *recipes.Hold) {
		mu.Lock()
		defer mu.Unlock()
		require.Len(t, semaphore.Slots(hold), len(hold.Paths()))
		for _, slot := range semaphore.Slots(hold) {
			require.True(t, 0 <= slot && slot < limit, "slot %d", slot)
			require.False(t, taken[slot], "slot %d is in use", slot)
			taken[slot] = true
		}
	}
	give := func(hold *recipes.Hold) {
		mu.Lock()
		defer mu.Unlock()
		for _, slot := range semaphore.Slots(hold) {
			delete(taken, slot)
		}
	}
	var running sync.WaitGroup
	for range clients {
		s := another(t, root, limit, semaphore.WithSlots())
		running.Go(func() {
			for range turns {
				hold := acquire(t, s, 1+rand.IntN(2))
				take(hold)
				give(hold)
				release(t, hold)
			}
		})
	}
	running.Wait()
	empty(t, root)
}

func TestSlotsAboveALoweredLimitAreNotUsed(t *testing.T) {
	root := testzk.Path(t)
	s := another(t, root, 4, semaphore.WithSlots(), semaphore.WithSharedLimit(root+"-limit"))
	low, high := acquire(t, s, 3), acquire(t, s, 1)
	require.Equal(t, []int{3}, semaphore.Slots(high))
	require.NoError(t, s.SetLimit(testzk.Context(t), 2))
	release(t, low)
	hold := acquire(t, s, 1)
	require.Equal(t, []int{0}, semaphore.Slots(hold))
	refused(t, s, 1)
	release(t, high)
	more := acquire(t, s, 1)
	require.Equal(t, []int{1}, semaphore.Slots(more))
	release(t, hold, more)
}

func TestPermitsWithAndWithoutSlotsCountTogether(t *testing.T) {
	root := testzk.Path(t)
	with, without := another(t, root, 2, semaphore.WithSlots()), another(t, root, 2)
	a, b := acquire(t, with, 1), acquire(t, without, 1)
	refused(t, with, 1)
	refused(t, without, 1)
	release(t, a, b)
}

func TestSlotTakenBeforeTheTransactionIsNotShared(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		a := newSemaphore(t, client(t, srv, "a"), "/sem", 3, semaphore.WithSlots())
		b := newSemaphore(t, client(t, srv, "b"), "/sem", 3, semaphore.WithSlots())
		release(t, acquire(t, a, 1), acquire(t, b, 1))
		held := srv.On(fault.Match{Client: "a", Op: fault.OpMulti}, fault.Hold())
		late := start(t, a, 1)
		require.NoError(t, held.Wait(t.Context()))
		early := acquire(t, b, 1)
		held.Release()
		require.Equal(t, []int{0}, semaphore.Slots(early))
		require.Equal(t, []int{1}, semaphore.Slots(late.Won(t)))
		release(t, early, late.Won(t))
		requireEmpty(t, srv, "/sem")
	})
}

// The reply is lost, or comes after the acquire has returned. The permits are taken by a direct
// acquire or by a waiter.
func TestNoSlotIsLeakedByALostReplyOrAnAbandonedAcquire(t *testing.T) {
	for _, queued := range []bool{false, true} {
		for name, action := range map[string]fault.Action{
			"lost before": fault.DropBefore(), "lost after": fault.DropAfter(), "late": fault.Delay(time.Second),
		} {
			for _, leaves := range []bool{false, true} {
				sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
					t.Logf("queued: %v, %s, leaves: %v", queued, name, leaves)
					abandon(t, srv, queued, action, leaves)
				})
			}
		}
	}
}

func abandon(t *testing.T, srv *zktest.Server, queued bool, action fault.Action, leaves bool) {
	policy := framework.WithRetry(retry.Forever(100 * time.Millisecond))
	if leaves {
		policy = framework.WithRetry(retry.Never())
	}
	holder := newSemaphore(t, client(t, srv, "holder"), "/sem", 3, semaphore.WithSlots())
	hold := acquire(t, holder, 2)
	target := client(t, srv, "target", policy)
	require.NoError(t, target.WaitConnected(t.Context()))
	s := newSemaphore(t, target, "/sem", 3, semaphore.WithSlots())
	release(t, acquire(t, s, 1))
	match := fault.Match{Client: "target", Op: fault.OpMulti, Path: "/sem"}
	if queued {
		refused(t, s, 2)
	}
	rule := srv.On(match, action)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	if leaves {
		cancel()
		ctx, cancel = context.WithTimeout(t.Context(), 500*time.Millisecond)
	}
	defer cancel()
	n := 1
	if queued {
		n = 2
		time.AfterFunc(100*time.Millisecond, func() { _ = hold.Release() })
	}
	got, err := s.AcquireN(ctx, n)
	if err == nil {
		require.Len(t, semaphore.Slots(got), n)
		release(t, got)
	}
	time.Sleep(2 * simTimeout)
	require.Equal(t, 1, rule.Hits())
	_ = hold.Release()
	all := acquire(t, holder, 3)
	require.Equal(t, []int{0, 1, 2}, semaphore.Slots(all), "all slots are free")
	release(t, all)
	requireEmpty(t, srv, "/sem")
}
