package multilock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/multilock"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// service has a lock with a time to live.
type service struct {
	mu       sync.Mutex
	owner    int       // 0: the lock is free
	until    time.Time // end of the owner's time
	last     int
	lost     chan struct{} // closed when the owner loses the lock
	released int
	refuse   error // error of a release
}

const timeToLive = time.Minute

// ofService is a lock of a service: a function that acquires it, and waits for other holders if wait
// is true. Without an Until the service leaves the lock to its holder until the release.
type ofService func(ctx context.Context, wait bool) (recipes.ForeignHold, error)

func (f ofService) Acquire(ctx context.Context) (*recipes.Hold, error) { return f.acquire(ctx, true) }

func (f ofService) TryAcquire(ctx context.Context) (*recipes.Hold, error) {
	return f.acquire(ctx, false)
}

func (f ofService) acquire(ctx context.Context, wait bool) (*recipes.Hold, error) {
	held, err := f(ctx, wait)
	if err != nil {
		return nil, fmt.Errorf("acquire service: %w", err)
	}
	held.Name = "service"
	if held.Until == nil {
		held.Until = func() time.Time { return time.Now().Add(time.Hour) }
	}
	return recipes.HoldForeign(held)
}

func (s *service) take(ctx context.Context, wait bool) (recipes.ForeignHold, error) {
	for {
		if external, ok := s.try(); ok {
			return external, nil
		}
		if !wait {
			return recipes.ForeignHold{}, recipes.ErrNotAcquired
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return recipes.ForeignHold{}, errors.Join(recipes.ErrNotAcquired, ctx.Err())
		}
	}
}

func (s *service) try() (recipes.ForeignHold, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.owner != 0 && time.Now().Before(s.until) {
		return recipes.ForeignHold{}, false
	}
	s.last++
	id := s.last
	s.owner, s.until, s.lost = id, time.Now().Add(timeToLive), make(chan struct{})
	until := s.until
	return recipes.ForeignHold{
		Until: func() time.Time { return until },
		Lost:  s.lost,
		Release: func(context.Context) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.released++
			if s.owner == id {
				s.owner = 0
			}
			return s.refuse
		},
	}, true
}

// state reports whether the lock is held, and how often it was released.
func (s *service) state() (taken bool, released int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.owner != 0 && time.Now().Before(s.until), s.released
}

// beside returns a multi-lock of a mutex and the lock of a service.
func beside(t *testing.T, c *framework.Client, s *service, path string) *multilock.MultiLock {
	t.Helper()
	return combined(t, newMutex(t, c, path), ofService(s.take))
}

func TestForeignLockIsHeldTogetherWithAMutex(t *testing.T) {
	path, c, s := named(t, 1)[0], own(t), &service{}
	m := beside(t, c, s, path)
	hold := acquire(t, m)
	taken, _ := s.state()
	require.True(t, taken)
	excluded(t, c, path)
	require.Positive(t, hold.Tokens()[0])
	require.Zero(t, hold.Tokens()[1], "the service has no token")
	require.Zero(t, hold.Token())
	require.Len(t, hold.Paths(), 1)
	_, err := hold.Guard(testzk.Context(t))
	require.NoError(t, err)
	require.False(t, hold.ValidUntil().After(time.Now().Add(timeToLive)), "longer than the service grants it")
	require.NoError(t, hold.Release())
	taken, released := s.state()
	require.False(t, taken)
	require.Equal(t, 1, released)
	free(t, path)
}

func TestHolderOfTheForeignLockExcludes(t *testing.T) {
	path, c, s := named(t, 1)[0], own(t), &service{}
	theirs, ok := s.try()
	require.True(t, ok)
	m := beside(t, c, s, path)
	_, err := m.TryAcquire(testzk.Context(t))
	require.ErrorIs(t, err, recipes.ErrNotAcquired)
	require.ErrorContains(t, err, "service")
	free(t, path)
	waiter := testlock.Start(t, m.Acquire)
	queued(t, c, path, 1)
	require.True(t, waiter.Waiting())
	require.NoError(t, theirs.Release(t.Context()))
	require.NoError(t, waiter.Won(t).Release())
	free(t, path)
}

func TestForeignLockAndMutexEndTogether(t *testing.T) {
	for name, test := range map[string]struct {
		harm  func(t *testing.T, srv *zktest.Server, s *service, node string)
		cause error
	}{
		"the service reports its loss": {
			func(_ *testing.T, _ *zktest.Server, s *service, _ string) { close(s.lost) },
			recipes.ErrForeignLost},
		"its time ends": {func(*testing.T, *zktest.Server, *service, string) {}, recipes.ErrForeignLost},
		"the session is lost": {
			func(_ *testing.T, srv *zktest.Server, _ *service, _ string) { srv.Client("one").Cut() },
			framework.ErrSessionLost},
		"the node is deleted": {
			func(t *testing.T, srv *zktest.Server, _ *service, node string) {
				require.NoError(t, srv.Delete(node))
			},
			recipes.ErrNodeDeleted},
	} {
		t.Run(name, func(t *testing.T) {
			sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
				s := &service{}
				hold := acquire(t, beside(t, simClient(t, srv, "one", 4*time.Second), s, "/lock"))
				work := hold.Context(t.Context())
				test.harm(t, srv, s, hold.Path())
				<-work.Done()
				require.ErrorIs(t, context.Cause(work), test.cause)
				require.ErrorIs(t, hold.Release(), test.cause)
				srv.Client("one").Heal()
				time.Sleep(5 * time.Second)
				taken, released := s.state()
				require.False(t, taken)
				require.Equal(t, 1, released)
				children, err := srv.Children("/lock")
				require.NoError(t, err)
				require.Empty(t, children)
			}, zktest.WithSessionTimeouts(time.Second, time.Minute))
		})
	}
}

func TestFailedReleaseOfAForeignLockIsReturned(t *testing.T) {
	path, s := named(t, 1)[0], &service{refuse: errors.New("no route to the service")}
	hold := acquire(t, beside(t, own(t), s, path))
	err := hold.Release()
	require.ErrorIs(t, err, recipes.ErrReleasePending)
	require.ErrorIs(t, err, s.refuse)
	free(t, path)
}

// A foreign lock that is acquired when the caller has just canceled is released.
func TestForeignLockAcquiredTooLateIsReleased(t *testing.T) {
	path, c, s := named(t, 1)[0], own(t), &service{}
	ctx, cancel := context.WithCancel(t.Context())
	other := ofService(func(ctx context.Context, wait bool) (recipes.ForeignHold, error) {
		external, err := s.take(ctx, wait)
		cancel()
		return external, err
	})
	_, err := combined(t, other, newMutex(t, c, path)).Acquire(ctx)
	require.ErrorIs(t, err, context.Canceled)
	isReleased := func() bool { taken, released := s.state(); return !taken && released == 1 }
	testzk.Eventually(t, isReleased, "the foreign lock is not released")
	free(t, path)
}
