package contracttest

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/zktest/sim"
)

// checker counts the holders itself. It reports too many of them, and tokens that do not grow.
type checker struct {
	most int // the number of holders allowed at once; 0 means any number

	mu      sync.Mutex
	inside  int
	alone   bool // the holders inside exclude all others
	last    int64
	highest int64 // token of an exclusive holder

	counter int // for the race detector: exclusive holders write it, all others read it
}

func newChecker(k Kind) *checker {
	if k.Rival != nil {
		return &checker{}
	}
	return &checker{most: k.Holders}
}

// use does one piece of work under hold and releases it. If alone is set, the hold excludes all
// others.
func (r *checker) use(hold *recipes.Hold, alone bool) error {
	err := errors.Join(r.enter(hold, alone), hold.Err())
	if alone {
		r.counter++
	} else if r.most == 0 {
		_ = r.counter
	}
	r.leave()
	return errors.Join(err, hold.Release())
}

func (r *checker) enter(hold *recipes.Hold, alone bool) (err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inside++
	switch {
	case r.most > 0 && r.inside > r.most, r.inside > 1 && (alone || r.alone):
		err = fmt.Errorf("%d hold the lock", r.inside)
	case alone && latestToken(hold) <= r.last, latestToken(hold) <= r.highest:
		err = fmt.Errorf("token %d after %d", latestToken(hold), r.last)
	}
	r.last = max(r.last, latestToken(hold))
	r.alone = alone
	if alone {
		r.highest = latestToken(hold)
	}
	return err
}

func (r *checker) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inside--
}

// contend runs fn on n goroutines and passes each its number.
func contend(t testing.TB, n int, fn func(i int) error) {
	t.Helper()
	errs := make([]error, n)
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() { errs[i] = fn(i) })
	}
	running.Wait()
	require.NoError(t, errors.Join(errs...))
}

// Goroutines of several clients acquire the lock. Every other group uses the rival.
func exclusion(t *testing.T, k Kind) {
	const clients, goroutines, turns = 3, 4, 6
	s := newFixture(t, k)
	r := newChecker(k)
	var own, rivals []Lock
	for range clients {
		c := s.client()
		own, rivals = append(own, s.lock(c)), append(rivals, s.rival(c))
	}
	contend(t, clients*goroutines, func(i int) error {
		lock, alone := own[i%clients], !k.shared()
		if k.Rival != nil && i/clients%2 == 0 {
			lock, alone = rivals[i%clients], true
		}
		for range turns {
			hold, err := lock.Acquire(testzk.Context(t))
			if err != nil {
				return err
			}
			if err := r.use(hold, alone); err != nil {
				return err
			}
		}
		return nil
	})
	s.empty()
}

// All permitted holders get the lock. A waiter that they exclude gets it as soon as enough of them
// have released.
func permittedHolders(t *testing.T, k Kind) {
	s := newFixture(t, k)
	clients := []*framework.Client{s.client(), s.client()}
	most, inTheWay := k.Holders, 1
	if k.Rival != nil {
		most, inTheWay = 5, 5
	}
	var holds []*recipes.Hold
	for i := range most {
		holds = append(holds, s.acquire(s.lock(clients[i%2])))
	}
	for _, c := range clients {
		_, err := s.rival(c).TryAcquire(testzk.Context(t))
		require.ErrorIs(t, err, recipes.ErrNotAcquired)
	}
	s.addedNodes(most*s.shape.held, nil)
	waiter := s.start(s.rival(clients[0]))
	s.waitForQueue(1, most*s.shape.queued)
	for _, h := range holds[:inTheWay] {
		require.True(t, waiter.Waiting())
		s.release(h)
	}
	s.release(won(t, waiter))
	s.release(holds[inTheWay:]...)
	s.empty()
}

// alternating starts waiters that exclude each other, on several clients in turn. Every other
// waiter uses the Rival, if there is one.
func (s *fixture) alternating(n int) []*testlock.Attempt {
	s.t.Helper()
	clients := []*framework.Client{s.client(), s.client(), s.client()}
	waiters := make([]*testlock.Attempt, n)
	for i := range n {
		c := clients[i%len(clients)]
		if lock := s.lock(c); i%2 == 0 {
			waiters[i] = s.start(lock)
		} else {
			waiters[i] = s.start(s.rival(c))
		}
		s.waits(i + 1)
	}
	return waiters
}

func firstComeFirstServed(t *testing.T, k Kind) {
	s := newFixture(t, k)
	holder := s.occupy(s.client())
	waiters := s.alternating(6)
	token := latestToken(holder)
	s.release(holder)
	for i, w := range waiters {
		hold := won(t, w)
		for _, later := range waiters[i+1:] {
			require.True(t, later.Waiting(), "a waiter behind waiter %d got the lock before its release", i)
		}
		require.Greater(t, latestToken(hold), token)
		token = latestToken(hold)
		s.release(hold)
	}
	s.empty()
}

func leaversGrantNothing(t *testing.T, k Kind) {
	s := newFixture(t, k)
	holder := s.occupy(s.client())
	waiters := s.alternating(4)
	for left, leaver := range []int{2, 1} { // the predecessor of the last waiter, then the node before it
		waiters[leaver].Cancel()
		_, err := waiters[leaver].Wait()
		require.ErrorIs(t, err, context.Canceled) // also recipes.ErrNotAcquired, if it has already seen nodes ahead
		s.waits(3 - left)
	}
	require.True(t, waiters[0].Waiting() && waiters[3].Waiting(), "the lock is held")
	s.release(holder)
	first := won(t, waiters[0])
	require.True(t, waiters[3].Waiting())
	s.release(s.handOver(first, waiters[3]))
	s.empty()
}

// At least one attempt acquires the lock, and no more than Holders do.
func manyTries(t *testing.T, k Kind) {
	s := newFixture(t, k)
	clients := []*framework.Client{s.client(), s.client()}
	ctx := testzk.Context(t)
	var mu sync.Mutex
	var winners []*recipes.Hold
	contend(t, 16, func(i int) error {
		hold, err := s.rival(clients[i%2]).TryAcquire(ctx)
		if errors.Is(err, recipes.ErrNotAcquired) {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		winners = append(winners, hold)
		return err
	})
	require.NotEmpty(t, winners, "the first attempt meets no conflicting node")
	require.LessOrEqual(t, len(winners), k.Holders)
	s.release(winners...)
	s.empty()
	hold, err := s.lock(clients[0]).TryAcquire(ctx)
	require.NoError(t, err)
	s.release(hold)
	s.empty()
}

func tryLeavesNoTrace(t *testing.T, k Kind) {
	sim.Once(t, 1, inBubble(k, func(w *simFixture) {
		blocker := w.occupy(w.connect("blocker"))
		one := w.connect("one")
		nodes := w.count(w.nodes)
		watches := w.watches()
		for range 2 { // the second time with a lock value that already knows its directory
			_, err := w.lock(one).TryAcquire(testzk.Context(w.t))
			require.ErrorIs(w.t, err, recipes.ErrNotAcquired)
		}
		require.Equal(w.t, nodes, w.count(w.nodes))
		require.Equal(w.t, watches, w.watches())
		require.NoError(w.t, blocker.Err())
		w.release(blocker)
		w.empty()
	}))
}

// watches returns the number of watches of all clients.
func (w *simFixture) watches() string {
	w.t.Helper()
	figures, err := w.srv.Command("mntr")
	require.NoError(w.t, err)
	count := regexp.MustCompile(`zk_watch_count\s+\d+`).FindString(figures)
	require.NotEmpty(w.t, count)
	return count
}

// The lock ignores children of its directories that are not its nodes.
func foreignChildren(t *testing.T, k Kind) {
	s := newFixture(t, k)
	one, other := s.client(), s.client()
	for _, dir := range k.Dirs(s.path) {
		require.NoError(t, one.CreateContainers(testzk.Context(t), dir))
		for _, name := range []string{
			"-x", "+", "0", "config", "lock-", "lock-abc", "_c_x-lock-abc", "_c_x", "zzz-latch-0000000000",
		} {
			node, err := one.Create(testzk.Context(t), dir+"/"+name, nil)
			require.NoError(t, err)
			s.foreign = append(s.foreign, node)
		}
	}
	s.fill(other)
	hold, err := s.lock(one).TryAcquire(testzk.Context(t))
	require.NoError(t, err)
	_, err = s.rival(other).TryAcquire(testzk.Context(t))
	require.ErrorIs(t, err, recipes.ErrNotAcquired)
	waiter := s.start(s.rival(other))
	s.waitsBehind(1)
	require.True(t, waiter.Waiting())
	s.release(s.handOver(hold, waiter))
	s.empty()
}

// latestToken returns the largest token of a hold, which a multi-lock has one of for each lock.
func latestToken(h *recipes.Hold) int64 { return slices.Max(h.Tokens()) }
