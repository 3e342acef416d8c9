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
	"github.com/docent-zk/docent/zktest/proxy"
	"github.com/docent-zk/docent/zktest/sim"
)

func TestFixedLimitIsNotedInTheSemaphoresNode(t *testing.T) {
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

// disagree checks that somebody with another number is told so, and gets nothing.
func disagree(t *testing.T, s *semaphore.Semaphore, mine, theirs string) {
	t.Helper()
	for range 2 { // the second time it is known no better
		_, err := s.Acquire(testzk.Context(t))
		require.ErrorIs(t, err, semaphore.ErrLimit)
		require.ErrorContains(t, err, mine+" here")
		require.ErrorContains(t, err, theirs+" for those who use it")
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
	hold = acquire(t, five, 5) // nobody used it, so it is the newcomer's number that counts
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

// What the caller's context was cancelled with is no answer of the servers, even if it looks like one.
func TestReasonOfTheCallersContextIsNotTakenForALimitThatMustNotBeRead(t *testing.T) {
	p := testzk.Proxy(t)
	path := testzk.Path(t)
	three, five := newSemaphore(t, testzk.Connected(t, p.Addr()), path, 3), another(t, path, 5)
	hold := acquire(t, five, 1)
	read := p.On(proxy.Match{Op: proxy.OpGetData, Path: path}, proxy.Hold())
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

// Who waits uses the semaphore too, even if there is nobody with a permit.
func TestSomebodyInLineKeepsTheLimit(t *testing.T) {
	path := testzk.Path(t)
	c := testzk.Connected(t, testzk.Connect())
	release(t, acquire(t, newSemaphore(t, c, path, 3), 1))
	require.NoError(t, c.CreateContainers(testzk.Context(t), path+"/locks"))
	place, err := testzk.Observer(t).Create(path+"/locks/lock-", nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	five := another(t, path, 5)
	_, err = five.Acquire(testzk.Context(t))
	require.ErrorIs(t, err, semaphore.ErrLimit)
	require.NoError(t, c.Delete(testzk.Context(t), place, -1))
	testzk.Everywhere(t)
	release(t, acquire(t, five, 5))
}

func TestDataThatIsNoLimitIsLeftAlone(t *testing.T) {
	for _, data := range []string{"x", "precious", "abc"} {
		path := testzk.Path(t)
		c := testzk.Connected(t, testzk.Connect())
		_, err := c.Create(testzk.Context(t), path, []byte(data), framework.WithParents())
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

func TestSemaphoreWhoseNodeMustNotBeReadOrWrittenWorksWithoutANote(t *testing.T) {
	for name, perms := range map[string]int32{
		"not read":    zk.PermAll &^ zk.PermRead,
		"not written": zk.PermAll &^ zk.PermWrite,
		"neither":     zk.PermCreate | zk.PermDelete | zk.PermAdmin,
	} {
		t.Run(name, func(t *testing.T) {
			path := testzk.Path(t)
			c := testzk.Connected(t, testzk.Connect())
			require.NoError(t, c.CreateContainers(testzk.Context(t), path))
			_, err := c.SetACL(testzk.Context(t), path, zk.WorldACL(perms), -1)
			require.NoError(t, err)
			s := newSemaphore(t, c, path, 2)
			hold := acquire(t, s, 2)
			waiter := start(t, s, 1)
			crowd(t, s, 2, 1)
			release(t, hold)
			release(t, waiter.won(t))
			empty(t, path)
		})
	}
}

// The note says 5 by the time the first one's transaction comes, and somebody uses it.
func TestLimitThatIsReplacedBetweenLookAndActIsNoticed(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		three, five := newSemaphore(t, client(t, srv, "three"), "/sem", 3), newSemaphore(t, client(t, srv, "five"), "/sem", 5)
		release(t, acquire(t, three, 1))
		held := srv.On(zktest.Match{Client: "three", Op: zktest.OpMulti}, zktest.Hold())
		late := start(t, three, 1)
		require.NoError(t, held.Wait(t.Context()))
		hold := acquire(t, five, 5)
		held.Release()
		_, err := late.wait()
		require.ErrorIs(t, err, semaphore.ErrLimit)
		release(t, hold)
		nobody(t, srv, "/sem")
	})
}

// Servers reap the node while nobody uses it, and who comes next may note another number in a new one of the same version.
func TestLimitOfANodeThatIsAnotherOneByNowIsNoticed(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		three, five := newSemaphore(t, client(t, srv, "three"), "/sem", 3), newSemaphore(t, client(t, srv, "five"), "/sem", 5)
		release(t, acquire(t, three, 1))
		require.NoError(t, srv.Delete("/sem"))
		hold := acquire(t, five, 1)
		_, err := three.Acquire(t.Context())
		require.ErrorIs(t, err, semaphore.ErrLimit)
		release(t, hold)
		release(t, acquire(t, three, 1))
		nobody(t, srv, "/sem")
	})
}

// Who notes another number because nobody uses the semaphore must not do so when somebody does by then.
func TestLimitIsNotReplacedOnceSomebodyUsesIt(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		three, five := newSemaphore(t, client(t, srv, "three"), "/sem", 3), newSemaphore(t, client(t, srv, "five"), "/sem", 5)
		release(t, acquire(t, three, 1))
		held := srv.On(zktest.Match{Client: "five", Op: zktest.OpMulti, Path: "/sem"}, zktest.Hold())
		heldSet := srv.On(zktest.Match{Client: "five", Op: zktest.OpSetData, Path: "/sem"}, zktest.Hold())
		late := start(t, five, 1)
		time.Sleep(time.Second)
		hold := acquire(t, three, 1)
		held.Remove()
		heldSet.Remove()
		_, err := late.wait()
		require.ErrorIs(t, err, semaphore.ErrLimit)
		release(t, hold)
		release(t, acquire(t, five, 5))
		nobody(t, srv, "/sem")
	})
}
