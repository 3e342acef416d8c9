package semaphore_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/semaphore"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

func TestFixedLimitIsRecordedInTheSemaphoresNode(t *testing.T) {
	path := testzk.Path(t)
	s := another(t, path, 258)
	release(t, acquire(t, s, 1))
	data, _, err := testzk.Observer(t).Get(path)
	require.NoError(t, err)
	require.Equal(t, []byte{0, 0, 1, 2}, data)
	limit, err := s.Limit(testzk.Context(t))
	require.NoError(t, err)
	require.Equal(t, 258, limit)
	require.ErrorIs(t, s.SetLimit(testzk.Context(t), 5), semaphore.ErrLimit)
}

// disagree checks that a client with another number gets an error that names both numbers.
func disagree(t *testing.T, s *semaphore.Semaphore, mine, theirs string) {
	t.Helper()
	for range 2 { // the same with what the first call has learned
		_, err := s.Acquire(testzk.Context(t))
		require.ErrorIs(t, err, semaphore.ErrLimit)
		require.ErrorContains(t, err, mine+" here")
		require.ErrorContains(t, err, "the clients that use it have "+theirs)
		_, err = s.TryAcquire(testzk.Context(t))
		require.ErrorIs(t, err, semaphore.ErrLimit)
		_, err = s.Limit(testzk.Context(t))
		require.ErrorIs(t, err, semaphore.ErrLimit)
	}
}

func TestDisagreementIsAnErrorWhileTheSemaphoreIsInUse(t *testing.T) {
	path := testzk.Path(t)
	three, five := another(t, path, 3), another(t, path, 5)
	hold := acquire(t, three, 1)
	disagree(t, five, "5", "3")
	crowd(t, three, 1, 0)
	release(t, hold)
	testzk.Everywhere(t)
	hold = acquire(t, five, 5) // the semaphore was unused, so the newcomer's number counts
	data, _, err := testzk.Observer(t).Get(path)
	require.NoError(t, err)
	require.Equal(t, number(5), data)
	disagree(t, three, "3", "5")
	release(t, hold)
	testzk.Everywhere(t)
	hold = acquire(t, three, 3)
	disagree(t, five, "5", "3")
	release(t, hold)
	empty(t, path)
}

// The cause of the caller's canceled context is no answer of the servers, even if it looks like
// one.
func TestCancelCauseIsNotTakenForAnUnreadableLimit(t *testing.T) {
	p := testzk.Proxy(t)
	path := testzk.Path(t)
	three, five := newSemaphore(t, testzk.Connected(t, p.Addr()), path, 3), another(t, path, 5)
	hold := acquire(t, five, 1)
	read := p.On(fault.Match{Op: fault.OpGetData, Path: path}, fault.Hold())
	ctx, cancel := context.WithCancelCause(testzk.Context(t))
	result := make(chan error, 1)
	go func() {
		_, err := three.Acquire(ctx)
		result <- err
	}()
	require.NoError(t, read.Wait(testzk.Context(t)))
	cancel(zk.ErrNoAuth)
	require.ErrorIs(t, <-result, context.Canceled)
	read.Release()
	disagree(t, three, "3", "5")
	release(t, hold)
}

// A waiter uses the semaphore too, even if no permit is held.
func TestLimitIsInUseWhileAClientWaits(t *testing.T) {
	path := testzk.Path(t)
	c := testzk.Connected(t, testzk.Connect())
	release(t, acquire(t, newSemaphore(t, c, path, 3), 1))
	require.NoError(t, c.CreateContainers(testzk.Context(t), path+"/locks"))
	waiter, err := testzk.Observer(t).Create(path+"/locks/lock-", nil,
		zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	five := another(t, path, 5)
	_, err = five.Acquire(testzk.Context(t))
	require.ErrorIs(t, err, semaphore.ErrLimit)
	require.NoError(t, c.Delete(testzk.Context(t), waiter, -1))
	testzk.Everywhere(t)
	release(t, acquire(t, five, 5))
}

func TestForeignDataOfTheNodeIsUnchanged(t *testing.T) {
	for _, data := range []string{"x", "precious", "abc"} {
		path := testzk.Path(t)
		c := testzk.Connected(t, testzk.Connect())
		_, err := c.Create(testzk.Context(t), path, []byte(data), framework.Parents())
		require.NoError(t, err)
		s := newSemaphore(t, c, path, 2)
		hold := acquire(t, s, 2)
		refused(t, s, 1)
		got, stat, err := testzk.Observer(t).Get(path)
		require.NoError(t, err)
		require.Equal(t, data, string(got))
		require.Zero(t, stat.Version)
		limit, err := s.Limit(testzk.Context(t))
		require.NoError(t, err)
		require.Equal(t, 2, limit)
		release(t, hold)
	}
}

func TestSemaphoreWorksWithoutAccessToItsNode(t *testing.T) {
	for name, perms := range map[string]int32{
		"not read":    zk.PermAll &^ zk.PermRead,
		"not written": zk.PermAll &^ zk.PermWrite,
		"neither":     zk.PermCreate | zk.PermDelete | zk.PermAdmin,
	} {
		t.Run(name, func(t *testing.T) {
			path := testzk.Path(t)
			c := testzk.Connected(t, testzk.Connect())
			require.NoError(t, c.CreateContainers(testzk.Context(t), path))
			testzk.Permit(t, path, perms)
			s := newSemaphore(t, c, path, 2)
			hold := acquire(t, s, 2)
			waiter := start(t, s, 1)
			crowd(t, s, 2, 1)
			release(t, hold)
			release(t, waiter.Won(t))
			empty(t, path)
		})
	}
}

// When the first transaction comes, the recorded limit is 5, and the semaphore is in use.
func TestLimitReplacedBeforeTheTransactionIsNoticed(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		three := newSemaphore(t, client(t, srv, "three"), "/sem", 3)
		five := newSemaphore(t, client(t, srv, "five"), "/sem", 5)
		release(t, acquire(t, three, 1))
		held := srv.On(fault.Match{Client: "three", Op: fault.OpMulti}, fault.Hold())
		late := start(t, three, 1)
		require.NoError(t, held.Wait(t.Context()))
		hold := acquire(t, five, 5)
		held.Release()
		_, err := late.Wait()
		require.ErrorIs(t, err, semaphore.ErrLimit)
		release(t, hold)
		requireEmpty(t, srv, "/sem")
	})
}

// Servers delete the node while the semaphore is unused. The next client may record another number
// in a new node of the same version.
func TestLimitOfARecreatedNodeIsNoticed(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		three := newSemaphore(t, client(t, srv, "three"), "/sem", 3)
		five := newSemaphore(t, client(t, srv, "five"), "/sem", 5)
		release(t, acquire(t, three, 1))
		require.NoError(t, srv.Delete("/sem"))
		hold := acquire(t, five, 1)
		_, err := three.Acquire(t.Context())
		require.ErrorIs(t, err, semaphore.ErrLimit)
		release(t, hold)
		release(t, acquire(t, three, 1))
		requireEmpty(t, srv, "/sem")
	})
}

// A client may record another number while the semaphore is unused. It must not if the semaphore is
// used by then.
func TestLimitIsNotReplacedOnceTheSemaphoreIsUsed(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		three := newSemaphore(t, client(t, srv, "three"), "/sem", 3)
		five := newSemaphore(t, client(t, srv, "five"), "/sem", 5)
		release(t, acquire(t, three, 1))
		held := srv.On(fault.Match{Client: "five", Op: fault.OpMulti, Path: "/sem"}, fault.Hold())
		heldSet := srv.On(fault.Match{Client: "five", Op: fault.OpSetData, Path: "/sem"}, fault.Hold())
		late := start(t, five, 1)
		time.Sleep(time.Second)
		hold := acquire(t, three, 1)
		held.Remove()
		heldSet.Remove()
		_, err := late.Wait()
		require.ErrorIs(t, err, semaphore.ErrLimit)
		release(t, hold)
		release(t, acquire(t, five, 5))
		requireEmpty(t, srv, "/sem")
	})
}
