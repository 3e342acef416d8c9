package semaphore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/semaphore"
)

func TestNoMorePermitsThanTheLimit(t *testing.T) {
	for _, limit := range []int{1, 3} {
		path := testzk.Path(t)
		opts, waits := testzk.Waiting(t)
		s := newSemaphore(t, testzk.Connected(t, testzk.Connect(), opts...), path, limit)
		var holds []*recipes.Hold
		for range limit {
			holds = append(holds, acquire(t, s, 1))
		}
		refused(t, s, 1)
		ctx, pass := testzk.Deadline(testzk.Context(t))
		late := startUnder(t, ctx, s, 1)
		waits()
		pass()
		_, err := late.Wait()
		require.ErrorIs(t, err, recipes.ErrNotAcquired)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		crowd(t, s, limit, 0)
		release(t, holds[0])
		holds[0] = acquire(t, s, 1)
		refused(t, another(t, path, limit), 1)
		release(t, holds...)
		empty(t, path)
	}
}

func TestParticipantsArePermitsBeforeWaiters(t *testing.T) {
	path := testzk.Path(t)
	s := another(t, path, 2, semaphore.WithData([]byte("us")))
	none, err := s.Participants(testzk.Context(t))
	require.NoError(t, err)
	require.Empty(t, none, "never used")
	first, second := acquire(t, s, 1), acquire(t, s, 1)
	waiter := start(t, another(t, path, 2, semaphore.WithIdentity()), 1)
	all := crowd(t, s, 2, 1)
	require.Equal(t, []string{first.Path(), second.Path()}, []string{all[0].Node, all[1].Node})
	require.Equal(t, []int64{first.Token(), second.Token()}, []int64{all[0].Token, all[1].Token})
	require.Equal(t, "us", string(all[0].Data))
	require.Equal(t, path+"/locks/", all[2].Node[:len(path)+len("/locks/")])
	require.NotNil(t, all[2].Identity)
	release(t, first, second)
	release(t, waiter.Won(t))
	crowd(t, s, 0, 0)
}

// The holders in one process count each other.
func TestNeverMoreThanTheLimitAndAllAreServed(t *testing.T) {
	const limit, clients, threads, turns = 5, 4, 3, 6
	path := testzk.Path(t)
	var inside atomic.Int64
	var running sync.WaitGroup
	for range clients {
		s := another(t, path, limit)
		for range threads {
			running.Go(func() {
				for range turns {
					n := 1 + rand.IntN(limit)
					hold := acquire(t, s, n)
					require.LessOrEqual(t, inside.Add(int64(n)), int64(limit))
					inside.Add(int64(-n))
					release(t, hold)
				}
			})
		}
	}
	running.Wait()
	empty(t, path)
}

func TestAllPermitsAreInUseAtTheSameTime(t *testing.T) {
	const limit = 5
	path := testzk.Path(t)
	var inside atomic.Int64
	all := make(chan struct{})
	var running sync.WaitGroup
	for range limit {
		s := another(t, path, limit)
		running.Go(func() {
			hold := acquire(t, s, 1)
			if inside.Add(1) == limit {
				close(all)
			}
			testzk.Closes(t, all, "a holder waits for another one")
			release(t, hold)
		})
	}
	running.Wait()
}

func TestCloseOfTheClientReleasesItsPermits(t *testing.T) {
	path := testzk.Path(t)
	holder := testzk.Connected(t, testzk.Connect())
	hold := acquire(t, newSemaphore(t, holder, path, 2), 2)
	s := another(t, path, 2)
	waiter := start(t, s, 1)
	crowd(t, s, 2, 1)
	require.NoError(t, holder.Close())
	require.ErrorIs(t, hold.Err(), framework.ErrClosed)
	require.ErrorIs(t, hold.Release(), framework.ErrClosed)
	release(t, waiter.Won(t))
}

func TestPermitsGoToWaitersInTheirOrder(t *testing.T) {
	path := testzk.Path(t)
	s := another(t, path, 2)
	holds := []*recipes.Hold{acquire(t, s, 1), acquire(t, s, 1)}
	var waiters []*testlock.Attempt
	for i := range 4 {
		waiters = append(waiters, start(t, another(t, path, 2), 1))
		crowd(t, s, 2, i+1)
	}
	for i, w := range waiters {
		release(t, holds[i])
		holds = append(holds, w.Won(t))
		crowd(t, s, 2, len(waiters)-i-1)
		require.Greater(t, holds[i+2].Token(), holds[i+1].Token())
	}
	release(t, holds[4:]...)
}

func TestWaiterThatGivesUpLeavesNoNode(t *testing.T) {
	path := testzk.Path(t)
	s := another(t, path, 1)
	holder := acquire(t, s, 1)
	first := start(t, another(t, path, 1), 1)
	crowd(t, s, 1, 1)
	second := start(t, another(t, path, 1), 1)
	crowd(t, s, 1, 2)
	first.Cancel()
	_, err := first.Wait()
	require.ErrorIs(t, err, context.Canceled)
	crowd(t, s, 1, 1)
	require.True(t, second.Waiting())
	release(t, holder)
	release(t, second.Won(t))
	release(t, acquire(t, s, 1))
	empty(t, path)
}

func TestSecondReleaseOfAPermitFails(t *testing.T) {
	s := another(t, testzk.Path(t), 2)
	first, second := acquire(t, s, 1), acquire(t, s, 1)
	release(t, first)
	require.ErrorIs(t, first.Release(), recipes.ErrNotHeld)
	third := acquire(t, s, 1)
	require.ErrorIs(t, first.Release(), recipes.ErrNotHeld)
	refused(t, s, 1)
	release(t, second, third)
}

func TestAcquireFailsWithAnEndedContextEvenIfPermitsAreFree(t *testing.T) {
	s := another(t, testzk.Path(t), 1)
	ctx, cancel := context.WithCancel(testzk.Context(t))
	cancel()
	_, err := s.Acquire(ctx)
	require.ErrorIs(t, err, context.Canceled)
	_, err = s.TryAcquire(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, recipes.ErrNotAcquired)
	crowd(t, s, 0, 0)
}

func TestSemaphoreNeverReenters(t *testing.T) {
	s := another(t, testzk.Path(t), 1)
	hold := acquire(t, s, 1)
	_, err := s.TryAcquire(hold.Context(testzk.Context(t)))
	require.ErrorIs(t, err, recipes.ErrNotAcquired)
	release(t, hold)
}

func TestNewRefusesInvalidArguments(t *testing.T) {
	c := testzk.Client(t, "127.0.0.1:1")
	for name, row := range map[string]struct {
		client  *framework.Client
		path    string
		permits int
		opts    []semaphore.Option
		says    string
	}{
		"nil client":  {nil, "/s", 1, nil, "client"},
		"zero client": {new(framework.Client), "/s", 1, nil, "zero value"},
		"root":        {c, "/", 1, nil, `"/"`},
		"relative":    {c, "s", 1, nil, `"s"`},
		"no permits":  {c, "/s", 0, nil, "permits 0"},
		"negative":    {c, "/s", -3, nil, "permits -3"},
		"too many":    {c, "/s", 1 << 31, nil, "permits 2147483648"},
		"nil option":  {c, "/s", 1, []semaphore.Option{nil}, "option 0 is nil"},
		"two kinds of data": {
			c, "/s", 1, []semaphore.Option{semaphore.WithData(nil), semaphore.WithIdentity()}, "WithIdentity"},
		"limit at no path": {c, "/s", 1, []semaphore.Option{semaphore.WithSharedLimit("limit")}, `"limit"`},
		"limit nowhere":    {c, "/s", 1, []semaphore.Option{semaphore.WithSharedLimit("")}, `""`},
		"limit as a lease": {
			c, "/s", 1, []semaphore.Option{semaphore.WithSharedLimit("/s/leases/l")}, "node of its own"},
		"limit at the root": {c, "/s", 1, []semaphore.Option{semaphore.WithSharedLimit("/")}, "node of its own"},
		"limit among leases": {
			c, "/s", 1, []semaphore.Option{semaphore.WithSharedLimit("/s/leases")}, "node of its own"},
		"limit among locks": {
			c, "/s", 1, []semaphore.Option{semaphore.WithSharedLimit("/s/locks")}, "node of its own"},
	} {
		s, err := semaphore.New(row.client, row.path, row.permits, row.opts...)
		require.ErrorContains(t, err, row.says, name)
		require.Nil(t, s, name)
	}
}

func TestAcquireIsLogged(t *testing.T) {
	path := testzk.Path(t)
	core, logs := observer.New(zap.DebugLevel)
	s := newSemaphore(t, testzk.Connected(t, testzk.Connect(), framework.WithLogger(zap.New(core))), path, 2)
	logged := func(hold *recipes.Hold, times int) {
		acquired := func() []observer.LoggedEntry { return logs.FilterMessage("acquired").All() }
		testzk.Eventually(t, func() bool { return len(acquired()) == times }, "not logged")
		entries := acquired()
		require.Equal(t, path, entries[times-1].ContextMap()["path"])
		require.Equal(t, hold.Path(), entries[times-1].ContextMap()["node"])
		require.Equal(t, fmt.Sprintf("%#x", hold.Token()), entries[times-1].ContextMap()["token"])
	}
	hold := acquire(t, s, 2)
	logged(hold, 1)
	waiter := start(t, s, 1)
	crowd(t, s, 2, 1)
	release(t, hold)
	hold = waiter.Won(t)
	logged(hold, 2)
	release(t, hold)
}

// A waiter for more permits than there are has no other node to wait for.
func TestWarningOfALongWaitWithoutHolders(t *testing.T) {
	path := testzk.Path(t)
	core, logs := observer.New(zap.WarnLevel)
	c := testzk.Connected(t, testzk.Connect(),
		framework.WithLogger(zap.New(core)), framework.WithWaitWarning(10*time.Millisecond))
	waiter := start(t, newSemaphore(t, c, path, 1, semaphore.WithSharedLimit(path+"/limit")), 2)
	warnings := func() *observer.ObservedLogs { return logs.FilterMessage("still waiting") }
	testzk.Eventually(t, func() bool { return warnings().Len() > 0 }, "no warning")
	require.Equal(t, "the queue is empty", warnings().All()[0].ContextMap()["error"])
	waiter.Cancel()
	_, err := waiter.Wait()
	require.ErrorIs(t, err, recipes.ErrNotAcquired)
	empty(t, path)
}

func TestZeroValuesAreRefused(t *testing.T) {
	ctx := testzk.Context(t)
	for _, s := range []*semaphore.Semaphore{{}} {
		_, err := s.Acquire(ctx)
		require.ErrorIs(t, err, framework.ErrZeroValue)
		_, err = s.TryAcquireN(ctx, 2)
		require.ErrorIs(t, err, framework.ErrZeroValue)
		_, err = s.Participants(ctx)
		require.ErrorIs(t, err, framework.ErrZeroValue)
		_, err = s.Limit(ctx)
		require.ErrorIs(t, err, framework.ErrZeroValue)
		require.ErrorIs(t, s.SetLimit(ctx, 1), framework.ErrZeroValue)
	}
	var none context.Context
	_, err := newSemaphore(t, testzk.Client(t, "127.0.0.1:1"), "/s", 1).Acquire(none)
	require.ErrorIs(t, err, framework.ErrNilContext)
}

func TestRevokeOfAnyPermitReachesTheHolder(t *testing.T) {
	path := testzk.Path(t)
	s := another(t, path, 2)
	hold := acquire(t, s, 2)
	ctx, c := testzk.Context(t), testzk.Connected(t, testzk.Connect())
	require.NoError(t, recipes.Revoke(ctx, c, recipes.Participant{Node: hold.Paths()[1]}))
	testzk.Closes(t, hold.Revoked(), "the holder is not revoked")
	release(t, hold)
}
