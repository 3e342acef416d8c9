package contracttest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
)

func reentry(t *testing.T, k Kind) {
	if k.Reenters {
		t.Run("reentrant holds share the node", func(t *testing.T) { reentrantHolds(t, k) })
		t.Run("only the same lock of the same client under a valid hold", func(t *testing.T) { otherAcquires(t, k) })
		return
	}
	t.Run("refused", func(t *testing.T) { noReentry(t, k) })
}

func reentrantHolds(t *testing.T, k Kind) {
	s := newFixture(t, k)
	client, other := s.client(), s.client()
	s.fill(other)
	outer := s.acquire(s.lock(client))
	nodes := s.heldNodes(s.shape.held)
	ctx := outer.Context(testzk.Context(t))
	same := s.lock(client) // another value of the same lock
	inner, err := same.Acquire(ctx)
	require.NoError(t, err)
	innermost, err := same.TryAcquire(inner.Context(ctx))
	require.NoError(t, err)
	for _, reentrant := range []*recipes.Hold{inner, innermost} {
		require.Equal(t, latestToken(outer), latestToken(reentrant))
		require.Equal(t, outer.Path(), reentrant.Path())
	}
	s.release(outer, innermost) // in any order
	require.ErrorIs(t, outer.Err(), recipes.ErrNotHeld)
	require.ErrorIs(t, innermost.Release(), recipes.ErrNotHeld, "a second release of one hold does not release another")
	require.ErrorIs(t, context.Cause(ctx), recipes.ErrNotHeld)
	require.NoError(t, inner.Err())
	require.ElementsMatch(t, nodes, s.heldNodes(s.shape.held))
	_, err = s.rival(other).TryAcquire(testzk.Context(t))
	require.ErrorIs(t, err, recipes.ErrNotAcquired, "one reentrant hold is left")
	s.release(inner)
	hold, err := s.rival(other).TryAcquire(testzk.Context(t))
	require.NoError(t, err)
	s.release(hold)
	s.empty()
}

func otherAcquires(t *testing.T, k Kind) {
	s := newFixture(t, k)
	client, other := s.client(), s.client()
	s.fill(other)
	hold := s.acquire(s.lock(client))
	inside := hold.Context(testzk.Context(t))
	_, err := s.rival(other).TryAcquire(inside)
	require.ErrorIs(t, err, recipes.ErrNotAcquired, "another client does not re-enter")
	if k.Rival == nil {
		_, err = s.lock(client).TryAcquire(testzk.Context(t))
		require.ErrorIs(t, err, recipes.ErrNotAcquired, "an acquire under the outer context does not re-enter")
	}
	elsewhere, err := k.New(t, client, s.path+"-elsewhere").TryAcquire(inside)
	require.NoError(t, err)
	require.NotEqual(t, latestToken(hold), latestToken(elsewhere))
	s.release(elsewhere, hold)

	after, err := s.lock(client).Acquire(context.WithoutCancel(inside))
	require.NoError(t, err)
	require.Greater(t, latestToken(after), latestToken(hold), "a hold that has ended is not re-entered")
	s.release(after)
	s.empty()
}

func noReentry(t *testing.T, k Kind) {
	s := newFixture(t, k)
	opts, waits := testzk.Waiting(t)
	client := s.client(opts...)
	s.fill(client)
	hold := s.acquire(s.lock(client))
	nodes := s.heldNodes(s.shape.held)
	inside := hold.Context(testzk.Context(t))
	ctx, pass := testzk.Deadline(inside)
	late := testlock.StartUnder(s.t, ctx, s.lock(client).Acquire)
	waits()
	pass()
	_, err := late.Wait()
	require.ErrorIs(t, err, recipes.ErrNotAcquired)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = s.lock(client).TryAcquire(inside)
	require.ErrorIs(t, err, recipes.ErrNotAcquired)
	require.NoError(t, hold.Err())
	require.ElementsMatch(t, nodes, s.heldNodes(s.shape.held))
	s.release(hold)
	s.empty()
}

// Tokens grow from hold to hold, from client to client and from session to session. They also grow
// when the nodes above the lock are deleted and created again.
func tokensGrow(t *testing.T, k Kind) {
	s := newFixture(t, k)
	a, p := s.proxied(patient, testzk.Mortal())
	b := s.client()
	last := int64(0)
	take := func(l Lock, try bool) {
		t.Helper()
		acquire := l.Acquire
		if try {
			acquire = l.TryAcquire
		}
		hold, err := acquire(testzk.Context(t))
		require.NoError(t, err)
		require.Greater(t, latestToken(hold), last)
		last = latestToken(hold)
		s.release(hold)
		s.addedNodes(0, nil)
		require.Equal(t, last, latestToken(hold), "the token stays readable")
	}
	for range 2 {
		for _, l := range []Lock{s.lock(a), s.lock(b), s.rival(b)} {
			take(l, false)
			take(l, true)
		}
	}
	mine := s.lock(a)
	take(mine, false)
	former := s.session(a)
	s.expire(a, p)
	testzk.Closes(t, former.Done(), "the session does not report its end")
	take(mine, false)
	require.NotEqual(t, former.ID(), s.session(a).ID())
	yours := s.lock(b)
	for range 2 { // with a value that knew the deleted nodes, and with one that did not
		s.removeTree()
		take(mine, false)
		take(yours, false)
		mine, yours = yours, s.lock(b)
	}
}

func releases(t *testing.T, k Kind) {
	t.Run("zero", func(t *testing.T) {
		require.ErrorIs(t, (&recipes.Hold{}).Release(), recipes.ErrNotHeld)
	})
	t.Run("never touch a later hold", func(t *testing.T) {
		s := newFixture(t, k)
		lock := s.lock(s.client())
		stale := &recipes.Hold{}
		for range 5 {
			hold := s.acquire(lock)
			nodes := s.addedNodes(s.shape.held, nil)
			require.ErrorIs(t, stale.Release(), recipes.ErrNotHeld)
			require.NoError(t, hold.Err())
			require.ElementsMatch(t, nodes, s.addedNodes(s.shape.held, nil))
			s.release(hold)
			stale = hold
		}
		s.empty()
	})
	t.Run("many goroutines and one of them releases", func(t *testing.T) {
		s := newFixture(t, k)
		hold := s.acquire(s.lock(s.client()))
		work := hold.Context(context.Background())
		var released atomic.Int64
		contend(t, 10, func(int) error {
			err := hold.Release()
			if errors.Is(err, recipes.ErrNotHeld) {
				return nil
			}
			released.Add(1)
			return err
		})
		require.ErrorIs(t, context.Cause(work), recipes.ErrNotHeld)
		require.EqualValues(t, 1, released.Load())
		s.empty()
	})
	t.Run("the node is deleted when release returns", func(t *testing.T) {
		s := newFixture(t, k)
		client, other := s.client(), s.client()
		s.fill(other)
		for range 3 {
			s.release(s.acquire(s.lock(client)))
			hold, err := s.rival(client).TryAcquire(testzk.Context(t))
			require.NoError(t, err)
			s.release(hold)
		}
		s.empty()
	})
}
