package semaphore_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/semaphore"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

func limitOf(t testing.TB, s *semaphore.Semaphore) int {
	t.Helper()
	limit, err := s.Limit(testzk.Context(t))
	require.NoError(t, err)
	return limit
}

// The limit has the format of Curator's SharedCount: a persistent node with four bytes, big endian.
// The first client creates it.
func TestSharedLimitIsCreatedOnceAndUsedByOthers(t *testing.T) {
	path := testzk.Path(t)
	node := path + "/deep/limit"
	first := another(t, path, 258, semaphore.WithSharedLimit(node))
	release(t, acquire(t, first, 1))
	o := testzk.Observer(t)
	data, stat, err := o.Get(node)
	require.NoError(t, err)
	require.Equal(t, []byte{0, 0, 1, 2}, data)
	require.Zero(t, stat.EphemeralOwner)
	own, _, err := o.Get(path)
	require.NoError(t, err)
	require.Empty(t, own, "the semaphore's own node")
	second := another(t, path, 7, semaphore.WithSharedLimit(node))
	release(t, acquire(t, second, 258))
	require.Equal(t, 258, limitOf(t, second))
	data, _, err = o.Get(node)
	require.NoError(t, err)
	require.Equal(t, number(258), data)
}

func TestEmptyNodeOfASharedLimitIsInitialized(t *testing.T) {
	path := testzk.Path(t)
	c := testzk.Connected(t, testzk.Connect())
	_, err := c.Create(testzk.Context(t), path+"/limit", nil, framework.Parents())
	require.NoError(t, err)
	s := newSemaphore(t, c, path, 2, semaphore.WithSharedLimit(path+"/limit"))
	hold := acquire(t, s, 2)
	refused(t, s, 1)
	release(t, hold)
	data, _, err := testzk.Observer(t).Get(path + "/limit")
	require.NoError(t, err)
	require.Equal(t, number(2), data)
}

// The servers delete an empty container at the semaphore's path or above it. A limit there would be
// lost.
func TestSharedLimitInTheSemaphoresPathIsRefused(t *testing.T) {
	c := testzk.Client(t, testzk.Connect())
	for _, node := range []string{"/a/b/c", "/a/b", "/a"} {
		_, err := semaphore.New(c, "/a/b/c", 2, semaphore.WithSharedLimit(node))
		require.ErrorIs(t, err, framework.ErrInvalidPath, node)
		require.ErrorContains(t, err, fmt.Sprintf("%q: a container", node))
		require.ErrorContains(t, err, `such as "/a/b/c-limit"`)
	}
	for _, node := range []string{"/a/b/c-limit", "/a/b/c/limit", "/a/b/d", "/ab"} {
		_, err := semaphore.New(c, "/a/b/c", 2, semaphore.WithSharedLimit(node))
		require.NoError(t, err, node)
	}
}

// A limit that was set survives the deletion of all other nodes of the semaphore.
func TestSharedLimitSurvivesTheSemaphoresNodes(t *testing.T) {
	for _, node := range []string{"/sem-limit", "/sem/limit"} {
		sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
			c := client(t, srv, "c")
			release(t, acquire(t, newSemaphore(t, c, "/sem", 5), 1)) // creates the containers
			s := newSemaphore(t, c, "/sem", 5, semaphore.WithSharedLimit(node))
			require.NoError(t, s.SetLimit(t.Context(), 2))
			release(t, acquire(t, s, 1))
			time.Sleep(reaped)
			require.False(t, srv.Exists("/sem/leases"))
			require.Equal(t, 2, limitOf(t, newSemaphore(t, c, "/sem", 5, semaphore.WithSharedLimit(node))))
		}, containers)
	}
}

var garbage = map[string][]byte{"three bytes": []byte("abc"), "a text": []byte("many" + "more"), "negative": number(-1)}

func TestLimitThatCannotBeReadIsAnErrorWithItsValue(t *testing.T) {
	for name, data := range garbage {
		path := testzk.Path(t)
		c := testzk.Connected(t, testzk.Connect())
		_, err := c.Create(testzk.Context(t), path+"/limit", data, framework.Parents())
		require.NoError(t, err)
		s := newSemaphore(t, c, path, 2, semaphore.WithSharedLimit(path+"/limit"))
		says := map[string]string{
			"three bytes": `"abc"`, "a text": `"manymore"`, "negative": `"\xff\xff\xff\xff"`,
		}[name]
		for _, try := range []func(context.Context) (*recipes.Hold, error){s.Acquire, s.TryAcquire} {
			_, err = try(testzk.Context(t))
			require.ErrorIs(t, err, semaphore.ErrLimit, name)
			require.ErrorContains(t, err, says, name)
			require.ErrorContains(t, err, path+"/limit", name)
		}
		_, err = s.Limit(testzk.Context(t))
		require.ErrorIs(t, err, semaphore.ErrLimit, name)
		require.ErrorContains(t, err, "limit of "+path, name)
		require.NoError(t, s.SetLimit(testzk.Context(t), 1), "which repairs it")
		release(t, acquire(t, s, 1))
	}
}

func TestLimitThatBecomesUnreadableEndsTheWait(t *testing.T) {
	for name, data := range garbage {
		path := testzk.Path(t)
		s := another(t, path, 1, semaphore.WithSharedLimit(path+"/limit"))
		hold := acquire(t, s, 1)
		waiter := start(t, another(t, path, 1, semaphore.WithSharedLimit(path+"/limit")), 1)
		crowd(t, s, 1, 1)
		_, err := testzk.Observer(t).Set(path+"/limit", data, -1)
		require.NoError(t, err)
		_, err = waiter.Wait()
		require.ErrorIs(t, err, semaphore.ErrLimit, name)
		crowd(t, s, 1, 0)
		require.NoError(t, hold.Err())
		release(t, hold)
	}
}

func TestUnreadableSharedLimitIsReturnedAsAnError(t *testing.T) {
	path := testzk.Path(t)
	c := testzk.Connected(t, testzk.Connect())
	_, err := c.Create(testzk.Context(t), path+"/limit", number(1), framework.Parents())
	require.NoError(t, err)
	testzk.Permit(t, path+"/limit", zk.PermAdmin)
	s := newSemaphore(t, c, path, 1, semaphore.WithSharedLimit(path+"/limit"))
	_, err = s.Acquire(testzk.Context(t))
	require.ErrorIs(t, err, zk.ErrNoAuth)
	require.ErrorIs(t, s.SetLimit(testzk.Context(t), 1), zk.ErrNoAuth)
	empty(t, path)
}

func TestRaisedLimitAdmitsWaitersInTheirOrder(t *testing.T) {
	path := testzk.Path(t)
	s := another(t, path, 5, semaphore.WithSharedLimit(path+"/limit"))
	hold := acquire(t, s, 5)
	var waiters []*testlock.Attempt
	for i := range 10 {
		waiters = append(waiters, start(t, another(t, path, 1, semaphore.WithSharedLimit(path+"/limit")), 1))
		crowd(t, s, 5, i+1)
	}
	require.NoError(t, s.SetLimit(testzk.Context(t), 8))
	require.Equal(t, 8, limitOf(t, s))
	for _, w := range waiters[:3] {
		w.Won(t)
	}
	crowd(t, s, 8, 7)
	require.NoError(t, waiters[2].Won(t).Err())
	refused(t, s, 1)
	for _, w := range waiters[3:] {
		require.True(t, w.Waiting())
	}
	release(t, hold, waiters[0].Won(t), waiters[1].Won(t), waiters[2].Won(t))
	for _, w := range waiters[3:] {
		release(t, w.Won(t))
	}
	empty(t, path)
}

func TestLoweredLimitEndsNoHoldAndAdmitsNoWaiterBeforeReleases(t *testing.T) {
	path := testzk.Path(t)
	s := another(t, path, 3, semaphore.WithSharedLimit(path+"/limit"))
	holds := []*recipes.Hold{acquire(t, s, 1), acquire(t, s, 1), acquire(t, s, 1)}
	waiter := start(t, another(t, path, 3, semaphore.WithSharedLimit(path+"/limit")), 1)
	crowd(t, s, 3, 1)
	require.NoError(t, s.SetLimit(testzk.Context(t), 1))
	for i, h := range holds {
		require.NoError(t, h.Err())
		_, err := h.Guard(testzk.Context(t))
		require.NoError(t, err)
		refused(t, s, 1)
		require.True(t, waiter.Waiting())
		release(t, h)
		if i < len(holds)-1 {
			crowd(t, s, len(holds)-1-i, 1)
		}
	}
	hold := waiter.Won(t)
	refused(t, s, 1)
	release(t, hold)
	empty(t, path)
}

func TestLimitOfZeroAdmitsNoWaiterUntilItIsRaised(t *testing.T) {
	path := testzk.Path(t)
	s := another(t, path, 2, semaphore.WithSharedLimit(path+"/limit"))
	require.NoError(t, s.SetLimit(testzk.Context(t), 0))
	require.Equal(t, 0, limitOf(t, s))
	refused(t, s, 1)
	waiter := start(t, s, 1)
	crowd(t, s, 0, 1)
	require.True(t, waiter.Waiting())
	require.NoError(t, s.SetLimit(testzk.Context(t), 1))
	release(t, waiter.Won(t))
	for _, wrong := range []int{-1, 1 << 31} {
		require.ErrorIs(t, s.SetLimit(testzk.Context(t), wrong), semaphore.ErrLimit)
	}
	require.Equal(t, 1, limitOf(t, s))
}

// A request may exceed the current shared limit, because the limit may be raised later.
func TestRequestForMoreThanASharedLimitWaitsForItToBeRaised(t *testing.T) {
	path := testzk.Path(t)
	s := another(t, path, 2, semaphore.WithSharedLimit(path+"/limit"))
	refused(t, s, 3)
	waiter := start(t, s, 3)
	crowd(t, s, 0, 1)
	require.True(t, waiter.Waiting())
	require.NoError(t, s.SetLimit(testzk.Context(t), 3))
	release(t, waiter.Won(t))
}

// The request itself or a lowered limit may make an acquire block all others. The log has one
// message about that acquire.
func TestRequestForMoreThanASharedLimitIsLoggedWhenItBeginsToBlock(t *testing.T) {
	for name, lowered := range map[string]bool{"too many": false, "lowered": true} {
		sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
			core, logs := observer.New(zap.WarnLevel)
			c := client(t, srv, "c", framework.WithLogger(zap.New(core)))
			s := newSemaphore(t, c, "/sem", 4, semaphore.WithSharedLimit("/limit"))
			held := acquire(t, s, 1)
			if !lowered {
				require.NoError(t, s.SetLimit(t.Context(), 3))
			}
			a := start(t, s, 4)
			time.Sleep(time.Second)
			if lowered {
				require.Zero(t, logs.Len(), "it waits for a permit")
				require.NoError(t, s.SetLimit(t.Context(), 3))
				time.Sleep(time.Second)
			}
			require.Equal(t, 1, logs.Len(), name)
			entry := map[string]any{"path": "/sem", "permits": int64(4), "limit": int64(3)}
			require.Equal(t, entry, logs.All()[0].ContextMap())
			release(t, held)
			require.NoError(t, s.SetLimit(t.Context(), 2))
			time.Sleep(time.Second)
			require.True(t, a.Waiting())
			require.Equal(t, 1, logs.Len(), "%s: it reads the leases again without another message", name)
			refused(t, s, 4)
			require.Equal(t, 1, logs.Len(), "a try blocks no waiters")
			require.NoError(t, s.SetLimit(t.Context(), 4))
			release(t, a.Won(t))
		})
	}
}

// A client that only calls TryAcquire must learn of a new limit too.
func TestTryAcquireSeesALimitRaisedByAnotherClient(t *testing.T) {
	path := testzk.Path(t)
	s := another(t, path, 1, semaphore.WithSharedLimit(path+"/limit"))
	hold := acquire(t, s, 1)
	refused(t, s, 1)
	require.NoError(t, another(t, path, 1, semaphore.WithSharedLimit(path+"/limit")).SetLimit(testzk.Context(t), 3))
	testzk.Everywhere(t)
	more, err := s.TryAcquireN(testzk.Context(t), 2)
	require.NoError(t, err)
	release(t, hold, more)
}

func TestSetLimitCreatesAMissingNode(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		s := newSemaphore(t, client(t, srv, "c"), "/sem", 1, semaphore.WithSharedLimit("/deep/limit"))
		require.NoError(t, s.SetLimit(t.Context(), 7))
		data, err := srv.Get("/deep/limit")
		require.NoError(t, err)
		require.Equal(t, number(7), data)
		require.Equal(t, 7, limitOf(t, s))
	})
}

// The limit is lowered before the transaction that takes a permit. The transaction must not take it,
// both of a direct acquire and of a waiter. After 2^31 writes the version of the limit is negative,
// and -1 is a version that no request can check.
func TestLimitLoweredBeforeTheTransactionIsNotExceeded(t *testing.T) {
	for _, version := range []int32{0, math.MinInt32, -2, -1} {
		for _, queued := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d/%v", version, queued), func(t *testing.T) {
				limitIsLowered(t, version, queued)
			})
		}
	}
}

func limitIsLowered(t *testing.T, version int32, queued bool) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		require.NoError(t, srv.Create("/limit", number(3)))
		require.NoError(t, srv.SetVersion("/limit", version))
		shared := semaphore.WithSharedLimit("/limit")
		s := newSemaphore(t, client(t, srv, "s"), "/sem", 3, shared)
		late := newSemaphore(t, client(t, srv, "late"), "/sem", 3, shared)
		release(t, acquire(t, late, 1))
		hold := acquire(t, s, 2)
		var blocking *recipes.Hold
		if queued {
			blocking = acquire(t, s, 1)
		}
		match := fault.Match{Client: "late", Op: fault.OpMulti, Path: "/limit"}
		if queued {
			match.Skip = 1 // after the direct acquire
		}
		held := srv.On(match, fault.Hold())
		a := start(t, late, 1)
		if queued {
			time.Sleep(time.Second)
			release(t, blocking)
		}
		require.NoError(t, held.Wait(t.Context()))
		require.NoError(t, srv.Set("/limit", number(2))) // without the knowledge of any client
		held.Release()
		time.Sleep(time.Second)
		require.True(t, a.Waiting(), "queued: %v", queued)
		release(t, hold)
		release(t, a.Won(t))
		requireEmpty(t, srv, "/sem")
	})
}
