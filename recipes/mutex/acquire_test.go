package mutex_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/zktest/fault"
)

func TestUncontendedAcquireIsACreateAndAList(t *testing.T) {
	withRequests(t, func(t *testing.T, d *requestFixture) {
		hold := acquire(t, d.lock)
		testlock.Settle()
		require.Equal(t, "create getChildren2", d.asked())
		require.NoError(t, hold.Release())
		testlock.Settle()
		require.Equal(t, "delete", d.asked())
	})
}

func TestHandOverNeedsNoRequestOfTheWaiter(t *testing.T) {
	p := testzk.Proxy(t)
	path := testzk.Path(t)
	first := newMutex(t, testzk.Connected(t, testzk.Connect()), path)
	holder := acquire(t, first)
	waiter := testlock.Start(t, newMutex(t, testzk.Connected(t, p.Addr()), path).Acquire)
	queued(t, first, 2)
	// The waiter watches its predecessor and its own node. No other request follows.
	testzk.Eventually(t, func() bool { return p.Requests()[fault.OpGetData] == 2 }, "the waiter does not watch")
	before := testlock.Sent(p)

	require.NoError(t, holder.Release())
	hold := waiter.Won(t)
	require.Equal(t, before, testlock.Sent(p), "requests at the hand-over: %v", p.Requests())
	require.NoError(t, hold.Release())
}

// checker reports two holders at once and tokens that do not grow.
type checker struct {
	inside atomic.Bool
	last   atomic.Int64
}

// work is done once under the lock.
func (r *checker) work(hold *recipes.Hold) error {
	if !r.inside.CompareAndSwap(false, true) {
		return errors.New("two goroutines hold the lock")
	}
	if previous := r.last.Swap(hold.Token()); previous >= hold.Token() {
		return fmt.Errorf("token %d after %d", hold.Token(), previous)
	}
	r.inside.Store(false)
	return nil
}

// contend runs fn on n goroutines and passes each its number.
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

func TestTryAcquireOfABusyLockIsOneRead(t *testing.T) {
	path := testzk.Path(t)
	holder := acquire(t, newMutex(t, testzk.Connected(t, testzk.Connect()), path))
	p := testzk.Proxy(t)
	mu := newMutex(t, testzk.Connected(t, p.Addr()), path)
	p.ResetCounts()
	_, err := mu.TryAcquire(testzk.Context(t))
	require.ErrorIs(t, err, recipes.ErrNotAcquired)
	require.Equal(t, 1, testlock.Sent(p), "%v", p.Requests())
	require.Equal(t, 1, p.Requests()[fault.OpGetChildren2], "%v", p.Requests())
	queued(t, mu, 1)
	require.NoError(t, holder.Release())
}

func TestParticipantsOfAnEmptyQueue(t *testing.T) {
	mu := newMutex(t, testzk.Connected(t, testzk.Connect()), testzk.Path(t))
	queue, err := mu.Participants(testzk.Context(t))
	require.NoError(t, err)
	require.Empty(t, queue)
}

func TestParticipantsHaveTheHolderFirst(t *testing.T) {
	path := testzk.Path(t)
	client := testzk.Connected(t, testzk.Connect())
	mu := newMutex(t, client, path)
	holder := acquire(t, mu)
	other := newMutex(t, testzk.Connected(t, testzk.Connect()), path)
	testlock.Start(t, other.Acquire)
	queue := queued(t, mu, 2)
	session, err := client.Session(testzk.Context(t))
	require.NoError(t, err)
	require.Equal(t, holder.Path(), queue[0].Node)
	require.Equal(t, holder.Token(), queue[0].Token)
	require.Equal(t, session.ID(), queue[0].Session)
	require.Greater(t, queue[1].Token, queue[0].Token)
	require.WithinDuration(t, time.Now(), queue[0].Since, time.Hour)
	require.NoError(t, holder.Release())
}

func TestForeignChildrenAreNotParticipants(t *testing.T) {
	path := testzk.Path(t)
	client := testzk.Connected(t, testzk.Connect())
	mu := newMutex(t, client, path)
	holder := acquire(t, mu)
	for _, name := range []string{"config", "lock-", "lock-abc", "zzz-latch-0000000000"} {
		_, err := client.Create(testzk.Context(t), path+"/"+name, nil)
		require.NoError(t, err)
	}
	queue, err := mu.Participants(testzk.Context(t))
	require.NoError(t, err)
	require.Len(t, queue, 1)
	require.NoError(t, holder.Release())
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
	queue, err := mu.Participants(testzk.Context(t))
	require.NoError(t, err)
	require.Equal(t, holder.Path(), queue[0].Node)
	require.NoError(t, holder.Release())
	testzk.Empty(t, path+"/deep/lock")
}
