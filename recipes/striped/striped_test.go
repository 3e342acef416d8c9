package striped_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/multilock"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/recipes/striped"
)

func newStriped(t testing.TB, c *framework.Client, path string, n int, opts ...striped.Option) *striped.Striped {
	t.Helper()
	s, err := striped.New(c, path, n, opts...)
	require.NoError(t, err)
	return s
}

func acquire(t testing.TB, l recipes.Locker) *recipes.Hold {
	t.Helper()
	hold, err := l.Acquire(testzk.Context(t))
	require.NoError(t, err)
	return hold
}

func TestNewChecksItsArguments(t *testing.T) {
	c := testzk.Client(t, testzk.Connect())
	for _, n := range []int{0, -1, 1001} {
		_, err := striped.New(c, "/a", n)
		require.ErrorContains(t, err, fmt.Sprintf("new striped lock: %d stripes: want 1 to 1000", n))
		_, err = striped.New(c, "/a", 2, striped.WithPrevious(n))
		require.ErrorContains(t, err, fmt.Sprintf("WithPrevious: %d stripes", n))
	}
	_, err := striped.New(c, "/a", 2, striped.WithPrevious(2))
	require.ErrorContains(t, err, "WithPrevious: 2 is the present number")
	_, err = striped.New(c, "/", 2)
	require.ErrorIs(t, err, framework.ErrInvalidPath)
	_, err = striped.New(nil, "/a", 2)
	require.Error(t, err)
	_, err = striped.New(c, "/a", 2, striped.WithData(nil), striped.WithIdentity())
	require.ErrorContains(t, err, "exclude each other")
	_, err = newStriped(t, c, "/a", 2).ForAll().Acquire(t.Context())
	require.ErrorContains(t, err, "without keys")
}

// The stripes of keys are part of what programs agree on. They must never change.
func TestIndexNeverChanges(t *testing.T) {
	require.Equal(t, []int{20, 16, 0, 24}, []int{
		striped.Index("", 64), striped.Index("order-17", 64), striped.Index("order-17", 1), striped.Index("ключ", 1000),
	})
	const n, keys = 16, 16000
	var count [n]int
	for i := range keys {
		count[striped.Index(fmt.Sprint("order-", i), n)]++
	}
	for i := range n {
		require.InDelta(t, keys/n, count[i], keys/n/5)
	}
}

// keys returns a key for each of n stripes.
func keys(n int) []string {
	all := make([]string, n)
	for i, found := 0, 0; found < n; i++ {
		key := fmt.Sprint("key-", i)
		if at := striped.Index(key, n); all[at] == "" {
			all[at] = key
			found++
		}
	}
	return all
}

func TestKeysOfDifferentStripesDoNotWait(t *testing.T) {
	t.Parallel()
	const n = 4
	path := testzk.Path(t)
	a := newStriped(t, testzk.Connected(t, testzk.Connect()), path, n)
	b := newStriped(t, testzk.Connected(t, testzk.Connect()), path, n, striped.WithIdentity())
	held := acquire(t, a.For(keys(n)[0]))
	others := acquire(t, b.ForAll(keys(n)[1:]...))
	_, err := b.For(keys(n)[0]).TryAcquire(t.Context())
	require.ErrorIs(t, err, recipes.ErrNotAcquired)
	_, err = b.For(keys(n)[0]).AcquireWithin(t.Context(), 0)
	require.ErrorIs(t, err, recipes.ErrNotAcquired)
	require.Len(t, others.Paths(), n-1)
	require.Len(t, others.Tokens(), 1)
	require.Greater(t, others.Token(), held.Token())
	require.NoError(t, held.Release())
	require.NoError(t, others.Release())
	require.NoError(t, b.For("any").Do(t.Context(), func(context.Context, *recipes.Hold) error { return nil }))
	children, _, err := testzk.Observer(t).Children(fmt.Sprintf("%s/%d", path, n))
	require.NoError(t, err)
	require.LessOrEqual(t, len(children), n)
}

// Each stripe is a mutex.
func TestStripesAreMutexes(t *testing.T) {
	t.Parallel()
	path := testzk.Path(t)
	c := testzk.Connected(t, testzk.Connect())
	lock := newStriped(t, c, path, 8).For(key)
	require.Equal(t, []string{stripe(path, 8, key)}, lock.Paths())
	mu, err := mutex.New(c, lock.Paths()[0])
	require.NoError(t, err)
	hold := acquire(t, lock)
	_, err = mu.TryAcquire(t.Context())
	require.ErrorIs(t, err, recipes.ErrNotAcquired)
	inner, err := mu.Acquire(hold.Context(t.Context()))
	require.NoError(t, err)
	require.Equal(t, hold.Token(), inner.Token())
	require.NoError(t, inner.Release())
	require.NoError(t, hold.Release())
}

// The context of a hold re-enters the locks of all its keys, and refuses those of which it has only
// some stripes.
func TestReentry(t *testing.T) {
	t.Parallel()
	for _, opts := range [][]striped.Option{nil, {striped.WithPrevious(3)}} {
		s := newStriped(t, testzk.Connected(t, testzk.Connect()), testzk.Path(t), 4, opts...)
		k := keys(4)
		hold := acquire(t, s.ForAll(k[2], k[0], k[2]))
		ctx := hold.Context(testzk.Context(t))
		for _, lock := range []*striped.Lock{s.For(k[0]), s.For(k[2]), s.ForAll(k[0], k[2])} {
			for _, how := range []testlock.Acquire{lock.Acquire, lock.TryAcquire} {
				inner, err := how(ctx)
				require.NoError(t, err)
				require.Equal(t, hold.Paths(), inner.Paths())
				require.Equal(t, hold.Token(), inner.Token())
				require.NoError(t, inner.Release())
			}
		}
		_, err := s.ForAll(k[0], k[1]).Acquire(ctx)
		require.ErrorIs(t, err, multilock.ErrPartlyHeld)
		require.NoError(t, hold.Err())
		require.NoError(t, hold.Release())
	}
}

// Two numbers of stripes run at once only if all programs share one. The error names the numbers and
// what to do.
func TestOtherNumbersAreRefused(t *testing.T) {
	t.Parallel()
	path := testzk.Path(t)
	p := testzk.Proxy(t)
	old := newStriped(t, testzk.Connected(t, p.Addr(), testzk.Mortal()), path, 8)
	both := newStriped(t, testzk.Connected(t, testzk.Connect()), path, 16, striped.WithPrevious(8))
	next := newStriped(t, testzk.Connected(t, testzk.Connect()), path, 16)
	acquire(t, old.For(key))
	_, err := next.For(key).TryAcquire(t.Context())
	require.ErrorIs(t, err, striped.ErrStripes)
	require.ErrorContains(t, err, "16 here, 8 in "+path+"/programs/")
	require.ErrorContains(t, err, "run all programs with 16 and WithPrevious(8) first")
	_, err = both.For(key).TryAcquire(t.Context())
	require.ErrorIs(t, err, recipes.ErrNotAcquired)
	waiting := testlock.Start(t, both.For(key).Acquire)
	p.Blackhole(true) // the last program with 8 crashes
	hold := waiting.Won(t)
	require.Len(t, hold.Paths(), 2)
	others := slices.DeleteFunc(keys(16), func(k string) bool { return striped.Index(k, 16) == striped.Index(key, 16) })
	testzk.Eventually(t, func() bool {
		hold, err := next.ForAll(others...).TryAcquire(t.Context())
		if errors.Is(err, striped.ErrStripes) {
			return false
		}
		require.NoError(t, err)
		require.NoError(t, hold.Release())
		return true
	}, "a program that has crashed blocks the change")
	last := testlock.Start(t, next.For(key).Acquire)
	require.NoError(t, hold.Release())
	require.Greater(t, last.Won(t).Token(), hold.Token())
	p.Blackhole(false)
	_, err = old.For(key).Acquire(testzk.Context(t))
	require.ErrorIs(t, err, striped.ErrStripes)
	require.NoError(t, last.Won(t).Release())
}
