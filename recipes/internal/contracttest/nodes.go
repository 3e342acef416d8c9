package contracttest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/zktest/sim"
)

// Deletes each of the nodes of a waiter.
func nodeDeletedInTheWait(t *testing.T, k Kind) {
	for i := range k.shape.waiting {
		t.Run(fmt.Sprintf("node %d", i+1), func(t *testing.T) {
			t.Parallel()
			s := newFixture(t, k)
			first := s.client()
			holder := s.occupy(first)
			before := s.heldNodes(s.shape.rivalHeld)
			victim := s.start(s.lock(s.client()))
			node := s.waiterNodes(before)[i]
			other := s.start(s.rival(first))
			s.waits(2)
			require.NoError(t, s.remove(node))
			dir := node[:strings.LastIndexByte(node, '/')]
			if slices.Contains(k.Counted(s.path), dir) {
				s.waitRequeued(node)
				s.release(holder)
				next := won(t, other)
				require.True(t, victim.Waiting(), "it is behind the waiters that were behind it")
				s.release(s.handOver(next, victim))
			} else {
				s.release(holder)
				hold := won(t, victim)
				require.True(t, other.Waiting())
				s.release(s.handOver(hold, other))
			}
			s.empty()
		})
	}
}

// waitRequeued waits until the waiter has a new node in the directory of the deleted one.
func (s *fixture) waitRequeued(deleted string) {
	s.t.Helper()
	dir := deleted[:strings.LastIndexByte(deleted, '/')]
	s.eventually(func() bool {
		nodes, err := s.below([]string{dir})
		return err == nil && !slices.Contains(nodes, deleted) &&
			len(nodes) == len(s.fillers)*s.shape.queued+s.shape.rivalQueued+2
	}, "the waiter does not notice that its node was deleted")
}

// After a reconnect the servers send the missed events in no order. That the predecessor was
// deleted does not prove that the waiter's own node still exists.
func nodeDeletedWhileDisconnected(t *testing.T, k Kind) {
	sim.Run(t, 6, inBubble(k, func(w *simFixture) {
		first, link := w.connect("first"), w.srv.Client(target)
		holder := w.occupy(first)
		before := w.heldNodes(w.shape.rivalHeld)
		waiter := w.start(w.lock(w.connect(target)))
		stale := w.waiterNodes(before)
		third := w.start(w.rival(first))
		settle()
		link.Refuse(true)
		link.Drop()
		settle()
		require.NoError(w.t, w.remove(stale...))
		w.release(holder)
		rightful := won(w.t, third)
		link.Refuse(false)
		settle()
		w.waits(1)
		require.True(w.t, waiter.Waiting(), "granted while another client holds")
		w.release(rightful)
		hold := won(w.t, waiter)
		settle()
		for _, node := range w.heldNodes(w.shape.held) {
			require.NotContains(w.t, stale, node)
		}
		w.release(hold)
		w.empty()
	}))
}

// One transaction deletes the waiter's own node and then its predecessor. The deletion of the
// predecessor must not grant the lock. A wrong waiter fails here only by chance, so there are
// several rounds.
func nodeDeletedWithPredecessor(t *testing.T, k Kind) {
	s := newFixture(t, k)
	first := s.client()
	mine := s.lock(s.client())
	s.fill(first)
	for range 10 {
		before := s.heldNodes(0)
		holder := s.acquire(s.rival(first))
		ahead := s.addedNodes(s.shape.rivalHeld, before)
		waiter := s.start(mine)
		own := s.waiterNodes(slices.Concat(before, ahead))
		third := s.start(s.rival(first))
		s.waits(2)
		require.NoError(t, s.remove(slices.Concat(own, ahead)...))
		rightful := won(t, third)
		s.waits(1)
		require.True(t, waiter.Waiting(), "granted while another client holds")
		require.NoError(t, rightful.Err())
		s.release(s.handOver(rightful, waiter))
		require.ErrorIs(t, holder.Release(), recipes.ErrNodeDeleted)
	}
	s.empty()
}

// Deletes each of the nodes of a hold.
func nodeDeletedInTheHold(t *testing.T, k Kind) {
	for i := range k.shape.held {
		t.Run(fmt.Sprintf("node %d", i+1), func(t *testing.T) {
			t.Parallel()
			s := newFixture(t, k)
			other := s.client()
			s.fill(other)
			before := s.heldNodes(0)
			client := s.client()
			hold := s.acquire(s.lock(client))
			node := s.addedNodes(s.shape.held, before)[i]
			work := hold.Context(context.Background())
			waiter := s.start(s.rival(other))
			s.waitsBehind(1)
			require.NoError(t, s.remove(node))
			testlock.LostTo(t, hold, work, recipes.ErrNodeDeleted)
			s.release(won(t, waiter))

			hold = s.acquire(s.lock(client))
			require.NoError(t, s.remove(s.addedNodes(s.shape.held, before)[i]))
			require.ErrorIs(t, hold.Release(), recipes.ErrNodeDeleted, "whether or not the loss was noticed before")
			require.ErrorIs(t, hold.Release(), recipes.ErrNotHeld)
			s.empty()
		})
	}
}

func treeDeleted(t *testing.T, k Kind) {
	s := newFixture(t, k)
	first := s.client()
	holders := []*recipes.Hold{s.occupy(first)}
	waiter := s.start(s.lock(s.client()))
	s.waits(1)
	holders, s.fillers = append(holders, s.fillers...), nil
	var works []context.Context
	for _, h := range holders {
		works = append(works, h.Context(context.Background()))
	}
	s.removeTree()
	for i, h := range holders {
		testlock.LostTo(t, h, works[i], recipes.ErrNodeDeleted)
	}
	hold := won(t, waiter)
	for _, h := range holders {
		require.Greater(t, latestToken(hold), latestToken(h), "sequence numbers start again, tokens do not")
	}
	s.release(hold)
	s.empty()
	s.release(s.acquire(s.rival(first)))
	s.empty()
}
