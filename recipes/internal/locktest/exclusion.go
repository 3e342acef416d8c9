package locktest

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/zktest/sim"
)

// referee finds out by itself whether too many are inside, and whether tokens grow.
type referee struct {
	most int // who may be inside at once; 0 is any number

	mu      sync.Mutex
	inside  int
	alone   bool // whoever is inside excludes all
	last    int64
	highest int64 // of those who were alone

	counter int // for the race detector: written by those who are alone, and read by all
}

func newReferee(k Kind) *referee {
	if k.Rival != nil {
		return &referee{}
	}
	return &referee{most: k.Holders}
}

// turn is one turn under a lock, of one that excludes all others or not.
func (r *referee) turn(hold *recipes.Hold, alone bool) error {
	err := errors.Join(r.enter(hold, alone), hold.Err())
	if alone {
		r.counter++
	} else if r.most == 0 {
		_ = r.counter
	}
	r.leave()
	return errors.Join(err, hold.Release())
}

func (r *referee) enter(hold *recipes.Hold, alone bool) (err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inside++
	switch {
	case r.most > 0 && r.inside > r.most, r.inside > 1 && (alone || r.alone):
		err = fmt.Errorf("%d hold the lock", r.inside)
	case alone && hold.Token() <= r.last, hold.Token() <= r.highest:
		err = fmt.Errorf("token %d after %d", hold.Token(), r.last)
	}
	r.last = max(r.last, hold.Token())
	r.alone = alone
	if alone {
		r.highest = hold.Token()
	}
	return err
}

func (r *referee) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inside--
}

// contend runs fn on n goroutines, each with its number.
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

// Several goroutines of several clients, of which every other uses the rival.
func exclusion(t *testing.T, k Kind) {
	const clients, goroutines, turns = 3, 4, 6
	s := newStage(t, k)
	r := newReferee(k)
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
			if err := r.turn(hold, alone); err != nil {
				return err
			}
		}
		return nil
	})
	s.empty()
}

// As many as may hold get in, and whoever they exclude gets in as soon as there is room.
func asManyAsMayHoldDo(t *testing.T, k Kind) {
	s := newStage(t, k)
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
	s.becomes(most*s.shape.held, nil)
	waiter := s.start(s.rival(clients[0]))
	s.stand(1, most*s.shape.lined)
	for _, h := range holds[:inTheWay] {
		require.True(t, waiter.waiting())
		s.release(h)
	}
	s.release(waiter.won(t))
	s.release(holds[inTheWay:]...)
	s.empty()
}

// alternating starts waiters that exclude each other, on several clients in turn: those of a Rival too, if there is one.
func (s *stage) alternating(n int) []*attempt {
	s.t.Helper()
	clients := []*framework.Client{s.client(), s.client(), s.client()}
	waiters := make([]*attempt, n)
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
	s := newStage(t, k)
	holder := s.occupy(s.client())
	waiters := s.alternating(6)
	token := holder.Token()
	s.release(holder)
	for i, w := range waiters {
		hold := w.won(t)
		for _, later := range waiters[i+1:] {
			require.True(t, later.waiting(), "somebody behind waiter %d was served before it released", i)
		}
		require.Greater(t, hold.Token(), token)
		token = hold.Token()
		s.release(hold)
	}
	s.empty()
}

func leaversLetNobodyIn(t *testing.T, k Kind) {
	s := newStage(t, k)
	holder := s.occupy(s.client())
	waiters := s.alternating(4)
	for left, leaver := range []int{2, 1} { // the last but one ahead of the last, then the one ahead of that
		waiters[leaver].cancel(nil)
		_, err := waiters[leaver].wait()
		require.ErrorIs(t, err, context.Canceled) // and, if it has seen others ahead by now, recipes.ErrNotAcquired
		s.waits(3 - left)
	}
	require.True(t, waiters[0].waiting() && waiters[3].waiting(), "the lock is held")
	s.release(holder)
	first := waiters[0].won(t)
	require.True(t, waiters[3].waiting())
	s.release(s.handOver(first, waiters[3]))
	s.empty()
}

// Somebody wins, and no more than may hold. Where only one may, one does: whoever came first.
func manyTries(t *testing.T, k Kind) {
	s := newStage(t, k)
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
	require.NotEmpty(t, winners, "nobody is in the way of the first")
	require.LessOrEqual(t, len(winners), k.Holders)
	s.release(winners...)
	s.empty()
	hold, err := s.lock(clients[0]).TryAcquire(ctx)
	require.NoError(t, err)
	s.release(hold)
	s.empty()
}

func tryLeavesNoTrace(t *testing.T, k Kind) {
	sim.Once(t, 1, inBubble(k, func(w *world) {
		blocker := w.occupy(w.connect("blocker"))
		one := w.connect("one")
		nodes := w.count(w.nodes)
		watches := w.watches()
		for range 2 { // also by a value that has learned its way
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

// watches is how many watches there are of anybody.
func (w *world) watches() string {
	w.t.Helper()
	figures, err := w.srv.Command("mntr")
	require.NoError(w.t, err)
	count := regexp.MustCompile(`zk_watch_count\s+\d+`).FindString(figures)
	require.NotEmpty(w.t, count)
	return count
}

// Whatever stands in the lines and is no node of the lock.
func foreignChildren(t *testing.T, k Kind) {
	s := newStage(t, k)
	one, other := s.client(), s.client()
	for _, line := range k.Lines(s.path) {
		require.NoError(t, one.CreateContainers(testzk.Context(t), line))
		for _, name := range []string{"-x", "+", "0", "config", "lock-", "lock-abc", "_c_x-lock-abc", "_c_x", "zzz-latch-0000000000"} {
			node, err := one.Create(testzk.Context(t), line+"/"+name, nil)
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
	require.True(t, waiter.waiting())
	s.release(s.handOver(hold, waiter))
	s.empty()
}
