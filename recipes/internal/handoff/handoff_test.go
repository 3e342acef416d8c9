package handoff_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// handoffFixture has a lock of a client "local" with local hand-off, and the same lock of another
// client, "remote".
type handoffFixture struct {
	*zktest.Server
	client, remote *framework.Client
	lock, other    *mutex.Mutex
}

// localScenario is a test with a handoffFixture.
type localScenario = func(*testing.T, *handoffFixture)

// generous has limits that no test reaches.
var generous = mutex.Handoff{Streak: 1_000_000, Span: time.Hour}

// keeping returns the option for a lock that keeps its node for idle.
func keeping(handoff mutex.Handoff, idle time.Duration) mutex.Option {
	handoff.Idle = idle
	return mutex.WithLocalHandoff(handoff)
}

// withHandoff runs a scenario in virtual time. At its end the queue must be empty.
func withHandoff(t *testing.T, handoff mutex.Handoff, scenario localScenario, opts ...framework.Option) {
	t.Helper()
	withOption(t, mutex.WithLocalHandoff(handoff), scenario, opts...)
}

// withOption is withHandoff for any option.
func withOption(t *testing.T, option mutex.Option, scenario localScenario, opts ...framework.Option) {
	t.Helper()
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		h := &handoffFixture{Server: srv, client: dialled(t, srv, "local", opts...), remote: dialled(t, srv, "remote")}
		h.lock, h.other = newMutex(t, h.client, "/lock", option), newMutex(t, h.remote, "/lock")
		require.NoError(t, srv.Create("/config", []byte("0")))
		scenario(t, h)
		time.Sleep(2 * testzk.SessionTimeout) // time for cleanup in the background
		require.Equal(t, "/config \"0\"\n/lock container\n", srv.Tree())
	})
}

func dialled(t *testing.T, srv *zktest.Server, name string, opts ...framework.Option) *framework.Client {
	return testzk.Connected(t, srv.MemAddr(), append(opts, framework.WithDialer(srv.Client(name).DialContext))...)
}

// waiters starts n acquires one after the other. If the client has no queue node yet, the first
// creates one for all.
func waiters(t *testing.T, lock *mutex.Mutex, n int) (all []*testlock.Attempt) {
	for range n {
		all = append(all, testlock.Start(t, lock.Acquire))
		synctest.Wait()
	}
	return all
}

func TestNodeIsPassedOnInOrderWithoutRequests(t *testing.T) {
	for name, c := range map[string]struct {
		watched bool // the node is watched, because it waited
		written bool // its data was changed once
		each    time.Duration
	}{
		"short holds":                 {each: time.Millisecond},
		"long holds":                  {each: 150 * time.Millisecond},
		"after a wait":                {watched: true, each: time.Millisecond},
		"after a wait, long holds":    {watched: true, each: 150 * time.Millisecond},
		"of a node with changed data": {watched: true, written: true, each: 150 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			withHandoff(t, generous, func(t *testing.T, h *handoffFixture) {
				var before *recipes.Hold
				if c.watched {
					before = acquire(t, h.other)
				}
				waiting := waiters(t, h.lock, 50)
				time.Sleep(time.Second)
				require.NoError(t, release(before))
				hold := waiting[0].Won(t)
				if c.written {
					require.NoError(t, h.Set(hold.Path(), []byte("written")))
				}
				time.Sleep(time.Second)
				h.ResetCounts()
				for i, next := range waiting[1:] {
					synctest.Wait()
					require.True(t, next.Waiting(), "served out of order")
					require.NoError(t, hold.Release())
					next, token := next.Won(t), hold.Token()
					require.Equal(t, token, next.Token(), "hold %d", i)
					time.Sleep(c.each)
					hold = next
				}
				counts := h.Client("local").Requests()
				require.Zero(t, counts.Total()-counts[fault.OpSync], "%v", counts)
				require.NoError(t, hold.Release())
			})
		})
	}
}

func release(h *recipes.Hold) error {
	if h == nil {
		return nil
	}
	return h.Release()
}

// With a streak of 3 a node is held at most four times while another process waits.
func TestStreakBoundsHowOftenANodeIsPassedOn(t *testing.T) {
	withHandoff(t, mutex.Handoff{Streak: 3, Span: time.Hour}, func(t *testing.T, h *handoffFixture) {
		waiting := waiters(t, h.lock, 10)
		_, stop := run(t, h.other, time.Millisecond)
		require.Equal(t, []int{4, 4, 2}, streaks(t, waiting, time.Millisecond))
		stop()
	})
}

// After span a node is not passed on while another process waits. That includes the instant at
// which span ends.
func TestSpanBoundsForHowLongANodeIsPassedOn(t *testing.T) {
	for each, want := range map[time.Duration][]int{
		250 * time.Millisecond: {4, 4, 2}, // the fourth hold ends with the span
		300 * time.Millisecond: {4, 4, 2},
		333 * time.Millisecond: {4, 4, 2},
		400 * time.Millisecond: {3, 3, 3, 1},
		time.Second:            {1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
	} {
		withHandoff(t, mutex.Handoff{Streak: 1000, Span: time.Second}, func(t *testing.T, h *handoffFixture) {
			waiting := waiters(t, h.lock, 10)
			_, stop := run(t, h.other, time.Millisecond)
			require.Equal(t, want, streaks(t, waiting, each), each)
			stop()
		})
	}
}

// bounds are limits that a node reaches after two holds.
var bounds = map[string]mutex.Handoff{
	"streak": {Streak: 1, Span: time.Hour},
	"span":   {Streak: 1000, Span: 150 * time.Millisecond},
}

// One list shows that no other client waits. After that a watch reports the first that does.
func TestNodeAtItsLimitIsPassedOnWhileNoOtherClientWaits(t *testing.T) {
	for name, handoff := range bounds {
		for kept, at := range map[string]func(*testing.T, mutex.Handoff, localScenario, ...framework.Option){
			"": withHandoff, ", kept when idle": withSticky} {
			t.Run(name+kept, func(t *testing.T) {
				at(t, handoff, func(t *testing.T, h *handoffFixture) {
					waiting := waiters(t, h.lock, 10)
					time.Sleep(time.Second)
					h.ResetCounts()
					begun := time.Now()
					require.Equal(t, []int{10}, streaks(t, waiting, 100*time.Millisecond))
					require.Less(t, time.Since(begun), 2100*time.Millisecond, "waited for more than the list")
					counts := h.Client("local").Requests()
					require.Equal(t, 1, counts[fault.OpGetChildren2], "%v", counts)
					require.Equal(t, 1, h.requests()-counts[fault.OpDelete], "%v", counts)
				})
			})
		}
	}
}

// Another process queues during the eighth hold, after which the node reaches its limit again.
func TestNodeIsGivenUpOnceAnotherProcessQueues(t *testing.T) {
	for name, handoff := range bounds {
		t.Run(name, func(t *testing.T) {
			withHandoff(t, handoff, func(t *testing.T, h *handoffFixture) {
				waiting := waiters(t, h.lock, 10)
				won := make(chan *recipes.Hold, 1)
				time.AfterFunc(750*time.Millisecond, func() { briefly(h.other, won) })
				require.Equal(t, []int{8, 2}, streaks(t, waiting, 100*time.Millisecond))
				require.Len(t, won, 1)
			})
		})
	}
}

// The local waiters may give up while the queue is read. Then no waiter is left for the node.
func TestNodeAtItsLimitIsDeletedIfNoWaiterIsLeft(t *testing.T) {
	withHandoff(t, mutex.Handoff{Streak: 1, Span: time.Hour}, func(t *testing.T, h *handoffFixture) {
		waiting := waiters(t, h.lock, 3)
		require.NoError(t, waiting[0].Won(t).Release())
		hold := waiting[1].Won(t)
		read := h.On(fault.Match{Client: "local", Op: fault.OpGetChildren2}, fault.Hold())
		require.NoError(t, hold.Release())
		require.NoError(t, read.Wait(t.Context()))
		waiting[2].Cancel()
		_, err := waiting[2].Wait()
		require.ErrorIs(t, err, context.Canceled)
		read.Release()
		time.Sleep(100 * time.Millisecond)
		require.Empty(t, nodes(t, h))
	})
}

// If the queue cannot be read, the node is deleted as if other clients waited.
func TestNodeAtItsLimitIsDeletedIfTheQueueCannotBeRead(t *testing.T) {
	withHandoff(t, mutex.Handoff{Streak: 1, Span: time.Hour}, func(t *testing.T, h *handoffFixture) {
		// The list behind the first create comes first: the lock's directory is missing. That behind
		// another create is between the two that are refused.
		first := h.On(fault.Match{Client: "local", Op: fault.OpGetChildren2, Skip: 1}, fault.Fail(zktest.NoAuth))
		second := h.On(fault.Match{Client: "local", Op: fault.OpGetChildren2, Skip: 2}, fault.Fail(zktest.NoAuth))
		require.Equal(t, []int{2, 2, 1}, streaks(t, waiters(t, h.lock, 5), time.Millisecond))
		require.Equal(t, 2, first.Hits()+second.Hits())
	})
}

// streaks returns how often each node was held, in the order of the tokens. Each hold lasts for the
// time each.
func streaks(t *testing.T, waiting []*testlock.Attempt, each time.Duration) (lengths []int) {
	tokens := make(chan int64, len(waiting))
	for _, a := range waiting {
		go func() {
			hold, err := a.Wait()
			if err != nil {
				tokens <- 0
				return
			}
			tokens <- hold.Token()
			time.Sleep(each)
			_ = hold.Release()
		}()
	}
	last := int64(0)
	for range waiting {
		token := <-tokens
		require.NotZero(t, token, "not served")
		require.GreaterOrEqual(t, token, last)
		if token > last {
			lengths = append(lengths, 0)
		}
		lengths[len(lengths)-1]++
		last = token
	}
	time.Sleep(time.Second) // until the last hold is released
	return lengths
}

func TestInvalidLimitsOfHandoffAreRefused(t *testing.T) {
	c := testzk.Connected(t, testzk.Connect())
	for want, handoff := range map[string]mutex.Handoff{
		"Streak 0 is not positive":  {Span: time.Second},
		"Streak -1 is not positive": {Streak: -1, Span: time.Second},
		"Span 0s is not positive":   {Streak: 1, Idle: time.Second},
		"Span -1s is not positive":  {Streak: 1, Span: -time.Second},
		"Idle -1s is negative":      {Streak: 1, Span: time.Second, Idle: -time.Second},
	} {
		_, err := mutex.New(c, "/lock", mutex.WithLocalHandoff(handoff))
		require.ErrorContains(t, err, "WithLocalHandoff: "+want)
	}
	newMutex(t, c, "/lock", mutex.WithLocalHandoff(mutex.Handoff{Streak: 1, Span: 1}))
	newMutex(t, c, "/lock", mutex.WithLocalHandoff(mutex.Handoff{Streak: 1, Span: 1, Idle: 1}))
}

// TryAcquire fails while the client has a holder or a waiter. The node that it acquires is not
// passed on.
func TestTryAcquireTakesNoPartInHandoff(t *testing.T) {
	withHandoff(t, generous, func(t *testing.T, h *handoffFixture) {
		tried, err := h.lock.TryAcquire(t.Context())
		require.NoError(t, err)
		waiting := waiters(t, h.lock, 3)
		require.NoError(t, tried.Release())
		hold := waiting[0].Won(t)
		require.Greater(t, hold.Token(), tried.Token())
		_, err = h.lock.TryAcquire(t.Context())
		require.ErrorIs(t, err, recipes.ErrNotAcquired)
		require.NoError(t, hold.Release())
		_, err = h.lock.TryAcquire(t.Context())
		require.ErrorIs(t, err, recipes.ErrNotAcquired)
		require.NoError(t, waiting[1].Won(t).Release())
		require.NoError(t, waiting[2].Won(t).Release())
		tried, err = h.lock.TryAcquire(t.Context())
		require.NoError(t, err)
		require.NoError(t, tried.Release())
	})
}

// A released hold and its context have no effect on the next hold of the same node.
func TestReleasedHoldDoesNotAffectTheNextHoldOfItsNode(t *testing.T) {
	withHandoff(t, generous, func(t *testing.T, h *handoffFixture) {
		hold := acquire(t, h.lock)
		work := hold.Context(testzk.Context(t))
		waiting := waiters(t, h.lock, 1)
		require.NoError(t, hold.Release())
		next := waiting[0].Won(t)
		require.Equal(t, hold.Token(), next.Token())
		require.ErrorIs(t, context.Cause(work), recipes.ErrNotHeld)

		_, err := h.lock.Acquire(work)
		require.ErrorIs(t, err, context.Canceled)
		uncancelled, cancel := context.WithTimeout(context.WithoutCancel(work), time.Second)
		defer cancel()
		_, err = h.lock.Acquire(uncancelled)
		require.ErrorIs(t, err, recipes.ErrNotAcquired, "it re-enters the hold of another goroutine")
		_, err = hold.Guard(t.Context(), framework.SetOp("/config", nil, -1))
		require.ErrorIs(t, err, recipes.ErrNotHeld)
		require.ErrorIs(t, hold.Release(), recipes.ErrNotHeld)
		require.NoError(t, next.Err())

		inner, err := h.lock.Acquire(next.Context(t.Context()))
		require.NoError(t, err)
		require.NoError(t, inner.Release())
		require.NoError(t, next.Release())
	})
}

func TestNodeIsPassedOnWithTheLastReentrantHold(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		withHandoff(t, generous, func(t *testing.T, h *handoffFixture) {
			holds := []*recipes.Hold{acquire(t, h.lock)}
			waiting := waiters(t, h.lock, 1)
			for range 2 {
				inner, err := h.lock.Acquire(holds[0].Context(t.Context()))
				require.NoError(t, err)
				holds = append(holds, inner)
			}
			for _, i := range order {
				synctest.Wait()
				require.True(t, waiting[0].Waiting(), "served while a reentrant hold is left")
				require.NoError(t, holds[i].Release())
			}
			next := waiting[0].Won(t)
			require.Equal(t, holds[0].Token(), next.Token())
			require.NoError(t, next.Release())
		})
	}
}

// Waiters of the same client are warned and measured like all others.
func TestLocalWaitersAreWarnedAndMeasured(t *testing.T) {
	var measured testzk.Metrics
	core, logs := observer.New(zapcore.WarnLevel)
	withHandoff(t, generous, func(t *testing.T, h *handoffFixture) {
		hold := acquire(t, h.lock)
		waiting := waiters(t, h.lock, 2)
		time.Sleep(50 * time.Second)
		require.Subset(t, measured.Lines(time.Second), []string{"docent.lock.waiters{mutex /lock} 2"})
		require.NoError(t, hold.Release())
		require.NoError(t, waiting[0].Won(t).Release())
		require.NoError(t, waiting[1].Won(t).Release())
	}, framework.WithMetrics(&measured), framework.WithLogger(zap.New(core)), framework.WithWaitWarning(10*time.Second))
	require.Subset(t, measured.Lines(time.Second), []string{
		"docent.lock.hold{mutex /lock released} 50s 0s 0s",
		"docent.lock.wait{mutex /lock acquired} 0s 50s 50s",
		"docent.lock.waiters{mutex /lock} 0",
	})
	var waits []time.Duration
	for _, w := range logs.FilterMessage("still waiting").All() {
		waits = append(waits, w.ContextMap()["waited"].(time.Duration).Round(time.Second))
	}
	require.Equal(t, []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second}, waits)
}
