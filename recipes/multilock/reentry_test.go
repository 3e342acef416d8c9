package multilock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/multilock"
	"github.com/docent-zk/docent/zktest/fault"
)

func TestReentryOfTheSameSetMakesNoRequest(t *testing.T) {
	for name, opts := range map[string][]multilock.Option{"together": nil, "in order": {multilock.WithPathOrder()}} {
		t.Run(name, func(t *testing.T) {
			p := testzk.Proxy(t)
			c := testzk.Connected(t, p.Addr())
			paths := named(t, 3)
			outer := acquire(t, newMulti(t, c, paths, opts...))
			ctx := outer.Context(testzk.Context(t))
			before := p.Requests()[fault.OpMulti]

			same := newMulti(t, c, paths, opts...) // another value of the same locks
			inner, err := same.Acquire(ctx)
			require.NoError(t, err)
			innermost, err := same.TryAcquire(inner.Context(ctx))
			require.NoError(t, err)
			require.Equal(t, before, p.Requests()[fault.OpMulti])
			require.Equal(t, outer.Tokens(), innermost.Tokens())
			require.Equal(t, outer.Paths(), innermost.Paths())

			require.NoError(t, outer.Release())
			require.NoError(t, innermost.Release())
			require.NoError(t, inner.Err())
			for _, path := range paths {
				excluded(t, own(t), path)
			}
			require.NoError(t, inner.Release())
			require.ErrorIs(t, inner.Release(), recipes.ErrNotHeld)
			free(t, paths...)
		})
	}
}

func TestMutexOnOneOfThePathsReentersTheWhole(t *testing.T) {
	paths := named(t, 3)
	c := own(t)
	whole := acquire(t, newMulti(t, c, paths))
	reentrant, err := newMutex(t, c, paths[1]).TryAcquire(whole.Context(testzk.Context(t)))
	require.NoError(t, err)
	require.Equal(t, whole.Paths(), reentrant.Paths())
	require.NoError(t, whole.Release())
	for _, path := range paths {
		excluded(t, own(t), path) // the reentrant hold keeps all locks
	}
	remove(t, reentrant.Paths()[2])
	_, err = reentrant.Guard(testzk.Context(t))
	require.ErrorIs(t, err, recipes.ErrNodeDeleted, "of a path that is not its own")
	require.ErrorIs(t, reentrant.Release(), recipes.ErrNodeDeleted)
	free(t, paths...)
}

func TestOuterContextAndOtherClientsDoNotReenter(t *testing.T) {
	paths := named(t, 2)
	c := own(t)
	m := newMulti(t, c, paths)
	hold := acquire(t, m)
	inside := hold.Context(testzk.Context(t))
	_, err := m.TryAcquire(testzk.Context(t))
	require.ErrorIs(t, err, recipes.ErrNotAcquired)
	_, err = newMulti(t, own(t), paths).TryAcquire(inside)
	require.ErrorIs(t, err, recipes.ErrNotAcquired)
	require.NoError(t, hold.Release())
	again, err := m.TryAcquire(inside)
	require.ErrorIs(t, err, recipes.ErrNotHeld, "the context ended with the hold")
	require.Nil(t, again)
}

func TestPartOfAnotherHoldIsRefusedAtOnce(t *testing.T) {
	paths := named(t, 3)
	c := own(t)
	single := acquire(t, newMutex(t, c, paths[1]))
	two := acquire(t, newMulti(t, c, []string{paths[0], paths[2]}))
	for _, hold := range []*recipes.Hold{single, two} {
		for name, opts := range map[string][]multilock.Option{
			"together": nil, "in order": {multilock.WithPathOrder()},
		} {
			m := newMulti(t, c, paths, opts...)
			ctx := hold.Context(testzk.Context(t))
			for how, acquire := range map[string]acquirer{"Acquire": m.Acquire, "TryAcquire": m.TryAcquire} {
				_, err := acquire(ctx)
				require.ErrorIs(t, err, multilock.ErrPartlyHeld, "%s, %s", name, how)
				require.NotErrorIs(t, err, recipes.ErrNotAcquired, "%s, %s", name, how)
			}
			require.NoError(t, hold.Err())
		}
	}
	for _, path := range paths {
		queued(t, c, path, 1)
	}
	require.NoError(t, two.Release())
	require.NoError(t, single.Release())
}

func TestSubsetAndOtherOrderOfAHeldSetAreRefused(t *testing.T) {
	paths := named(t, 3)
	c := own(t)
	hold := acquire(t, newMulti(t, c, paths))
	ctx := hold.Context(testzk.Context(t))
	for _, others := range [][]string{paths[:2], {paths[2], paths[1], paths[0]}, {paths[0], paths[0] + "-other"}} {
		_, err := newMulti(t, c, others).Acquire(ctx)
		require.ErrorIs(t, err, multilock.ErrPartlyHeld, "%v", others)
	}
	require.NoError(t, hold.Release())
	free(t, paths...)
}

func TestHoldOfOtherLocksDoesNotInterfere(t *testing.T) {
	paths := named(t, 4)
	c := own(t)
	outer := acquire(t, newMulti(t, c, paths[:2]))
	inner, err := newMulti(t, c, paths[2:]).Acquire(outer.Context(testzk.Context(t)))
	require.NoError(t, err)
	ctx := inner.Context(outer.Context(testzk.Context(t)))
	for _, path := range paths { // the inner context has both holds
		reentrant, err := newMutex(t, c, path).TryAcquire(ctx)
		require.NoError(t, err)
		require.NoError(t, reentrant.Release())
	}
	require.NoError(t, inner.Release())
	require.NoError(t, outer.Release())
	free(t, paths...)
}
