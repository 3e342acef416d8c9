package mutex_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest/proxy"
)

func TestUncontendedAcquireAndReleaseAreOneRequestEach(t *testing.T) {
	p := testzk.Proxy(t)
	mu := newMutex(t, testzk.Connected(t, p.Addr()), testzk.Path(t))
	require.NoError(t, acquire(t, mu).Release()) // the parents are there now

	p.ResetCounts()
	hold := acquire(t, mu)
	require.Equal(t, 1, sent(p), "requests of an acquire: %v", p.Requests())
	require.NoError(t, hold.Release())
	require.Equal(t, 2, sent(p), "requests of an acquire and a release: %v", p.Requests())
}

func TestHandOverTakesNoRequestOfTheWaiter(t *testing.T) {
	p := testzk.Proxy(t)
	path := testzk.Path(t)
	first := newMutex(t, testzk.Connected(t, testzk.Connect()), path)
	holder := acquire(t, first)
	waiter := start(t, newMutex(t, testzk.Connected(t, p.Addr()), path))
	queued(t, first, 2)
	// The waiter reads the parent once, then who is ahead, then watches that and itself; nothing follows.
	testzk.Eventually(t, func() bool { return p.Requests()[proxy.OpGetData] == 3 }, "the waiter does not watch")
	before := sent(p)

	require.NoError(t, holder.Release())
	hold := waiter.won(t)
	require.Equal(t, before, sent(p), "requests at the hand-over: %v", p.Requests())
	require.NoError(t, hold.Release())
}

// referee finds out by itself whether two are inside, and whether tokens grow.
type referee struct {
	inside atomic.Bool
	last   atomic.Int64
}

// work is one turn under the lock.
func (r *referee) work(hold *recipes.Hold) error {
	if !r.inside.CompareAndSwap(false, true) {
		return errors.New("two hold the lock")
	}
	if previous := r.last.Swap(hold.Token()); previous >= hold.Token() {
		return fmt.Errorf("token %d after %d", hold.Token(), previous)
	}
	r.inside.Store(false)
	return nil
}

// contend runs fn on n goroutines, each with its number.
func contend(t *testing.T, n int, fn func(i int) error) {
	t.Helper()
	errs := make([]error, n)
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() { errs[i] = fn(i) })
	}
	running.Wait()
	require.NoError(t, errors.Join(errs...))
}

func TestExclusionAmongGoroutinesOfOneMutex(t *testing.T) {
	path := testzk.Path(t)
	mu := newMutex(t, testzk.Connected(t, testzk.Connect()), path)
	ctx := testzk.Context(t)
	var r referee
	contend(t, 10, func(int) error {
		hold, err := mu.Acquire(ctx)
		if err != nil {
			return err
		}
		return errors.Join(r.work(hold), hold.Release())
	})
	testzk.Empty(t, path)
}

func TestExclusionAmongClients(t *testing.T) {
	path := testzk.Path(t)
	var clients []*mutex.Mutex
	for range 4 {
		clients = append(clients, newMutex(t, testzk.Connected(t, testzk.Connect()), path))
	}
	ctx := testzk.Context(t)
	var r referee
	contend(t, len(clients), func(i int) error {
		for range 25 {
			hold, err := clients[i].Acquire(ctx)
			if err != nil {
				return err
			}
			if err := errors.Join(r.work(hold), hold.Release()); err != nil {
				return err
			}
		}
		return nil
	})
	testzk.Empty(t, path)
}

func TestFirstComeFirstServed(t *testing.T) {
	path := testzk.Path(t)
	clients := []string{"a", "b", "c", "d", "e"}
	first := newMutex(t, testzk.Connected(t, testzk.Connect()), path)
	holder := acquire(t, first)
	waiters := make([]*attempt, len(clients))
	for i := range clients {
		waiters[i] = start(t, newMutex(t, testzk.Connected(t, testzk.Connect()), path))
		queued(t, first, i+2)
	}
	require.NoError(t, holder.Release())
	for i, w := range waiters {
		hold := w.won(t)
		for _, later := range waiters[i+1:] {
			require.True(t, later.waiting(), "somebody behind waiter %d was served before it released", i)
		}
		require.NoError(t, hold.Release())
	}
}

func TestWaiterAheadThatGivesUpDoesNotLetAnybodyIn(t *testing.T) {
	path := testzk.Path(t)
	mu := newMutex(t, testzk.Connected(t, testzk.Connect()), path)
	holder := acquire(t, mu)
	var waiters []*attempt
	for i := range 4 {
		waiters = append(waiters, start(t, mu))
		queued(t, mu, i+2)
	}
	for _, leaver := range []int{2, 1} { // the last but one ahead of waiter 3, then the one ahead of that
		waiters[leaver].cancel()
		_, err := waiters[leaver].wait()
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, recipes.ErrNotAcquired)
	}
	queued(t, mu, 3)
	require.True(t, waiters[0].waiting() && waiters[3].waiting(), "the lock is held")
	require.NoError(t, holder.Release())
	require.NoError(t, waiters[0].won(t).Release())
	require.NoError(t, waiters[3].won(t).Release())
}

func TestAcquireThatTimesOutBehindAnotherLeavesNothing(t *testing.T) {
	path := testzk.Path(t)
	mu := newMutex(t, testzk.Connected(t, testzk.Connect()), path)
	holder := acquire(t, mu)
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	_, err := mu.Acquire(ctx)
	require.ErrorIs(t, err, recipes.ErrNotAcquired)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, path)
	queued(t, mu, 1)
	require.NoError(t, holder.Err())
	require.NoError(t, holder.Release())
	testzk.Empty(t, path)
}

func TestContextThatHasEndedLosesEvenIfTheLockIsFree(t *testing.T) {
	path := testzk.Path(t)
	mu := newMutex(t, testzk.Connected(t, testzk.Connect()), path)
	reason := errors.New("changed my mind")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(reason)
	for name, acquire := range map[string]func(context.Context) (*recipes.Hold, error){"Acquire": mu.Acquire, "TryAcquire": mu.TryAcquire} {
		hold, err := acquire(ctx)
		require.Nil(t, hold, name)
		require.ErrorIs(t, err, context.Canceled, name)
		require.ErrorIs(t, err, reason, name)
		require.NotErrorIs(t, err, recipes.ErrNotAcquired, name)
	}
	testzk.Empty(t, path)
}

func TestEndOfTheAcquiresContextDoesNotEndTheHold(t *testing.T) {
	mu := newMutex(t, testzk.Connected(t, testzk.Connect()), testzk.Path(t))
	ctx, cancel := context.WithCancel(context.Background())
	hold, err := mu.Acquire(ctx)
	require.NoError(t, err)
	cancel()
	require.NoError(t, hold.Err())
	require.NoError(t, hold.Release())
}

func TestTryAcquireOfAFreeLock(t *testing.T) {
	path := testzk.Path(t)
	mu := newMutex(t, testzk.Connected(t, testzk.Connect()), path)
	hold, err := mu.TryAcquire(testzk.Context(t))
	require.NoError(t, err)
	require.NoError(t, hold.Release())
	testzk.Empty(t, path)
}

func TestTryAcquireOfABusyLockIsOneReadAndLeavesNoWatch(t *testing.T) {
	path := testzk.Path(t)
	holder := acquire(t, newMutex(t, testzk.Connected(t, testzk.Connect()), path))
	p := testzk.Proxy(t)
	mu := newMutex(t, testzk.Connected(t, p.Addr()), path)
	p.ResetCounts()
	_, err := mu.TryAcquire(testzk.Context(t))
	require.ErrorIs(t, err, recipes.ErrNotAcquired)
	require.Equal(t, 1, sent(p), "%v", p.Requests())
	require.Equal(t, 1, p.Requests()[proxy.OpGetChildren2], "%v", p.Requests())
	queued(t, mu, 1)
	require.NoError(t, holder.Release())
}

func TestOfManyTriesOneWinsAndNothingIsLeft(t *testing.T) {
	path := testzk.Path(t)
	mu := newMutex(t, testzk.Connected(t, testzk.Connect()), path)
	ctx := testzk.Context(t)
	var winners atomic.Int64
	var winner atomic.Pointer[recipes.Hold]
	contend(t, 20, func(int) error {
		hold, err := mu.TryAcquire(ctx)
		if err == nil {
			winners.Add(1)
			winner.Store(hold)
		}
		if errors.Is(err, recipes.ErrNotAcquired) {
			return nil
		}
		return err
	})
	require.Equal(t, int64(1), winners.Load(), "nobody released, and the first in line wins")
	require.NoError(t, winner.Load().Release())
	testzk.Empty(t, path)
}

func TestParticipantsOfALineNobodyIsIn(t *testing.T) {
	mu := newMutex(t, testzk.Connected(t, testzk.Connect()), testzk.Path(t))
	line, err := mu.Participants(testzk.Context(t))
	require.NoError(t, err)
	require.Empty(t, line)
}

func TestParticipantsTellTheHolderFirst(t *testing.T) {
	path := testzk.Path(t)
	client := testzk.Connected(t, testzk.Connect())
	mu := newMutex(t, client, path)
	holder := acquire(t, mu)
	other := newMutex(t, testzk.Connected(t, testzk.Connect()), path)
	start(t, other)
	line := queued(t, mu, 2)
	session, err := client.Session(testzk.Context(t))
	require.NoError(t, err)
	require.Equal(t, holder.Path(), line[0].Node)
	require.Equal(t, holder.Token(), line[0].Token)
	require.Equal(t, session.ID(), line[0].Session)
	require.Greater(t, line[1].Token, line[0].Token)
	require.WithinDuration(t, time.Now(), line[0].Since, time.Hour)
	require.NoError(t, holder.Release())
}

func TestForeignChildrenAreNotInTheWay(t *testing.T) {
	path := testzk.Path(t)
	client := testzk.Connected(t, testzk.Connect())
	mu := newMutex(t, client, path)
	require.NoError(t, acquire(t, mu).Release())
	for _, name := range []string{"-x", "+", "0", "config", "lock-", "lock-abc", "_c_x", "zzz-latch-0000000000"} {
		_, err := client.Create(testzk.Context(t), path+"/"+name, nil)
		require.NoError(t, err)
	}
	holder := acquire(t, mu)
	line, err := mu.Participants(testzk.Context(t))
	require.NoError(t, err)
	require.Len(t, line, 1)
	waiter := start(t, mu)
	queued(t, mu, 2)
	require.NoError(t, holder.Release())
	require.NoError(t, waiter.won(t).Release())
	hold, err := mu.TryAcquire(testzk.Context(t))
	require.NoError(t, err)
	require.NoError(t, hold.Release())
}

func TestLockInANamespace(t *testing.T) {
	path := testzk.Path(t)
	client := testzk.Connected(t, testzk.Connect())
	view := client.Namespace(path[1:])
	mu := newMutex(t, view, "/deep/lock")
	holder := acquire(t, mu)
	require.Equal(t, "/deep/lock/", holder.Path()[:len("/deep/lock/")])
	same := newMutex(t, client, path+"/deep/lock")
	_, err := same.TryAcquire(testzk.Context(t))
	require.ErrorIs(t, err, recipes.ErrNotAcquired)
	line, err := mu.Participants(testzk.Context(t))
	require.NoError(t, err)
	require.Equal(t, holder.Path(), line[0].Node)
	require.NoError(t, holder.Release())
	testzk.Empty(t, path+"/deep/lock")
}
