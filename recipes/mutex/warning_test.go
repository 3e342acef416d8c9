package mutex_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// slowLock is a lock with a holder and two waiters. The next waiter waits for the second of them.
// Only its warnings concern the holder's node.
type slowLock struct {
	*zktest.Server
	hold *recipes.Hold
	lock *mutex.Mutex // of the next waiter
	logs *observer.ObservedLogs
}

// withSlowLock runs a scenario on a slowLock. At its end the queue must be empty.
func withSlowLock(t *testing.T, opts []framework.Option, scenario func(*testing.T, *slowLock)) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		core, logs := observer.New(zapcore.WarnLevel)
		holder := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client("holder").DialContext))
		waiter := testzk.Connected(t, srv.MemAddr(), append([]framework.Option{
			framework.WithDialer(srv.Client("waiter").DialContext), framework.WithLogger(zap.New(core)),
		}, opts...)...)
		hold, err := newMutex(t, holder, "/lock", mutex.WithData([]byte("holder"))).Acquire(context.Background())
		require.NoError(t, err)
		for range 2 {
			go func() {
				if hold, err := newMutex(t, holder, "/lock").Acquire(context.Background()); err == nil {
					_ = hold.Release()
				}
			}()
		}
		time.Sleep(time.Second)
		scenario(t, &slowLock{srv, hold, newMutex(t, waiter, "/lock"), logs})
		time.Sleep(time.Second)
		require.Equal(t, "/lock container\n", srv.Tree())
	})
}

// after acquires and releases the lock. The other holder releases it after d.
func (s *slowLock) after(t *testing.T, d time.Duration) {
	free := time.AfterFunc(d, func() { _ = s.hold.Release() })
	defer free.Stop()
	hold, err := s.lock.Acquire(context.Background())
	require.NoError(t, err)
	require.NoError(t, hold.Release())
}

// reads returns the numbers of the waiter's requests before the release that a warning makes.
func (s *slowLock) reads() (lists, gets int) {
	for _, e := range s.Trace().Entries {
		switch {
		case e.What == fault.OpDelete.String() && e.Path == s.hold.Path():
			return lists, gets
		case e.Client != "waiter":
		case e.What == fault.OpGetChildren2.String() && e.Path == "/lock":
			lists++
		case e.What == fault.OpGetData.String() && e.Path == s.hold.Path():
			gets++
		}
	}
	return lists, gets
}

func (s *slowLock) warnings() []observer.LoggedEntry {
	return s.logs.FilterMessage("still waiting").All()
}

// waits returns the durations in the warnings, rounded to seconds.
func (s *slowLock) waits() (all []time.Duration) {
	for _, w := range s.warnings() {
		all = append(all, w.ContextMap()["waited"].(time.Duration).Round(time.Second))
	}
	return all
}

func TestWarningsComeEachTimeTheWaitHasDoubled(t *testing.T) {
	for limit, want := range map[time.Duration][]time.Duration{
		time.Minute:      {time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute},
		5 * time.Minute:  {5 * time.Minute, 10 * time.Minute},
		11 * time.Minute: nil,
		0:                nil,
	} {
		t.Run(limit.String(), func(t *testing.T) {
			withSlowLock(t, []framework.Option{framework.WithWaitWarning(limit)}, func(t *testing.T, s *slowLock) {
				s.after(t, 10*time.Minute+30*time.Second)
				require.Equal(t, want, s.waits())
				lists, gets := s.reads()
				require.Equal(t, 1+len(want), lists, "one to find the predecessor")
				require.Equal(t, len(want), gets)
			})
		})
	}
}

func TestFirstWarningIsByDefaultAfterAMinute(t *testing.T) {
	withSlowLock(t, nil, func(t *testing.T, s *slowLock) {
		s.after(t, 90*time.Second)
		require.Equal(t, []time.Duration{time.Minute}, s.waits())
		first := s.warnings()[0].ContextMap()["first"].(map[string]any)
		require.Equal(t, s.hold.Path(), first["node"])
		require.Equal(t, "holder", first["data"])
		require.NotContains(t, first, "host")
		require.NotContains(t, s.warnings()[0].ContextMap(), "hint")
		require.Regexp(t, "^0x[0-9a-f]+$", first["session"])
		require.Equal(t, "docent.mutex", s.warnings()[0].LoggerName)
		require.Equal(t, "/lock", s.warnings()[0].ContextMap()["path"])
	})
}

// An acquire in a hold that does not get the context of the hold waits for its own client.
func TestWarningHintsAtTheContextOfAHoldOfTheSameClient(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		core, logs := observer.New(zapcore.WarnLevel)
		c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client("c").DialContext),
			framework.WithLogger(zap.New(core)))
		mu := newMutex(t, c, "/lock")
		err := mu.Do(t.Context(), func(ctx context.Context, hold *recipes.Hold) error {
			_, err := mu.AcquireWithin(ctx, time.Second) // re-enters
			require.NoError(t, err)
			_, err = mu.AcquireWithin(t.Context(), 90*time.Second)
			require.ErrorIs(t, err, recipes.ErrNotAcquired)
			return nil
		})
		require.NoError(t, err)
		warnings := logs.FilterMessage("still waiting").All()
		require.Len(t, warnings, 1)
		require.Contains(t, warnings[0].ContextMap()["hint"], "context of that hold")
	})
}

// The wait begins when the waiter first enqueues, not with each of its nodes.
func TestWaitContinuesWhenTheNodeIsDeleted(t *testing.T) {
	withSlowLock(t, nil, func(t *testing.T, s *slowLock) {
		time.AfterFunc(45*time.Second, func() {
			all, err := s.lock.Participants(context.Background())
			require.NoError(t, err)
			require.NoError(t, s.Delete(all[3].Node))
		})
		s.after(t, 90*time.Second)
		require.Equal(t, []time.Duration{time.Minute}, s.waits())
	})
}

func TestOneOfManyWarns(t *testing.T) {
	const waiters = 100
	withSlowLock(t, nil, func(t *testing.T, s *slowLock) {
		var all sync.WaitGroup
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		for i := range waiters {
			all.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				_, err := s.lock.Acquire(ctx)
				require.ErrorIs(t, err, recipes.ErrNotAcquired)
			})
		}
		time.Sleep(time.Minute - time.Second)
		before, _ := s.reads()
		time.Sleep(4 * time.Minute)
		require.Equal(t, []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute}, s.waits())
		lists, gets := s.reads()
		require.Equal(t, 3, lists-before)
		require.Equal(t, 3, gets)
		all.Wait()
		require.NoError(t, s.hold.Release())
	})
}

// A failed read of a warning is logged, and the wait continues.
func TestFailedWarningDoesNotFailTheWait(t *testing.T) {
	parent := func(*slowLock) string { return "/lock" }
	first := func(s *slowLock) string { return s.hold.Path() }
	for what, slow := range map[string]struct {
		op   fault.Op
		path func(*slowLock) string
		skip int
		what fault.Action
		want string
	}{
		"list refused":       {fault.OpGetChildren2, parent, 1, fault.Fail(zktest.NoAuth), "no permission (ACL)"},
		"read refused":       {fault.OpGetData, first, 0, fault.Fail(zktest.NoAuth), "no permission (ACL)"},
		"first node deleted": {fault.OpGetData, first, 0, fault.Fail(zktest.NoNode), "node does not exist"},
		"connection lost":    {fault.OpGetData, first, 0, fault.DropBefore(), "connection closed"},
	} {
		t.Run(what, func(t *testing.T) {
			withSlowLock(t, nil, func(t *testing.T, s *slowLock) {
				match := fault.Match{Client: "waiter", Op: slow.op, Path: slow.path(s), Skip: slow.skip}
				rule := s.On(match, slow.what)
				s.after(t, 130*time.Second)
				require.Equal(t, 1, rule.Hits())
				warnings := s.warnings()
				require.Len(t, warnings, 2)
				require.Contains(t, warnings[0].ContextMap()["error"], slow.want)
				require.Contains(t, warnings[1].ContextMap()["first"], "node")
			})
		})
	}
}

// A warning without answers to its reads ends with the wait. It logs nothing later.
func TestWarningEndsWithTheWait(t *testing.T) {
	opts := []framework.Option{framework.WithRetry(retry.Forever(time.Second))}
	withSlowLock(t, opts, func(t *testing.T, s *slowLock) {
		s.On(fault.Match{Client: "waiter", Op: fault.OpGetChildren2, Skip: 1}, fault.Delay(3*time.Second))
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute+time.Second)
		defer cancel()
		begun := time.Now()
		_, err := s.lock.Acquire(ctx)
		require.ErrorIs(t, err, recipes.ErrNotAcquired)
		require.Less(t, time.Since(begun), time.Minute+3*time.Second, "leaving the queue takes a second at most")
		synctest.Wait()
		require.Empty(t, s.warnings())
		time.Sleep(10 * time.Second)
		require.NoError(t, s.hold.Release())
		require.Empty(t, s.warnings(), fmt.Sprint(s.logs.All()))
	})
}
