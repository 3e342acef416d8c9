package handoff_test

import (
	"context"
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
	"github.com/docent-zk/docent/zktest/fault"
)

// idle is shorter than the pause at the end of withHandoff.
const idle = 3 * time.Second

// withSticky is withHandoff with a lock that keeps its node.
func withSticky(t *testing.T, handoff mutex.Handoff, scenario localScenario, opts ...framework.Option) {
	t.Helper()
	withOption(t, keeping(handoff, idle), scenario, opts...)
}

// kept acquires and releases the lock. It returns when the node has been kept for a second.
func kept(t *testing.T, h *handoffFixture) *recipes.Hold {
	t.Helper()
	hold := acquire(t, h.lock)
	require.NoError(t, hold.Release())
	time.Sleep(time.Second)
	require.Len(t, nodes(t, h), 1, "the node is not kept")
	return hold
}

func nodes(t *testing.T, h *handoffFixture) []string {
	t.Helper()
	names, err := h.Children("/lock")
	require.NoError(t, err)
	return names
}

// requests returns the number of requests of the local client without heartbeats.
func (h *handoffFixture) requests() int {
	counts := h.Client("local").Requests()
	return counts.Total() - counts[fault.OpSync]
}

// No other client wants the lock. So the idle time is the only limit, and each release starts it
// again.
func TestAcquiringAKeptNodeMakesNoRequest(t *testing.T) {
	try := func(t *testing.T, h *handoffFixture) *recipes.Hold {
		hold, err := h.lock.TryAcquire(t.Context())
		require.NoError(t, err)
		return hold
	}
	wait := func(t *testing.T, h *handoffFixture) *recipes.Hold { return acquire(t, h.lock) }
	for name, c := range map[string]struct {
		handoff     mutex.Handoff
		first, then func(*testing.T, *handoffFixture) *recipes.Hold
		each, pause time.Duration
	}{
		"at once":         {handoff: generous, first: wait, then: wait},
		"in short holds":  {generous, wait, wait, time.Millisecond, time.Millisecond},
		"in long holds":   {generous, wait, wait, time.Second, idle - time.Millisecond},
		"without waiting": {generous, wait, try, time.Millisecond, time.Millisecond},
		"never waiting":   {generous, try, try, time.Millisecond, time.Millisecond},
		"beyond the streak": {mutex.Handoff{Streak: 1, Span: time.Hour},
			wait, wait, time.Millisecond, time.Millisecond},
		"beyond the span":       {mutex.Handoff{Streak: 1000, Span: 1}, wait, try, time.Millisecond, time.Millisecond},
		"beyond the span, long": {mutex.Handoff{Streak: 1000, Span: time.Second}, try, wait, time.Second, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			withSticky(t, c.handoff, func(t *testing.T, h *handoffFixture) {
				hold := c.first(t, h)
				time.Sleep(time.Second)
				require.NoError(t, hold.Release())
				time.Sleep(time.Second)
				h.ResetCounts()
				token := hold.Token()
				for range 10 { // within a minute, because watches are verified each minute
					begun := time.Now()
					next := c.then(t, h)
					require.Zero(t, time.Since(begun))
					require.Equal(t, token, next.Token())
					require.NotSame(t, hold, next)
					require.ErrorIs(t, hold.Err(), recipes.ErrNotHeld)
					require.True(t, next.ValidUntil().After(time.Now()))
					time.Sleep(c.each)
					begun = time.Now()
					require.NoError(t, next.Release())
					require.Zero(t, time.Since(begun))
					hold = next
					time.Sleep(c.pause)
				}
				require.Zero(t, h.requests(), "%v", h.Client("local").Requests())
			})
		})
	}
}

// Before that there are four requests: a create with a list, a watch on the node if it lasts, and
// one list for all the time in which no other client queues.
func TestKeepingANodeMakesOneRequest(t *testing.T) {
	withSticky(t, generous, func(t *testing.T, h *handoffFixture) {
		kept(t, h)
		time.Sleep(2 * idle)
		h.ResetCounts()
		for range 10 {
			require.NoError(t, acquire(t, h.lock).Release())
			time.Sleep(time.Second)
		}
		counts := h.Client("local").Requests()
		require.Equal(t, 1, counts[fault.OpCreate])
		require.Equal(t, 1, counts[fault.OpGetData])
		require.Equal(t, 2, counts[fault.OpGetChildren2], "one of them behind the create")
		require.Equal(t, 4, h.requests(), "%v", counts)
	})
}

func TestKeptNodeIsDeletedWhenAnotherClientQueues(t *testing.T) {
	narrow := mutex.Handoff{Streak: 1, Span: 1}
	for name, c := range map[string]struct {
		handoff mutex.Handoff
		before  bool // before the release
		tried   bool // the node was first acquired without waiting
	}{
		"afterwards":                              {handoff: generous},
		"before":                                  {handoff: generous, before: true},
		"afterwards, a node at its limit":         {handoff: narrow},
		"before, a node at its limit":             {handoff: narrow, before: true},
		"afterwards, acquired by a try":           {handoff: generous, tried: true},
		"before, acquired by a try, at its limit": {handoff: narrow, before: true, tried: true},
	} {
		t.Run(name, func(t *testing.T) {
			withSticky(t, c.handoff, func(t *testing.T, h *handoffFixture) {
				if c.tried {
					hold, err := h.lock.TryAcquire(t.Context())
					require.NoError(t, err)
					require.NoError(t, hold.Release())
				}
				hold := acquire(t, h.lock)
				time.Sleep(time.Second)
				if !c.before {
					require.NoError(t, hold.Release())
					time.Sleep(time.Second)
				}
				other := testlock.Start(t, h.other.Acquire)
				if c.before {
					time.Sleep(time.Second)
					require.NoError(t, hold.Release())
				}
				begun := time.Now()
				others := other.Won(t)
				require.Less(t, time.Since(begun), 50*time.Millisecond, "the hand-over takes longer than some requests")
				require.Greater(t, others.Token(), hold.Token())

				back := testlock.Start(t, h.lock.Acquire)
				time.Sleep(time.Second)
				require.True(t, back.Waiting())
				require.NoError(t, others.Release())
				again := back.Won(t)
				require.Greater(t, again.Token(), others.Token())
				require.NoError(t, again.Release())
			})
		})
	}
}

// A try of another client does not end the hold of the node, nor do other children of the
// directory.
func TestKeptNodeStaysWhileNoClientQueues(t *testing.T) {
	withSticky(t, generous, func(t *testing.T, h *handoffFixture) {
		hold := kept(t, h)
		_, err := h.other.TryAcquire(t.Context())
		require.ErrorIs(t, err, recipes.ErrNotAcquired)
		all, err := h.other.Participants(t.Context())
		require.NoError(t, err)
		require.Len(t, all, 1)
		require.Equal(t, hold.Path(), all[0].Node)
		for range 3 {
			require.NoError(t, h.Create("/lock/memo", nil))
			time.Sleep(100 * time.Millisecond)
			require.NoError(t, h.Delete("/lock/memo"))
			time.Sleep(100 * time.Millisecond)
		}
		again := acquire(t, h.lock)
		require.Equal(t, hold.Token(), again.Token())
		require.NoError(t, again.Release())
		time.Sleep(100 * time.Millisecond)
		begun := time.Now()
		require.NoError(t, testlock.Start(t, h.other.Acquire).Won(t).Release())
		require.Less(t, time.Since(begun), 50*time.Millisecond, "later waiters are not noticed")
	})
}

func TestKeptNodeIsDeletedAfterTheIdleTime(t *testing.T) {
	withSticky(t, generous, func(t *testing.T, h *handoffFixture) {
		for range 3 {
			hold := acquire(t, h.lock)
			time.Sleep(idle)
			require.NoError(t, hold.Release())
			time.Sleep(idle / 2)
			again := acquire(t, h.lock)
			require.Equal(t, hold.Token(), again.Token())
			require.NoError(t, again.Release())
			time.Sleep(idle - time.Millisecond)
			require.Len(t, nodes(t, h), 1)
			time.Sleep(50 * time.Millisecond)
			require.Empty(t, nodes(t, h))
			next := acquire(t, h.lock)
			require.Greater(t, next.Token(), hold.Token())
			require.NoError(t, next.Release())
			time.Sleep(idle + time.Second)
		}
	})
}

// An acquire at the instant at which the idle time ends gets the kept node or the next one.
func TestAcquireAtTheEndOfTheIdleTimeSucceeds(t *testing.T) {
	withSticky(t, generous, func(t *testing.T, h *handoffFixture) {
		for _, late := range []time.Duration{-1, 0, 1, time.Millisecond, 2 * time.Millisecond} {
			for _, try := range []bool{false, true} {
				hold := acquire(t, h.lock)
				require.NoError(t, hold.Release())
				time.Sleep(idle + late)
				if try {
					next, err := h.lock.TryAcquire(t.Context())
					if err != nil {
						require.ErrorIs(t, err, recipes.ErrNotAcquired, "the node still exists")
						continue
					}
					hold = next
				} else {
					hold = acquire(t, h.lock)
				}
				require.NoError(t, hold.Err())
				require.NoError(t, hold.Release())
			}
		}
	})
}

func TestCloseOfTheClientDeletesKeptNodes(t *testing.T) {
	withSticky(t, generous, func(t *testing.T, h *handoffFixture) {
		kept(t, h)
		waiting := testlock.Start(t, h.other.Acquire)
		begun := time.Now()
		require.NoError(t, h.client.Close())
		require.NoError(t, waiting.Won(t).Release())
		require.Less(t, time.Since(begun), time.Second)
		_, err := h.lock.Acquire(t.Context())
		require.ErrorIs(t, err, framework.ErrClosed)
		_, err = h.lock.TryAcquire(t.Context())
		require.ErrorIs(t, err, framework.ErrClosed)
	})
}

// A kept node has no hold that could be lost. But the next acquire must get another node.
func TestLostKeptNodeIsNotAcquired(t *testing.T) {
	for name, c := range map[string]struct {
		lose    func(*testing.T, *handoffFixture, *recipes.Hold)
		options []framework.Option
	}{
		"session expired": {lose: func(t *testing.T, h *handoffFixture, _ *recipes.Hold) {
			require.NoError(t, h.Client("local").Sessions()[0].Expire())
			time.Sleep(time.Second)
		}},
		"node deleted": {lose: func(t *testing.T, h *handoffFixture, hold *recipes.Hold) {
			require.NoError(t, h.Delete(hold.Path()))
			time.Sleep(100 * time.Millisecond)
		}},
		"disconnected for too long": {lose: func(t *testing.T, h *handoffFixture, _ *recipes.Hold) {
			h.Client("local").Cut()
			time.Sleep(testzk.SessionTimeout * 2 / 3)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := h.lock.Acquire(ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded, "acquired after the deadline of the session")
			_, err = h.lock.TryAcquire(ctx)
			require.Error(t, err)
			h.Client("local").Heal()
		}},
		"suspended under the Strict policy": {options: []framework.Option{framework.WithLossPolicy(framework.Strict)},
			lose: func(t *testing.T, h *handoffFixture, _ *recipes.Hold) {
				h.Client("local").Drop()
				time.Sleep(time.Second)
			}},
	} {
		t.Run(name, func(t *testing.T) {
			var measured testzk.Metrics
			core, logs := observer.New(zapcore.WarnLevel)
			withSticky(t, generous, func(t *testing.T, h *handoffFixture) {
				hold := kept(t, h)
				c.lose(t, h, hold)
				again := acquire(t, h.lock)
				require.Greater(t, again.Token(), hold.Token())
				time.Sleep(time.Second)
				require.NoError(t, again.Release())
				require.NoError(t, testlock.Start(t, h.other.Acquire).Won(t).Release())
			}, append(c.options, framework.WithMetrics(&measured), framework.WithLogger(zap.New(core)))...)
			require.Subset(t, measured.Lines(time.Second), []string{"docent.lock.hold{mutex /lock released} 0s 1s"},
				"the node counts while it is held")
			require.NotContains(t, measured.Lines(time.Second), "docent.lock.losses")
			require.Zero(t, logs.FilterMessage("hold ended").Len(), "%v", logs.All())
		})
	}
}

// The outage ends before the session's deadline. The node is acquired without a server, and waiters
// that queue later are noticed.
func TestKeptNodeSurvivesAnOutage(t *testing.T) {
	withSticky(t, generous, func(t *testing.T, h *handoffFixture) {
		hold := kept(t, h)
		h.Client("local").Cut()
		time.Sleep(500 * time.Millisecond)
		again := acquire(t, h.lock)
		require.Equal(t, hold.Token(), again.Token())
		require.NoError(t, again.Release())
		h.Client("local").Heal()
		h.Client("local").Drop()
		time.Sleep(time.Second)
		begun := time.Now()
		require.NoError(t, testlock.Start(t, h.other.Acquire).Won(t).Release())
		require.Less(t, time.Since(begun), 50*time.Millisecond)
	})
}

func TestRevokedKeptNodeIsDeleted(t *testing.T) {
	withSticky(t, generous, func(t *testing.T, h *handoffFixture) {
		hold := kept(t, h)
		require.NoError(t, recipes.Revoke(t.Context(), h.remote, recipes.Participant{Node: hold.Path()}))
		time.Sleep(50 * time.Millisecond)
		require.Empty(t, nodes(t, h))
		again := acquire(t, h.lock)
		require.Greater(t, again.Token(), hold.Token())
		require.NoError(t, recipes.Revoke(t.Context(), h.remote, recipes.Participant{Node: again.Path()}))
		<-again.Revoked()
		require.NoError(t, again.Release())
		require.Empty(t, nodes(t, h), "a revoked node is not kept")
	})
}

func TestNodeIsNotKeptWhileAGuardMayStillBeApplied(t *testing.T) {
	withSticky(t, generous, func(t *testing.T, h *handoffFixture) {
		hold := acquire(t, h.lock)
		h.On(fault.Match{Client: "local", Op: fault.OpMulti}, fault.Delay(500*time.Millisecond))
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := hold.Guard(ctx, framework.SetOp("/config", []byte("0"), -1))
		require.Equal(t, framework.Unknown, framework.OutcomeOf(err))
		require.NoError(t, hold.Release())
		require.Empty(t, nodes(t, h))
		again := acquire(t, h.lock)
		require.Greater(t, again.Token(), hold.Token())
		require.NoError(t, again.Release())
	})
}

// A node that TryAcquire has acquired is passed on to waiters, whether it was kept before or just
// created.
func TestNodeOfATryIsPassedOn(t *testing.T) {
	for _, before := range []bool{false, true} {
		withSticky(t, generous, func(t *testing.T, h *handoffFixture) {
			if before {
				kept(t, h)
			}
			made := h.On(fault.Match{Client: "local", Op: fault.OpCreate}, fault.Delay(100*time.Millisecond))
			tried := make(chan *recipes.Hold)
			go func() {
				hold, _ := h.lock.TryAcquire(context.Background())
				tried <- hold
			}()
			if !before {
				require.NoError(t, made.Wait(t.Context()))
			}
			synctest.Wait()
			made.Remove()
			waiting := waiters(t, h.lock, 2) // one comes while the other still acquires
			hold := <-tried
			require.NoError(t, hold.Err())
			_, err := h.lock.TryAcquire(t.Context())
			require.ErrorIs(t, err, recipes.ErrNotAcquired)
			require.NoError(t, hold.Release())
			for _, next := range waiting {
				next := next.Won(t)
				require.Equal(t, hold.Token(), next.Token())
				require.NoError(t, next.Release())
			}
		})
	}
}

// Local waiters behind a TryAcquire that fails enqueue.
func TestWaitersBehindAFailedTryEnqueue(t *testing.T) {
	withSticky(t, generous, func(t *testing.T, h *handoffFixture) {
		other := acquire(t, h.other)
		read := h.On(fault.Match{Client: "local", Op: fault.OpGetChildren2}, fault.Hold())
		tried := make(chan error)
		go func() {
			_, err := h.lock.TryAcquire(context.Background())
			tried <- err
		}()
		require.NoError(t, read.Wait(t.Context()))
		waiting := waiters(t, h.lock, 2)
		read.Release()
		require.ErrorIs(t, <-tried, recipes.ErrNotAcquired)
		time.Sleep(time.Second)
		require.Len(t, nodes(t, h), 2)
		require.NoError(t, other.Release())
		require.NoError(t, waiting[0].Won(t).Release())
		require.NoError(t, waiting[1].Won(t).Release())
	})
}

// Both clients are sticky and acquire the lock all the time. The streak bounds how often a node is
// held. That is so whether a client's goroutines wait for each other or acquire one after the
// other.
func TestKeptNodesAreBoundedWhileOthersWait(t *testing.T) {
	for name, pause := range map[string]time.Duration{
		"wait for each other": 0, "come one after the other": 2 * time.Millisecond,
	} {
		t.Run(name, func(t *testing.T) {
			const streak = 3
			handoff := mutex.Handoff{Streak: streak, Span: time.Hour}
			withSticky(t, handoff, func(t *testing.T, h *handoffFixture) {
				h.other = newMutex(t, h.remote, "/lock", keeping(handoff, idle))
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				held := map[int64]int{} // number of holds by token
				nodesUsed := 0
				var last int64
				contend := func(lock *mutex.Mutex, done chan<- struct{}) {
					defer func() { done <- struct{}{} }()
					for {
						hold, err := lock.Acquire(ctx)
						if err != nil {
							return
						}
						if hold.Token() < last { // the lock prevents a data race here
							t.Errorf("token %d after %d", hold.Token(), last)
						}
						if hold.Token() > last {
							nodesUsed++
						}
						last = hold.Token()
						held[last]++
						time.Sleep(5 * time.Millisecond)
						_ = hold.Release()
						time.Sleep(pause)
					}
				}
				done := make(chan struct{})
				goroutines := 2
				if pause > 0 {
					goroutines = 1
				}
				for range goroutines {
					go contend(h.lock, done)
					go contend(h.other, done)
				}
				for range 2 * goroutines {
					<-done
				}
				for token, n := range held {
					require.LessOrEqual(t, n, streak+1, token)
				}
				require.Greater(t, nodesUsed, 200)
			})
		})
	}
}

// On any server the node is kept, acquired again, and given to other clients.
func TestStickyNodeOnAnyServer(t *testing.T) {
	p, client, other := testzk.Path(t), testzk.Connected(t, testzk.Connect()), testzk.Connected(t, testzk.Connect())
	lock, theirs := newMutex(t, client, p, keeping(generous, time.Hour)), newMutex(t, other, p)
	hold := acquire(t, lock)
	require.NoError(t, hold.Release())
	again := acquire(t, lock)
	require.Equal(t, hold.Token(), again.Token())
	require.NoError(t, again.Release())
	got := acquire(t, theirs)
	require.Greater(t, got.Token(), hold.Token())
	require.NoError(t, got.Release())
	require.NoError(t, acquire(t, lock).Release())
	require.NoError(t, client.Close())
	testzk.Empty(t, p)
}
