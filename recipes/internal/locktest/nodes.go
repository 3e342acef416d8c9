package locktest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/zktest/sim"
)

// Each of the nodes of one who waits.
func nodeDeletedInTheWait(t *testing.T, k Kind) {
	for i := range k.shape.waiting {
		t.Run(fmt.Sprintf("node %d", i+1), func(t *testing.T) {
			t.Parallel()
			s := newStage(t, k)
			first := s.client()
			holder := s.occupy(first)
			before := s.settled(s.shape.rivalHeld)
			victim := s.start(s.lock(s.client()))
			node := s.placed(before)[i]
			other := s.start(s.rival(first))
			s.waits(2)
			require.NoError(t, s.remove(node))
			line := node[:strings.LastIndexByte(node, '/')]
			if slices.Contains(k.Counted(s.path), line) {
				s.requeues(node)
				s.release(holder)
				next := other.won(t)
				require.True(t, victim.waiting(), "it is behind those who were behind it")
				s.release(s.handOver(next, victim))
			} else {
				s.release(holder)
				hold := victim.won(t)
				require.True(t, other.waiting())
				s.release(s.handOver(hold, other))
			}
			s.empty()
		})
	}
}

// requeues waits until another node stands where one was deleted.
func (s *stage) requeues(deleted string) {
	s.t.Helper()
	line := deleted[:strings.LastIndexByte(deleted, '/')]
	s.eventually(func() bool {
		nodes, err := s.below([]string{line})
		return err == nil && len(nodes) == len(s.fillers)*s.shape.lined+s.shape.rivalLined+2 && !slices.Contains(nodes, deleted)
	}, "the waiter does not notice that its node is gone")
}

// After a reconnect the servers tell what was missed in no order: that the one ahead is gone does not mean that we are still there.
func nodeDeletedWhileAway(t *testing.T, k Kind) {
	sim.Run(t, 6, inBubble(k, func(w *world) {
		first, link := w.connect("first"), w.srv.Client(me)
		holder := w.occupy(first)
		before := w.settled(w.shape.rivalHeld)
		waiter := w.start(w.lock(w.connect(me)))
		stale := w.placed(before)
		third := w.start(w.rival(first))
		settle()
		link.Refuse(true)
		link.Drop()
		settle()
		require.NoError(w.t, w.remove(stale...))
		w.release(holder)
		rightful := third.won(w.t)
		link.Refuse(false)
		settle()
		w.waits(1)
		require.True(w.t, waiter.waiting(), "granted while somebody else holds")
		w.release(rightful)
		hold := waiter.won(w.t)
		settle()
		for _, node := range w.settled(w.shape.held) {
			require.NotContains(w.t, stale, node)
		}
		w.release(hold)
		w.empty()
	}))
}

// Both go in one transaction, ours first: that the one ahead is gone does not let us in then. Whether that is mistaken is a matter of
// chance.
func nodeDeletedWithTheOneAhead(t *testing.T, k Kind) {
	s := newStage(t, k)
	first := s.client()
	mine := s.lock(s.client())
	s.fill(first)
	for range 10 {
		before := s.settled(0)
		holder := s.acquire(s.rival(first))
		ahead := s.becomes(s.shape.rivalHeld, before)
		waiter := s.start(mine)
		own := s.placed(slices.Concat(before, ahead))
		third := s.start(s.rival(first))
		s.waits(2)
		require.NoError(t, s.remove(slices.Concat(own, ahead)...))
		rightful := third.won(t)
		s.waits(1)
		require.True(t, waiter.waiting(), "granted while somebody else holds")
		require.NoError(t, rightful.Err())
		s.release(s.handOver(rightful, waiter))
		require.ErrorIs(t, holder.Release(), recipes.ErrNodeDeleted)
	}
	s.empty()
}

// Each of the nodes of a hold.
func nodeDeletedInTheHold(t *testing.T, k Kind) {
	for i := range k.shape.held {
		t.Run(fmt.Sprintf("node %d", i+1), func(t *testing.T) {
			t.Parallel()
			s := newStage(t, k)
			other := s.client()
			s.fill(other)
			before := s.settled(0)
			client := s.client()
			hold := s.acquire(s.lock(client))
			node := s.becomes(s.shape.held, before)[i]
			work := hold.Context(context.Background())
			waiter := s.start(s.rival(other))
			s.waitsBehind(1)
			require.NoError(t, s.remove(node))
			lostTo(t, hold, work, recipes.ErrNodeDeleted)
			s.release(waiter.won(t))

			hold = s.acquire(s.lock(client))
			require.NoError(t, s.remove(s.becomes(s.shape.held, before)[i]))
			require.ErrorIs(t, hold.Release(), recipes.ErrNodeDeleted, "whether it was noticed or not")
			require.ErrorIs(t, hold.Release(), recipes.ErrNotHeld)
			s.empty()
		})
	}
}

func treeDeleted(t *testing.T, k Kind) {
	s := newStage(t, k)
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
		lostTo(t, h, works[i], recipes.ErrNodeDeleted)
	}
	hold := waiter.won(t)
	for _, h := range holders {
		require.Greater(t, hold.Token(), h.Token(), "the sequence starts over, the token does not")
	}
	s.release(hold)
	s.empty()
	s.release(s.acquire(s.rival(first)))
	s.empty()
}
