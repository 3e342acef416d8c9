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

// Goroutines of two clients hand a lock to each other, re-enter it and give up. A third client
// contends without hand-off. Whatever happens, there is one ownership at a time and no later token
// is smaller. Each waiter that does not give up gets the lock. No node is left.
func TestSimulatedHandoff(t *testing.T) {
	sim.Run(t, 200, func(t *testing.T, srv *zktest.Server, random *rand.Rand) { simulateHandoff(t, srv, random) })
}

// The same with sticky nodes that are kept for a shorter or longer time than the next acquire
// takes. Some acquires do not wait.
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
		{mutex.WithLocalHandoff(5, simTimeout)},
		{mutex.WithLocalHandoff(2, time.Second), mutex.WithKazooNames()},
		nil,
	} {
		name := fmt.Sprintf("c%d", i)
		if opts != nil {
			opts = append(opts, more...)
		}
		locks = append(locks, newSimLock(t, srv, random, &measured, name, opts...))
		for range 1 + 3*min(1, len(opts)) {
			running.Go((&member{shared, name, locks[i], rand.New(rand.NewPCG(random.Uint64(), 0))}).run)
		}
	}
	for range faultsInARun {
		time.Sleep(time.Duration(random.Int64N(int64(2 * time.Second))))
		shared.harm(srv.Client(fmt.Sprintf("c%d", random.IntN(len(locks)))), random)
	}
	running.Wait()
	time.Sleep(2 * simTimeout) // background work that is still pending after this would never end
	require.Empty(t, measured.Levels())
	srv.ResetFaults() // also the rules that have not met a request
	for _, lock := range locks {
		hold, err := lock.TryAcquire(context.Background())
		require.NoError(t, err, "the lock waits for a node that was deleted")
		require.NoError(t, hold.Release())
		time.Sleep(2 * simTimeout) // its node may be kept until then
	}
	require.Equal(t, "/lock container\n", srv.Tree())
}

// newSimLock returns the lock of one new client. Its loss policy depends on the seed.
func newSimLock(
	t *testing.T, srv *zktest.Server, random *rand.Rand, m metrics.Metrics, name string, opts ...mutex.Option,
) *mutex.Mutex {
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
	name   string // name of the client
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
				m.keep(hold)
			}
		}
		if hold, err := m.lock.Acquire(ctx); err == nil {
			m.keep(hold)
		} else if ctx.Err() == nil {
			m.shared.t.Errorf("%s failed before its context ended: %v", m.name, err)
		}
		cancel()
	}
}

// keep keeps a hold for a while, sometimes re-enters it, and releases the holds in any order.
func (m *member) keep(hold *recipes.Hold) {
	o := &ownership{client: m.name, node: hold.Path(), token: hold.Token(), holds: []*recipes.Hold{hold}}
	m.shared.do(func() { m.shared.enter(o) })
	work := hold.Context(context.Background())
	for m.random.IntN(3) == 0 {
		time.Sleep(m.upTo(100 * time.Millisecond))
		inner, err := m.lock.Acquire(work)
		if err != nil {
			break // work has ended
		}
		if inner.Token() != o.token {
			m.shared.t.Errorf("%s re-enters %d with %d", m.name, o.token, inner.Token())
		}
		m.shared.do(func() { o.holds = append(o.holds, inner) })
	}
	for _, i := range m.random.Perm(len(o.holds)) {
		select {
		case <-time.After(m.upTo(500 * time.Millisecond)):
		case <-o.holds[i].Done():
		}
		m.shared.release(o.holds[i])
	}
}

// shared is the state that the lock protects.
type shared struct {
	*resource
	srv       *zktest.Server
	last      *ownership
	impatient []context.CancelFunc // cancel acquires at the next release
	deleted   []string             // lock nodes that the test deleted
}

func (s *shared) do(what func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	what()
}

// ownership is a hold with its reentrant holds. It ends with the last of them.
type ownership struct {
	client, node string
	token        int64
	holds        []*recipes.Hold
}

// isHeld reports whether a hold of o is valid. It reports false if the test deleted the node or
// expired the session: the client cannot know that at once.
func (s *shared) isHeld(o *ownership) bool {
	return o.token > s.expelled[o.client] && !slices.Contains(s.deleted, o.node) &&
		slices.ContainsFunc(o.holds, func(h *recipes.Hold) bool { return h.Err() == nil })
}

// enter compares o with the last ownership only. Each earlier one had ended before the next began.
func (s *shared) enter(o *ownership) {
	switch last := s.last; {
	case !s.isHeld(o):
		return
	case last != nil && (s.isHeld(last) || o.token < last.token):
		s.t.Errorf("token %d of %s after %d of %s, which has ended: %v",
			o.token, o.client, last.token, last.client, !s.isHeld(last))
	}
	s.last = o
}

// release cancels the impatient acquires just before it releases h. Some of them are being granted
// then.
func (s *shared) release(h *recipes.Hold) {
	s.do(func() {
		for _, giveUp := range s.impatient {
			giveUp()
		}
		s.impatient = nil
	})
	_ = h.Release()
}

// harm expires sessions, deletes a node or applies another fault to a client.
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

// deleteOne deletes a random lock node.
func (s *shared) deleteOne(random *rand.Rand) {
	names, _ := s.srv.Children("/lock")
	bySequence := func(a, b string) int { return strings.Compare(a[len(a)-10:], b[len(b)-10:]) }
	slices.SortFunc(names, bySequence) // other parts of the names are not reproducible
	if len(names) > 0 {
		node := "/lock/" + names[random.IntN(len(names))]
		s.deleted = append(s.deleted, node)
		_ = s.srv.Delete(node)
	}
}
