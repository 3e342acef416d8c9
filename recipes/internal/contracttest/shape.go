package contracttest

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// shape has the numbers of nodes of an undisturbed lock.
type shape struct {
	held        int // of one hold
	waiting     int // of the first waiter while the lock is occupied
	queued      int // of one hold, in the directory where waiters queue
	rivalHeld   int // of one hold of the rival, or of New's if there is none
	rivalQueued int // of the same hold, in the directory where waiters queue
}

// measure counts the nodes of one hold and one waiter.
func measure(t *testing.T, k Kind) (sh shape) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		s := newSimFixture(t, k, srv)
		one, other := s.connect("one"), s.connect("other")
		first := s.acquire(s.lock(one))
		sh.held, sh.queued = s.count(s.nodes), s.count(s.queue)
		s.release(first)
		require.Zero(t, s.count(s.nodes))
		rival := s.acquire(s.rival(other))
		sh.rivalHeld, sh.rivalQueued = s.count(s.nodes), s.count(s.queue)
		s.release(rival)

		blocker := s.occupy(other)
		before := s.count(s.nodes)
		waiter := s.start(s.lock(one))
		sh.waiting = s.count(s.nodes) - before
		require.True(t, waiter.Waiting())
		s.release(s.handOver(blocker, waiter))
		s.empty()
	})
	require.Positive(t, sh.held, "Dirs has no node of a hold")
	require.Positive(t, sh.waiting, "Dirs has no node of a waiter")
	return sh
}

// count waits until nothing more happens by itself and counts the nodes that of returns. It works
// in virtual time only.
func (s *fixture) count(of func() ([]string, error)) int {
	s.t.Helper()
	time.Sleep(time.Second)
	nodes, err := of()
	require.NoError(s.t, err)
	return len(nodes)
}
