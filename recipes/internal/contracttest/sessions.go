package contracttest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/retry"
)

func expiryInTheWait(t *testing.T, k Kind) {
	s := newFixture(t, k)
	first := s.client()
	holder := s.occupy(first)
	before := s.heldNodes(s.shape.rivalHeld)
	client, p := s.proxied(testzk.Mortal())
	former := s.session(client)
	waiter := s.start(s.lock(client))
	stale := s.waiterNodes(before)
	s.expire(client, p)
	testzk.Closes(t, former.Done(), "the session does not report its end")
	s.eventually(func() bool { return len(s.owned(s.session(client).ID())) == s.shape.waiting },
		"the waiter does not queue again")
	require.NoError(t, holder.Err())
	require.True(t, waiter.Waiting(), "the lock is held")
	s.release(holder)
	hold := won(t, waiter)
	now := s.heldNodes(s.shape.held)
	for _, node := range stale {
		require.NotContains(t, now, node)
	}
	require.NotEqual(t, former.ID(), s.session(client).ID())
	require.Len(t, s.owned(s.session(client).ID()), s.shape.held)
	s.release(hold)
	s.empty()
}

func expiryInTheHold(t *testing.T, k Kind) {
	s := newFixture(t, k)
	client, p := s.proxied(testzk.Mortal())
	other := s.client()
	s.fill(other)
	hold := s.acquire(s.lock(client))
	work := hold.Context(context.Background())
	waiter := s.start(s.rival(other))
	s.waitsBehind(1)
	s.expire(client, p)
	next := won(t, waiter)
	testlock.LostTo(t, hold, work, framework.ErrSessionLost)
	require.NoError(t, next.Err(), "the release of the lost hold does not end the next hold")
	require.Greater(t, latestToken(next), latestToken(hold))
	s.release(next)
	s.release(s.acquire(s.lock(client)))
	s.empty()
}

// A holder without answers finds the end of its session by the clock, before the servers expire it.
func silentHolder(t *testing.T, k Kind) {
	s := newFixture(t, k)
	client, p := s.proxied(testzk.Mortal())
	other := s.client()
	s.fill(other)
	hold := s.acquire(s.lock(client))
	work := hold.Context(context.Background())
	waiter := s.start(s.rival(other))
	s.waitsBehind(1)
	p.Blackhole(true)
	next := won(t, waiter)
	require.ErrorIs(t, hold.Err(), framework.ErrSessionLost, "the hold ended later than the next began")
	testlock.LostTo(t, hold, work, framework.ErrSessionLost)
	require.Greater(t, latestToken(next), latestToken(hold))
	s.release(next)
	p.Blackhole(false)
	s.empty()
}

// The servers may keep a session and its nodes after its client has given it up.
func formerSession(t *testing.T, k Kind) {
	s := newFixture(t, k)
	holder := s.occupy(s.client())
	before := s.heldNodes(s.shape.rivalHeld)
	client, p := s.proxied(testzk.Mortal())
	former := s.session(client)
	waiter := s.start(s.lock(client))
	stale := s.waiterNodes(before)

	p.BlackholeReplies(true) // the servers get the requests and keep the session; the client gets no replies
	testzk.Closes(t, former.Done(), "the session does not notice the silence")
	s.release(holder)
	p.BlackholeReplies(false)
	hold := won(t, waiter)
	own := s.owned(s.session(client).ID())
	require.NotEqual(t, former.ID(), s.session(client).ID())
	require.NotEmpty(t, own)
	for _, node := range stale {
		require.NotContains(t, own, node)
	}
	s.release(hold)
	s.empty()
}

func outageInTheWait(t *testing.T, k Kind) {
	s := newFixture(t, k)
	first := s.client()
	holder := s.occupy(first)
	opts, waiting := testzk.Waiting(t)
	client, p := s.proxied(append(opts, framework.WithRetry(retry.Never()))...)
	states := make(chan framework.State, 10)
	defer client.Listen(func(c framework.StateChange) { states <- c.State })()
	early := s.start(s.lock(client))
	s.waits(1)
	waiting() // it has the answers to its requests
	late := s.start(s.rival(first))
	s.waits(2)
	nodes, err := s.queue()
	require.NoError(t, err)

	require.NoError(t, p.Refuse(true))
	require.Equal(t, framework.Suspended, <-states)
	require.NoError(t, p.Refuse(false))
	require.Equal(t, framework.Reconnected, <-states)
	s.waits(2)
	same, err := s.queue()
	require.NoError(t, err)
	require.ElementsMatch(t, nodes, same)
	s.release(holder)
	hold := won(t, early)
	require.True(t, late.Waiting())
	s.release(s.handOver(hold, late))
	s.empty()
}

func handOverInAnOutage(t *testing.T, k Kind) {
	s := newFixture(t, k)
	holder := s.occupy(s.client())
	client, p := s.proxied()
	waiter := s.start(s.lock(client))
	s.waits(1)
	require.NoError(t, p.Refuse(true))
	s.release(holder)
	require.NoError(t, p.Refuse(false))
	s.release(won(t, waiter))
	s.empty()
}

// Release waits for the session timeout at most. Then the servers delete the nodes.
func releaseWhileDisconnected(t *testing.T, k Kind) {
	s := newFixture(t, k)
	client, p := s.proxied(testzk.Mortal())
	other := s.client()
	s.fill(other)
	hold := s.acquire(s.lock(client))
	work := hold.Context(context.Background())
	waiter := s.start(s.rival(other))
	s.waitsBehind(1)
	p.Blackhole(true)
	timeout, began := s.session(client).Timeout(), time.Now()
	err := hold.Release()
	require.Less(t, time.Since(began), timeout+soon)
	require.ErrorIs(t, err, recipes.ErrReleasePending)
	require.NotErrorIs(t, err, framework.ErrSessionLost, "the hold was valid until it was released")
	require.ErrorIs(t, context.Cause(work), recipes.ErrNotHeld)
	s.release(won(t, waiter))
	p.Blackhole(false)
	require.ErrorIs(t, hold.Release(), recipes.ErrNotHeld)
	s.empty()
}
