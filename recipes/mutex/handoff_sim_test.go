package mutex_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/framework/metrics"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// Whatever happens while the goroutines of two clients pass a lock on, re-enter it and give up, and a third client contends without
// hand-off: one ownership at a time, no smaller token later, who does not give up is served, and nothing is left behind.
func TestSimulatedHandoff(t *testing.T) {
	sim.Run(t, 200, func(t *testing.T, srv *zktest.Server, random *rand.Rand) { simulateHandoff(t, srv, random) })
}

// The same where nodes are kept for shorter and longer than it takes somebody to come, and are taken at times without waiting.
func TestSimulatedStickiness(t *testing.T) {
	sim.Run(t, 200, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		simulateHandoff(t, srv, random, mutex.WithSticky(1+time.Duration(random.Int64N(int64(simTimeout)))))
	})
}

func simulateHandoff(t *testing.T, srv *zktest.Server, random *rand.Rand, more ...mutex.Option) {
	shared := &shared{resource: &resource{t: t, expelled: map[string]int64{}}, srv: srv}
	var measured testzk.Metrics
	var locks []*mutex.Mutex
	var running sync.WaitGroup
	for i, opts := range [][]mutex.Option{
		{mutex.WithLocalHandoff(5, simTimeout)}, {mutex.WithLocalHandoff(2, time.Second), mutex.WithKazooNames()}, nil} {
		name := fmt.Sprintf("c%d", i)
		if opts != nil {
			opts = append(opts, more...)
		}
		locks = append(locks, household(t, srv, random, &measured, name, opts...))
		for range 1 + 3*min(1, len(opts)) {
			running.Go((&member{shared, name, locks[i], rand.New(rand.NewPCG(random.Uint64(), 0))}).run)
		}
	}
	for range faultsInARun {
		time.Sleep(time.Duration(random.Int64N(int64(2 * time.Second))))
		shared.harm(srv.Client(fmt.Sprintf("c%d", random.IntN(len(locks)))), random)
	}
	running.Wait()
	time.Sleep(2 * simTimeout) // nothing is lost, and what is still pending then is never done
	require.Empty(t, measured.Levels())
	srv.ResetFaults() // those that have not met a request yet
	for _, lock := range locks {
		hold, err := lock.TryAcquire(context.Background())
		require.NoError(t, err, "somebody is waited for who is not there")
		require.NoError(t, hold.Release())
		time.Sleep(2 * simTimeout) // it may be kept
	}
	require.Equal(t, "/lock container\n", srv.Tree())
}

// household is the lock of one client, with a loss policy that depends on the seed.
func household(t *testing.T, srv *zktest.Server, random *rand.Rand, m metrics.Metrics, name string, opts ...mutex.Option) *mutex.Mutex {
	client, err := framework.New(srv.MemAddr(),
		framework.WithDialer(srv.Client(name).DialContext),
		framework.WithSessionTimeout(simTimeout),
		framework.WithMetrics(m),
		framework.WithRandom(rand.New(rand.NewPCG(random.Uint64(), 1)).Int64N),
		framework.WithLossPolicy(framework.LossPolicy(random.IntN(2))),
		framework.WithRetry(retry.Forever(100*time.Millisecond)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return newMutex(t, client, "/lock", opts...)
}

// member is a goroutine of a client.
type member struct {
	shared *shared
	name   string // of the client
	lock   *mutex.Mutex
	random *rand.Rand
}

func (m *member) upTo(most time.Duration) time.Duration {
	return time.Duration(m.random.Int64N(int64(most)))
}

func (m *member) run() {
	for range turns {
		time.Sleep(m.upTo(200 * time.Millisecond))
		ctx, cancel := context.WithCancel(context.Background())
		switch m.random.IntN(4) {
		case 0:
			time.AfterFunc(m.upTo(2*time.Second), cancel)
		case 1:
			m.shared.do(func() { m.shared.impatient = append(m.shared.impatient, cancel) })
		}
		if m.random.IntN(4) == 0 {
			if hold, err := m.lock.TryAcquire(ctx); err == nil {
				m.own(hold)
			}
		}
		if hold, err := m.lock.Acquire(ctx); err == nil {
			m.own(hold)
		} else if ctx.Err() == nil {
			m.shared.t.Errorf("%s did not give up: %v", m.name, err)
		}
		cancel()
	}
}

// own keeps a hold for a while, at times with further levels, and releases them in any order.
func (m *member) own(hold *recipes.Hold) {
	o := &ownership{client: m.name, node: hold.Path(), token: hold.Token(), levels: []*recipes.Hold{hold}}
	m.shared.do(func() { m.shared.enter(o) })
	work := hold.Context(context.Background())
	for m.random.IntN(3) == 0 {
		time.Sleep(m.upTo(100 * time.Millisecond))
		inner, err := m.lock.Acquire(work)
		if err != nil {
			break // with work, which is over
		}
		if inner.Token() != o.token {
			m.shared.t.Errorf("%s re-enters %d with %d", m.name, o.token, inner.Token())
		}
		m.shared.do(func() { o.levels = append(o.levels, inner) })
	}
	for _, i := range m.random.Perm(len(o.levels)) {
		select {
		case <-time.After(m.upTo(500 * time.Millisecond)):
		case <-o.levels[i].Done():
		}
		m.shared.release(o.levels[i])
	}
}

// shared is what the lock protects.
type shared struct {
	*resource
	srv       *zktest.Server
	last      *ownership
	impatient []context.CancelFunc // of those who give up at the next release
	deleted   []string             // the lock nodes that were taken away
}

func (s *shared) do(what func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	what()
}

// ownership is a hold with its further levels. It is over when all of them are.
type ownership struct {
	client, node string
	token        int64
	levels       []*recipes.Hold
}

// holds says whether somebody holds and nobody has taken it away: of what is taken away out of the blue, no client can know at once.
func (s *shared) holds(o *ownership) bool {
	return o.token > s.expelled[o.client] && !slices.Contains(s.deleted, o.node) &&
		slices.ContainsFunc(o.levels, func(h *recipes.Hold) bool { return h.Err() == nil })
}

// enter compares with the last one only: each of those before was over when the next one began, and never holds again.
func (s *shared) enter(o *ownership) {
	switch last := s.last; {
	case !s.holds(o):
		return
	case last != nil && (s.holds(last) || o.token < last.token):
		s.t.Errorf("token %d of %s after %d of %s, which is over: %v", o.token, o.client, last.token, last.client, !s.holds(last))
	}
	s.last = o
}

// release makes those give up who wait for it, some of whom are being served just then.
func (s *shared) release(h *recipes.Hold) {
	s.do(func() {
		for _, giveUp := range s.impatient {
			giveUp()
		}
		s.impatient = nil
	})
	_ = h.Release()
}

// harm takes something away, or does something to a client.
func (s *shared) harm(c *zktest.Client, random *rand.Rand) {
	switch random.IntN(8) {
	case 0:
		s.expel(s.srv, c)
	case 1:
		s.do(func() { s.deleteOne(random) })
	default:
		harm(s.srv, c, random)
	}
}

// deleteOne deletes the node of somebody who holds or waits.
func (s *shared) deleteOne(random *rand.Rand) {
	names, _ := s.srv.Children("/lock")
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(a[len(a)-10:], b[len(b)-10:]) }) // the rest is random
	if len(names) > 0 {
		node := "/lock/" + names[random.IntN(len(names))]
		s.deleted = append(s.deleted, node)
		_ = s.srv.Delete(node)
	}
}
