package locktest

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// shape is how many nodes there are when nothing disturbs.
type shape struct {
	held       int // of one hold
	waiting    int // of the first who waits while the lock is occupied
	lined      int // of one hold, in the line where waiters stand
	rivalHeld  int // of one hold of the rival, or of New's if there is none
	rivalLined int // of that one, in the line where waiters stand
}

// measure looks at one hold and one waiter.
func measure(t *testing.T, k Kind) (sh shape) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		s := newSimStage(t, k, srv)
		one, other := s.connect("one"), s.connect("other")
		first := s.acquire(s.lock(one))
		sh.held, sh.lined = s.count(s.nodes), s.count(s.queue)
		s.release(first)
		require.Zero(t, s.count(s.nodes))
		rival := s.acquire(s.rival(other))
		sh.rivalHeld, sh.rivalLined = s.count(s.nodes), s.count(s.queue)
		s.release(rival)

		blocker := s.occupy(other)
		before := s.count(s.nodes)
		waiter := s.start(s.lock(one))
		sh.waiting = s.count(s.nodes) - before
		require.True(t, waiter.waiting())
		s.release(s.handOver(blocker, waiter))
		s.empty()
	})
	require.Positive(t, sh.held, "the Lines do not tell of a hold")
	require.Positive(t, sh.waiting, "the Lines do not tell of a waiter")
	return sh
}

// count counts nodes when all has happened that is to happen by itself. Only in virtual time.
func (s *stage) count(of func() ([]string, error)) int {
	s.t.Helper()
	time.Sleep(time.Second)
	nodes, err := of()
	require.NoError(s.t, err)
	return len(nodes)
}
