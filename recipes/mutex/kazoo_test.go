package mutex_test

import (
	"context"
	"path"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
)

// kazoo's Lock matches __lock__ and ten digits at the end of a name. The part before serves the
// search after a lost reply.
func TestKazooNamesEndAsInKazoo(t *testing.T) {
	hold := acquire(t, newMutex(t, testzk.Connected(t, testzk.Connect()), testzk.Path(t), mutex.WithKazooNames()))
	require.Regexp(t, `^_c_[0-9a-f-]{36}-__lock__\d{10}$`, path.Base(hold.Path()))
	require.NoError(t, hold.Release())
}

func TestMutexesOfDifferentNamesExcludeEachOther(t *testing.T) {
	p, client, other := testzk.Path(t), testzk.Connected(t, testzk.Connect()), testzk.Connected(t, testzk.Connect())
	all := []*mutex.Mutex{newMutex(t, client, p), newMutex(t, other, p, mutex.WithKazooNames())}
	for i, mine := range all {
		theirs := all[1-i]
		hold := acquire(t, mine)
		_, err := theirs.TryAcquire(testzk.Context(t))
		require.ErrorIs(t, err, recipes.ErrNotAcquired)
		waiter := testlock.Start(t, theirs.Acquire)
		queued(t, mine, 2)
		require.True(t, waiter.Waiting())
		all, err := theirs.Participants(testzk.Context(t))
		require.NoError(t, err)
		require.Len(t, all, 2)
		require.Equal(t, hold.Path(), all[0].Node)
		require.NoError(t, recipes.Revoke(testzk.Context(t), client, all[1]), "both names are names of lock nodes")
		require.NoError(t, hold.Release())
		require.NoError(t, waiter.Won(t).Release())
	}
}

func TestReentryIsIndependentOfNames(t *testing.T) {
	p, client := testzk.Path(t), testzk.Connected(t, testzk.Connect())
	outer := acquire(t, newMutex(t, client, p))
	inner, err := newMutex(t, client, p, mutex.WithKazooNames()).Acquire(outer.Context(context.Background()))
	require.NoError(t, err)
	require.Equal(t, outer.Path(), inner.Path())
	require.NoError(t, inner.Release())
	require.NoError(t, outer.Release())
}

// A node that is passed on keeps its name, and kazoo does not wait for a node with Curator's name.
func TestNodeIsPassedOnBetweenMutexesOfTheSameNamesOnly(t *testing.T) {
	p, client := testzk.Path(t), testzk.Connected(t, testzk.Connect())
	docents := func() *mutex.Mutex { return newMutex(t, client, p, mutex.WithLocalHandoff(generous)) }
	kazoos := func() *mutex.Mutex {
		return newMutex(t, client, p, mutex.WithLocalHandoff(generous), mutex.WithKazooNames())
	}
	outside := newMutex(t, testzk.Connected(t, testzk.Connect()), p)
	for name, crew := range map[string][]*mutex.Mutex{
		`-lock-\d{10}$`:    {kazoos(), docents()},
		`-__lock__\d{10}$`: {docents(), kazoos()},
	} {
		hold := acquire(t, crew[0])
		waiter := testlock.Start(t, crew[1].Acquire)
		queued(t, outside, 2)
		require.NoError(t, hold.Release())
		next := waiter.Won(t)
		require.Regexp(t, name, next.Path())
		require.NoError(t, next.Release())
	}
}
