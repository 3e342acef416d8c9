package semaphore_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/semaphore"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

func TestSeveralPermitsAreAcquiredAllOrNone(t *testing.T) {
	path := testzk.Path(t)
	opts, waits := testzk.Waiting(t)
	s := newSemaphore(t, testzk.Connected(t, testzk.Connect(), opts...), path, 3)
	one := acquire(t, s, 1)
	refused(t, s, 3)
	late := start(t, s, 3)
	waits()
	late.Cancel()
	_, err := late.Wait()
	require.ErrorIs(t, err, recipes.ErrNotAcquired)
	crowd(t, s, 1, 0)
	two := acquire(t, s, 2)
	require.Len(t, two.Paths(), 2)
	require.Len(t, two.Tokens(), 1, "one transaction")
	refused(t, s, 1)
	waiter := start(t, s, 3)
	crowd(t, s, 3, 1)
	release(t, one)
	crowd(t, s, 2, 1)
	require.True(t, waiter.Waiting(), "with two of three")
	release(t, two)
	release(t, waiter.Won(t))
	empty(t, path)
}

// In Curator each client takes one permit and waits for the other's.
func TestTwoClientsGetAllPermitsOneAfterTheOther(t *testing.T) {
	path := testzk.Path(t)
	for range 10 {
		a, b := start(t, another(t, path, 2), 2), start(t, another(t, path, 2), 2)
		winner, loser := a, b
		select {
		case <-a.Done():
		case <-b.Done():
			winner, loser = b, a
		}
		hold := winner.Won(t)
		crowd(t, another(t, path, 2), 2, 1)
		require.True(t, loser.Waiting())
		release(t, hold)
		release(t, loser.Won(t))
	}
	empty(t, path)
}

func TestLargeRequestIsNotStarvedBySmallOnesBehindIt(t *testing.T) {
	path := testzk.Path(t)
	s := another(t, path, 3)
	holds := []*recipes.Hold{acquire(t, s, 1), acquire(t, s, 1)}
	large := start(t, another(t, path, 3), 3)
	crowd(t, s, 2, 1)
	small := start(t, another(t, path, 3), 1)
	crowd(t, s, 2, 2)
	refused(t, s, 1)
	release(t, holds[0])
	crowd(t, s, 1, 2)
	require.True(t, small.Waiting(), "a permit is free, but another waiter is ahead")
	release(t, holds[1])
	hold := large.Won(t)
	require.True(t, small.Waiting())
	release(t, hold)
	release(t, small.Won(t))
}

func TestImpossibleNumberIsRefusedAtOnce(t *testing.T) {
	s := another(t, testzk.Path(t), 3)
	ctx := testzk.Context(t)
	for n, says := range map[int]string{
		0: "permits 0", -1: "permits -1", 1 << 31: "permits 2147483648", 4: "4 permits, the limit is 3",
	} {
		for _, acquire := range []func(context.Context, int) (*recipes.Hold, error){s.AcquireN, s.TryAcquireN} {
			_, err := acquire(ctx, n)
			require.ErrorContains(t, err, says)
			require.NotErrorIs(t, err, recipes.ErrNotAcquired)
		}
	}
	_, err := s.AcquireN(ctx, 4)
	require.ErrorIs(t, err, semaphore.ErrLimit)
}

// The request is not built node by node before its size is checked.
func TestTooManyForATransactionIsRefusedWithoutARequest(t *testing.T) {
	withRequests(t, func(t *testing.T, srv *zktest.Server, asked func(string) string) {
		s := newSemaphore(t, client(t, srv, "c"), "/sem", math.MaxInt32)
		_, err := s.Participants(t.Context())
		require.NoError(t, err)
		asked("c")
		for _, acquire := range []func(context.Context, int) (*recipes.Hold, error){s.AcquireN, s.TryAcquireN} {
			_, err := acquire(t.Context(), 1<<20)
			require.ErrorIs(t, err, framework.ErrTooLarge)
		}
		require.Empty(t, asked("c"))
	})
}

func TestReleaseFreesAllPermitsInOneRequest(t *testing.T) {
	p := testzk.Proxy(t)
	path := testzk.Path(t)
	s := newSemaphore(t, testzk.Connected(t, p.Addr()), path, 3, semaphore.WithSlots())
	hold := acquire(t, s, 3)
	require.Len(t, hold.Paths(), 3)
	p.ResetCounts()
	release(t, hold)
	require.Equal(t, 1, p.Requests()[fault.OpMulti])
	require.Zero(t, p.Requests()[fault.OpDelete])
	empty(t, path)
}

func TestDeletionOfOneNodeEndsTheHold(t *testing.T) {
	t.Parallel()
	for i := range 2 {
		path := testzk.Path(t)
		s := another(t, path, 2, semaphore.WithSlots())
		hold := acquire(t, s, 2)
		waiter := start(t, another(t, path, 2, semaphore.WithSlots()), 2)
		crowd(t, s, 2, 1)
		require.NoError(t, testzk.Observer(t).Delete(hold.Paths()[i], -1))
		testzk.Closes(t, hold.Done(), "the hold does not report its loss")
		require.ErrorIs(t, hold.Err(), recipes.ErrNodeDeleted)
		require.ErrorContains(t, hold.Err(), hold.Paths()[i])
		require.ErrorIs(t, hold.Release(), recipes.ErrNodeDeleted)
		release(t, waiter.Won(t))
		empty(t, path)
	}
}

func TestReleaseDeletesTheOtherNodesOfALostHold(t *testing.T) {
	path := testzk.Path(t)
	s := another(t, path, 3)
	hold := acquire(t, s, 3)
	require.NoError(t, testzk.Observer(t).Delete(hold.Paths()[1], -1))
	require.ErrorIs(t, hold.Release(), recipes.ErrNodeDeleted)
	empty(t, path)
}

// A large request at the front of the queue collects the permits that a stream of small ones
// releases.
func TestLargeRequestIsServedAmongManySmallOnes(t *testing.T) {
	sim.Run(t, 20, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		const limit = 3
		ctx, cancel := context.WithCancel(t.Context())
		var small []<-chan error
		for i := range 4 {
			s := newSemaphore(t, client(t, srv, string(rune('a'+i))), "/sem", limit)
			pace := time.Duration(1 + random.Int64N(int64(100*time.Millisecond)))
			ended := make(chan error, 1)
			go func() {
				var err error
				for ctx.Err() == nil && err == nil {
					var hold *recipes.Hold
					if hold, err = s.Acquire(t.Context()); err == nil {
						time.Sleep(pace)
						err = hold.Release()
					}
				}
				ended <- err
			}()
			small = append(small, ended)
		}
		s := newSemaphore(t, client(t, srv, "large"), "/sem", limit)
		for range 5 {
			began := time.Now()
			hold := acquire(t, s, limit)
			require.Less(t, time.Since(began), time.Second)
			release(t, hold)
		}
		cancel()
		for _, ended := range small {
			require.NoError(t, <-ended)
		}
		requireEmpty(t, srv, "/sem")
	})
}
