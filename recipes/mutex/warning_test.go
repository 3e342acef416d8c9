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
	"github.com/docent-zk/docent/zktest/sim"
)

// slow is a lock that somebody holds and two others wait for. The next one in line waits for the second of them, and so has nothing to do
// with the holder's node, but to warn.
type slow struct {
	*zktest.Server
	hold *recipes.Hold
	lock *mutex.Mutex // of the one who waits
	logs *observer.ObservedLogs
}

// slowly runs a scenario on a slow lock, at the end of which it must be free, and nobody may be left.
func slowly(t *testing.T, opts []framework.Option, scenario func(*testing.T, *slow)) {
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
		scenario(t, &slow{srv, hold, newMutex(t, waiter, "/lock"), logs})
		time.Sleep(time.Second)
		require.Equal(t, "/lock container\n", srv.Tree())
	})
}

// after acquires and releases the lock, which becomes free after d.
func (s *slow) after(t *testing.T, d time.Duration) {
	free := time.AfterFunc(d, func() { _ = s.hold.Release() })
	defer free.Stop()
	hold, err := s.lock.Acquire(context.Background())
	require.NoError(t, err)
	require.NoError(t, hold.Release())
}

// reads are how many of the waiter's requests were for what a warning reads, until the lock was released.
func (s *slow) reads() (lists, gets int) {
	for _, e := range s.Trace().Entries {
		switch {
		case e.What == zktest.OpDelete.String() && e.Path == s.hold.Path():
			return lists, gets
		case e.Client != "waiter":
		case e.What == zktest.OpGetChildren2.String() && e.Path == "/lock":
			lists++
		case e.What == zktest.OpGetData.String() && e.Path == s.hold.Path():
			gets++
		}
	}
	return lists, gets
}

func (s *slow) warnings() []observer.LoggedEntry { return s.logs.FilterMessage("still waiting").All() }

// waits are the lengths of the waits that were warned of, to the second.
func (s *slow) waits() (all []time.Duration) {
	for _, w := range s.warnings() {
		all = append(all, w.ContextMap()["waited"].(time.Duration).Round(time.Second))
	}
	return all
}

func TestWarningsOfALongWaitComeEachTimeItHasDoubled(t *testing.T) {
	for limit, want := range map[time.Duration][]time.Duration{
		time.Minute:      {time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute},
		5 * time.Minute:  {5 * time.Minute, 10 * time.Minute},
		11 * time.Minute: nil,
		0:                nil,
	} {
		t.Run(limit.String(), func(t *testing.T) {
			slowly(t, []framework.Option{framework.WithWaitWarning(limit)}, func(t *testing.T, s *slow) {
				s.after(t, 10*time.Minute+30*time.Second)
				require.Equal(t, want, s.waits())
				lists, gets := s.reads()
				require.Equal(t, 1+len(want), lists, "one to see who is ahead")
				require.Equal(t, len(want), gets)
			})
		})
	}
}

func TestWarningsAreByDefaultOfAMinute(t *testing.T) {
	slowly(t, nil, func(t *testing.T, s *slow) {
		s.after(t, 90*time.Second)
		require.Equal(t, []time.Duration{time.Minute}, s.waits())
		first := s.warnings()[0].ContextMap()["first"].(map[string]any)
		require.Equal(t, s.hold.Path(), first["node"])
		require.Equal(t, "holder", first["data"])
		require.NotContains(t, first, "host")
		require.Regexp(t, "^0x[0-9a-f]+$", first["session"])
		require.Equal(t, "docent.mutex", s.warnings()[0].LoggerName)
		require.Equal(t, "/lock", s.warnings()[0].ContextMap()["path"])
	})
}

// The wait begins when the place in line is taken, not with each place.
func TestWaitGoesOnWhenThePlaceIsLost(t *testing.T) {
	slowly(t, nil, func(t *testing.T, s *slow) {
		time.AfterFunc(45*time.Second, func() {
			line, err := s.lock.Participants(context.Background())
			require.NoError(t, err)
			require.NoError(t, s.Delete(line[3].Node))
		})
		s.after(t, 90*time.Second)
		require.Equal(t, []time.Duration{time.Minute}, s.waits())
	})
}

func TestOneOfManyWarns(t *testing.T) {
	const waiters = 100
	slowly(t, nil, func(t *testing.T, s *slow) {
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

// Whatever goes wrong with the reads of a warning, it is said, and the wait goes on.
func TestWarningThatFailsIsNoFailureOfTheWait(t *testing.T) {
	parent := func(*slow) string { return "/lock" }
	first := func(s *slow) string { return s.hold.Path() }
	for what, fault := range map[string]struct {
		op   zktest.Op
		path func(*slow) string
		skip int
		what zktest.Action
		want string
	}{
		"list refused":    {zktest.OpGetChildren2, parent, 1, zktest.Fail(zktest.NoAuth), "no permission (ACL)"},
		"read refused":    {zktest.OpGetData, first, 0, zktest.Fail(zktest.NoAuth), "no permission (ACL)"},
		"first is gone":   {zktest.OpGetData, first, 0, zktest.Fail(zktest.NoNode), "node does not exist"},
		"connection lost": {zktest.OpGetData, first, 0, zktest.DropBefore(), "connection closed"},
	} {
		t.Run(what, func(t *testing.T) {
			slowly(t, nil, func(t *testing.T, s *slow) {
				rule := s.On(zktest.Match{Client: "waiter", Op: fault.op, Path: fault.path(s), Skip: fault.skip}, fault.what)
				s.after(t, 130*time.Second)
				require.Equal(t, 1, rule.Hits())
				warnings := s.warnings()
				require.Len(t, warnings, 2)
				require.Contains(t, warnings[0].ContextMap()["error"], fault.want)
				require.Contains(t, warnings[1].ContextMap()["first"], "node")
			})
		})
	}
}

// A warning whose reads are not answered ends with the wait, and says nothing any more.
func TestWarningEndsWithTheWait(t *testing.T) {
	slowly(t, []framework.Option{framework.WithRetry(retry.Forever(time.Second))}, func(t *testing.T, s *slow) {
		s.On(zktest.Match{Client: "waiter", Op: zktest.OpGetChildren2, Skip: 1}, zktest.Delay(3*time.Second))
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute+time.Second)
		defer cancel()
		begun := time.Now()
		_, err := s.lock.Acquire(ctx)
		require.ErrorIs(t, err, recipes.ErrNotAcquired)
		require.Less(t, time.Since(begun), time.Minute+3*time.Second, "leaving the line takes a second at most")
		synctest.Wait()
		require.Empty(t, s.warnings())
		time.Sleep(10 * time.Second)
		require.NoError(t, s.hold.Release())
		require.Empty(t, s.warnings(), fmt.Sprint(s.logs.All()))
	})
}
