package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
)

func newMutex(t *testing.T) *mutex.Mutex {
	t.Helper()
	m, err := mutex.New(testzk.Connected(t, testzk.Connect()), testzk.Path(t))
	require.NoError(t, err)
	return m
}

// free reports whether nothing holds the lock.
func free(t *testing.T, m *mutex.Mutex) bool {
	t.Helper()
	participants, err := m.Participants(testzk.Context(t))
	require.NoError(t, err)
	return len(participants) == 0
}

func TestDoHoldsTheLockWhileItsFunctionRuns(t *testing.T) {
	m := newMutex(t)
	failure := errors.New("failure")
	for _, want := range []error{nil, failure} {
		var held *recipes.Hold
		err := recipes.Do(testzk.Context(t), m, func(ctx context.Context, hold *recipes.Hold) error {
			held = hold
			require.NoError(t, hold.Err())
			require.NoError(t, ctx.Err())
			again, err := m.Acquire(ctx)
			require.NoError(t, err, "the context re-enters")
			require.Equal(t, hold.Token(), again.Token())
			require.NoError(t, again.Release())
			return want
		})
		require.ErrorIs(t, err, want)
		require.ErrorIs(t, held.Err(), recipes.ErrNotHeld)
		require.True(t, free(t, m))
	}
}

func TestDoReturnsThatTheLockWasLost(t *testing.T) {
	m := newMutex(t)
	err := recipes.Do(testzk.Context(t), m, func(ctx context.Context, hold *recipes.Hold) error {
		require.NoError(t, testzk.Observer(t).Delete(hold.Path(), -1))
		_, err := hold.Guard(ctx)
		require.ErrorIs(t, err, recipes.ErrNodeDeleted)
		require.ErrorIs(t, context.Cause(ctx), recipes.ErrNodeDeleted)
		return nil
	})
	require.ErrorIs(t, err, recipes.ErrNodeDeleted)
}

// A function usually returns the reason why its context has ended.
func TestErrorOfDoHasALossOnce(t *testing.T) {
	another := errors.New("disk full")
	for name, c := range map[string]struct {
		failed func(cause error) error
		want   []string // the lines of the text: NODE is the lock node, and LOSS the cause
	}{
		"nothing":   {func(error) error { return nil }, []string{"release NODE: LOSS"}},
		"the cause": {func(cause error) error { return cause }, []string{"release NODE: LOSS"}},
		"the exported error": {
			func(error) error { return framework.ErrSessionLost }, []string{"release NODE: LOSS"},
		},
		"the cause, with an operation": {
			func(cause error) error { return fmt.Errorf("write: %w", cause) }, []string{"write: LOSS"},
		},
		"the cause, with another error": {
			func(cause error) error { return errors.Join(another, cause) }, []string{"disk full", "LOSS"},
		},
		"another error": {
			func(error) error { return another }, []string{"disk full", "release NODE: LOSS"},
		},
		"the loss of another lock": {
			func(error) error { return fmt.Errorf("write: %w", framework.ErrSessionLost) },
			[]string{"write: framework: session lost", "release NODE: LOSS"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t)
				client, err := framework.New(srv.MemAddr(), framework.WithDialer(srv.Client("a").DialContext))
				require.NoError(t, err)
				defer client.Close()
				m, err := mutex.New(client, "/lock")
				require.NoError(t, err)
				var node string
				var cause, failed error
				err = m.Do(t.Context(), func(ctx context.Context, hold *recipes.Hold) error {
					node = hold.Path()
					srv.Client("a").Cut()
					<-ctx.Done()
					cause = context.Cause(ctx)
					failed = c.failed(cause)
					return failed
				})
				replace := strings.NewReplacer("NODE", node, "LOSS", cause.Error())
				require.EqualError(t, err, replace.Replace(strings.Join(c.want, "\n")))
				require.ErrorIs(t, err, cause)
				require.ErrorIs(t, err, framework.ErrSessionLost)
				if failed != nil {
					require.ErrorIs(t, err, failed)
				}
			})
		})
	}
}

// The error of a node that another client has deleted says which node it was.
func TestErrorOfDoHasADeletionOnce(t *testing.T) {
	m := newMutex(t)
	for name, failed := range map[string]func(cause error) error{
		"the cause":                    func(cause error) error { return cause },
		"the cause, with an operation": func(cause error) error { return fmt.Errorf("write: %w", cause) },
	} {
		t.Run(name, func(t *testing.T) {
			err := m.Do(testzk.Context(t), func(ctx context.Context, hold *recipes.Hold) error {
				require.NoError(t, testzk.Observer(t).Delete(hold.Path(), -1))
				_, err := hold.Guard(ctx)
				require.ErrorIs(t, err, recipes.ErrNodeDeleted)
				return failed(context.Cause(ctx))
			})
			require.ErrorIs(t, err, recipes.ErrNodeDeleted)
			require.Equal(t, 1, strings.Count(err.Error(), recipes.ErrNodeDeleted.Error()), "%v", err)
		})
	}
}

func TestDoDoesNotCallItsFunctionWithoutTheLock(t *testing.T) {
	m := newMutex(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := recipes.Do(ctx, m, func(context.Context, *recipes.Hold) error {
		t.Error("the function is called")
		return nil
	})
	require.ErrorIs(t, err, context.Canceled)
}

func TestDoAndAcquireWithinRefuseNil(t *testing.T) {
	m := newMutex(t)
	ctx := testzk.Context(t)
	work := func(context.Context, *recipes.Hold) error { return nil }
	require.EqualError(t, recipes.Do(ctx, nil, work), "recipes: the lock is nil")
	require.EqualError(t, recipes.Do(ctx, m, nil), "recipes: nil function")
	require.EqualError(t, m.Do(ctx, nil), "recipes: nil function")
	require.True(t, free(t, m), "nothing was acquired")
	_, err := recipes.AcquireWithin(ctx, nil, time.Second)
	require.EqualError(t, err, "recipes: the lock is nil")
}

func TestDoReleasesTheLockOfAFunctionThatDoesNotReturn(t *testing.T) {
	for name, leave := range map[string]func(){"panic": func() { panic("panic") }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			m := newMutex(t)
			left := make(chan struct{})
			go func() {
				defer close(left)
				defer func() { _ = recover() }()
				_ = recipes.Do(testzk.Context(t), m, func(context.Context, *recipes.Hold) error {
					leave()
					return nil
				})
			}()
			<-left
			require.True(t, free(t, m))
		})
	}
}

func TestAcquireWithinWaitsNoLongerThanItsTime(t *testing.T) {
	path := testzk.Path(t)
	first, err := mutex.New(testzk.Connected(t, testzk.Connect()), path)
	require.NoError(t, err)
	second, err := mutex.New(testzk.Connected(t, testzk.Connect()), path)
	require.NoError(t, err)
	hold, err := recipes.AcquireWithin(testzk.Context(t), first, testzk.Patience)
	require.NoError(t, err)
	for _, within := range []time.Duration{-time.Second, 0} {
		_, err = recipes.AcquireWithin(testzk.Context(t), second, within)
		require.ErrorIs(t, err, recipes.ErrNotAcquired, "%v", within)
		require.NotErrorIs(t, err, context.DeadlineExceeded, "%v", within)
	}
	_, err = recipes.AcquireWithin(testzk.Context(t), second, 10*time.Millisecond)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, hold.Err(), "the time limits the wait")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = recipes.AcquireWithin(ctx, second, testzk.Patience)
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, recipes.ErrNotAcquired)
	var none context.Context
	_, err = recipes.AcquireWithin(none, second, testzk.Patience)
	require.ErrorIs(t, err, framework.ErrNilContext)
	require.NoError(t, hold.Release())
}

func TestDoWithinLimitsTheWaitAndNotTheWork(t *testing.T) {
	path := testzk.Path(t)
	first, err := mutex.New(testzk.Connected(t, testzk.Connect()), path)
	require.NoError(t, err)
	second, err := mutex.New(testzk.Connected(t, testzk.Connect()), path)
	require.NoError(t, err)
	err = recipes.DoWithin(t.Context(), first, testzk.Patience, func(ctx context.Context, hold *recipes.Hold) error {
		_, limited := ctx.Deadline()
		require.False(t, limited, "the time limits the work, too")
		err := recipes.DoWithin(ctx, second, 10*time.Millisecond, func(context.Context, *recipes.Hold) error {
			t.Error("the function is called")
			return nil
		})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		return hold.Err()
	})
	require.NoError(t, err)
	testzk.Eventually(t, func() bool { return free(t, first) }, "the second lock's node is not deleted")
}

// The error tells a lock that another client holds from one that may be free, as that of Acquire does.
func TestAcquireWithinSaysWhyItsTimeIsOver(t *testing.T) {
	reasons := []error{recipes.ErrNotAcquired, framework.ErrNotConnected, context.DeadlineExceeded}
	for name, c := range map[string]struct {
		d      time.Duration
		before func(*zktest.Server, *mutex.Mutex) error
		want   []error // of reasons; nil: the lock is acquired
	}{
		"free":                   {time.Second, nil, nil},
		"free, one attempt":      {0, nil, nil},
		"held":                   {time.Second, hold, []error{recipes.ErrNotAcquired, context.DeadlineExceeded}},
		"held, one attempt":      {0, hold, []error{recipes.ErrNotAcquired}},
		"held, a negative time":  {-time.Hour, hold, []error{recipes.ErrNotAcquired}},
		"no server":              {time.Second, stop, []error{framework.ErrNotConnected, context.DeadlineExceeded}},
		"no server, one attempt": {0, stop, []error{framework.ErrNotConnected}},
		"a silent server":        {time.Second, pause, []error{context.DeadlineExceeded}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t)
				client, err := framework.New(srv.MemAddr(), framework.WithDialer(srv.Client("a").DialContext))
				require.NoError(t, err)
				defer client.Close()
				defer srv.Resume(zktest.ExpireFirst)
				require.NoError(t, client.WaitConnected(t.Context()))
				m, err := mutex.New(client, "/lock")
				require.NoError(t, err)
				if c.before != nil {
					require.NoError(t, c.before(srv, m))
				}
				begun := time.Now()
				hold, err := m.AcquireWithin(t.Context(), c.d)
				if c.d > 0 {
					require.LessOrEqual(t, time.Since(begun), c.d)
				}
				if c.want == nil {
					require.NoError(t, err)
					require.NoError(t, hold.Release())
					return
				}
				for _, reason := range reasons {
					require.Equal(t, slices.Contains(c.want, reason), errors.Is(err, reason), "%v: %v", reason, err)
				}
			})
		})
	}
}

func hold(_ *zktest.Server, m *mutex.Mutex) error {
	_, err := m.Acquire(context.Background())
	return err
}

func stop(srv *zktest.Server, _ *mutex.Mutex) error {
	srv.Stop()
	time.Sleep(time.Minute)
	return nil
}

func pause(srv *zktest.Server, _ *mutex.Mutex) error {
	srv.Pause()
	return nil
}

// slowService is a lock whose own deadline ends its requests.
type slowService struct{ recipes.Locker }

func (slowService) Acquire(context.Context) (*recipes.Hold, error) {
	return nil, fmt.Errorf("request: %w", context.DeadlineExceeded)
}

func TestDeadlineBelowTheLockIsNoEndOfTheTime(t *testing.T) {
	_, err := recipes.AcquireWithin(t.Context(), slowService{}, time.Hour)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, recipes.ErrNotAcquired)
}
