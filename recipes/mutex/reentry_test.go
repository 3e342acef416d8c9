package mutex_test

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

func TestReentryMakesNoRequest(t *testing.T) {
	p := testzk.Proxy(t)
	client := testzk.Connected(t, p.Addr())
	path := testzk.Path(t)
	outer := acquire(t, newMutex(t, client, path))
	ctx := outer.Context(testzk.Context(t))
	before := p.Requests()[fault.OpCreate]

	same := newMutex(t, client, path) // another value of the same lock
	inner, err := same.Acquire(ctx)
	require.NoError(t, err)
	innermost, err := same.TryAcquire(inner.Context(ctx))
	require.NoError(t, err)
	require.Equal(t, before, p.Requests()[fault.OpCreate])
	require.Equal(t, outer.Token(), innermost.Token())
	require.Equal(t, outer.Path(), innermost.Path())
	for _, h := range []*recipes.Hold{innermost, inner, outer} {
		require.NoError(t, h.Release())
	}
	testzk.Empty(t, path)
}

func TestReentryThroughAViewOfTheNamespace(t *testing.T) {
	path := testzk.Path(t)
	client := testzk.Connected(t, testzk.Connect())
	outer := acquire(t, newMutex(t, client, path+"/lock"))
	inner, err := newMutex(t, client.Namespace(path[1:]), "/lock").TryAcquire(outer.Context(testzk.Context(t)))
	require.NoError(t, err)
	require.Equal(t, outer.Token(), inner.Token())
	require.NoError(t, outer.Release())
	require.NoError(t, inner.Release())
}

func TestContextOfAHoldEndsWithItsCause(t *testing.T) {
	mu := newMutex(t, testzk.Connected(t, testzk.Connect()), testzk.Path(t))
	hold := acquire(t, mu)
	parent, cancel := context.WithCancel(context.Background())
	early, late := hold.Context(parent), hold.Context(context.Background())
	cancel()
	<-early.Done()
	require.ErrorIs(t, context.Cause(early), context.Canceled)
	require.NoError(t, late.Err())
	require.NoError(t, hold.Err(), "the end of a context is not the end of the hold")

	require.NoError(t, hold.Release())
	require.Error(t, late.Err(), "Release ends the contexts before it returns")
	require.ErrorIs(t, context.Cause(late), recipes.ErrNotHeld)
	afterwards := hold.Context(context.Background())
	require.ErrorIs(t, context.Cause(afterwards), recipes.ErrNotHeld)
}

func TestLockerIsNotReentrant(t *testing.T) {
	path := testzk.Path(t)
	mu := newMutex(t, testzk.Connected(t, testzk.Connect()), path)
	hold := acquire(t, mu)
	ctx, cancel := context.WithTimeout(hold.Context(context.Background()), 100*time.Millisecond)
	defer cancel()
	require.Panics(t, func() { mu.Locker(ctx).Lock() }, "the lock is held when ctx ends")
	require.NoError(t, hold.Release())
}

func TestLockerExcludesAndPanicsOnMisuse(t *testing.T) {
	path := testzk.Path(t)
	mu := newMutex(t, testzk.Connected(t, testzk.Connect()), path)
	locker := mu.Locker(testzk.Context(t))
	locker.Lock()
	_, err := mu.TryAcquire(testzk.Context(t))
	require.ErrorIs(t, err, recipes.ErrNotAcquired)
	locker.Unlock()
	require.Panics(t, locker.Unlock)
	testzk.Empty(t, path)
}

func TestLockerExcludesManyGoroutines(t *testing.T) {
	locker := newMutex(t, testzk.Connected(t, testzk.Connect()), testzk.Path(t)).Locker(testzk.Context(t))
	total := 0
	contend(t, 10, func(int) error {
		locker.Lock()
		defer locker.Unlock()
		total++ // watched by the race detector
		return nil
	})
	require.Equal(t, 10, total)
}

func quoted(s string) string { return strconv.Quote(s) }

func TestInvalidArgumentsAreRefusedWithoutAServer(t *testing.T) {
	client := testzk.Client(t, "127.0.0.1:1") // no server is there
	for _, path := range []string{
		"", "relative", "/", "//", "/a//b", "/a/", "/a/./b", "/a/../b", "/a\x00b", "/a\x1fb", "/a\x7fb",
	} {
		_, err := mutex.New(client, path)
		require.ErrorIs(t, err, framework.ErrInvalidPath, "%q", path)
		require.ErrorContains(t, err, quoted(path))
	}
	_, err := mutex.New(nil, "/a")
	require.ErrorContains(t, err, "client is nil")
	_, err = mutex.New(&framework.Client{}, "/a")
	require.ErrorIs(t, err, framework.ErrZeroValue)
	_, err = mutex.New(client.Namespace("a//b"), "/a")
	require.ErrorIs(t, err, framework.ErrInvalidPath)
	_, err = mutex.New(client, "/a", nil)
	require.ErrorContains(t, err, "option 0 is nil")
}

func TestZeroValuesReturnAnError(t *testing.T) {
	for name, mu := range map[string]*mutex.Mutex{"zero": {}} {
		_, err := mu.Acquire(context.Background())
		require.ErrorIs(t, err, framework.ErrZeroValue, name)
		_, err = mu.TryAcquire(context.Background())
		require.ErrorIs(t, err, framework.ErrZeroValue, name)
		_, err = mu.Participants(context.Background())
		require.ErrorIs(t, err, framework.ErrZeroValue, name)
		require.Panics(t, func() { mu.Locker(context.Background()).Lock() }, name)
	}
	mu := newMutex(t, testzk.Client(t, "127.0.0.1:1"), "/a")
	var noContext context.Context
	_, err := mu.Acquire(noContext)
	require.ErrorIs(t, err, framework.ErrNilContext)
}

// With the Strict policy an interruption ends all reentrant holds. Their contexts cannot be used to
// re-enter.
func TestInterruptionEndsEachReentrantStrictHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		alice := srv.Client("alice")
		mu := newMutex(t, testzk.Connected(t, srv.MemAddr(), framework.WithDialer(alice.DialContext),
			framework.WithLossPolicy(framework.Strict)), "/lock")
		outer := acquire(t, mu)
		inside := outer.Context(t.Context())
		inner, err := mu.Acquire(inside)
		require.NoError(t, err)
		alice.Drop()
		testzk.Closes(t, outer.Done(), "the hold does not report the interruption")
		_, err = mu.Acquire(inside)
		require.ErrorIs(t, err, framework.ErrSuspended)
		for _, reentrant := range []*recipes.Hold{outer, inner} {
			require.ErrorIs(t, reentrant.Err(), framework.ErrSuspended)
			require.ErrorIs(t, reentrant.Release(), framework.ErrSuspended)
		}
		after := acquire(t, mu)
		require.Greater(t, after.Token(), outer.Token())
		require.NoError(t, after.Release())
	})
}

func TestZeroHoldsAreNotHeld(t *testing.T) {
	for name, h := range map[string]*recipes.Hold{"zero": {}} {
		require.ErrorIs(t, h.Release(), recipes.ErrNotHeld, name)
		require.ErrorIs(t, h.Err(), recipes.ErrNotHeld, name)
		_, err := h.Guard(context.Background())
		require.ErrorIs(t, err, recipes.ErrNotHeld, name)
		require.ErrorIs(t, context.Cause(h.Context(context.Background())), recipes.ErrNotHeld, name)
		require.Zero(t, h.Token(), name)
		require.Empty(t, h.Path(), name)
		require.True(t, h.ValidUntil().IsZero(), name)
		<-h.Done()
	}
}
