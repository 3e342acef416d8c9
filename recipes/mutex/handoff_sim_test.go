package mutex_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// Goroutines of two clients hand a lock to each other, re-enter it and give up. A third client
// contends without hand-off. Whatever happens, there is one ownership at a time and no later token
// is smaller. Each waiter that does not give up gets the lock. No node is left.
func TestSimulatedHandoff(t *testing.T) {
	aim := aim(t)
	sim.Run(t, 200, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		simulateHandoff(t, srv, random, aim, 0)
	}, keepsParents)
}

// The same with sticky nodes that are kept for a shorter or longer time than the next acquire
// takes. Some acquires do not wait.
func TestSimulatedStickiness(t *testing.T) {
	aim := aim(t)
	sim.Run(t, 200, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		simulateHandoff(t, srv, random, aim, 1+time.Duration(random.Int64N(int64(simTimeout))))
	}, keepsParents)
}

func simulateHandoff(
	t *testing.T, srv *zktest.Server, random *rand.Rand, aim *testlock.Aim, idle time.Duration,
) {
	shared := &shared{t: t, model: testlock.NewModel(t, srv)}
	shared.model.SameToken = true
	var measured testzk.Metrics
	var locks []*mutex.Mutex
	var running sync.WaitGroup
	for i, opts := range [][]mutex.Option{
		{mutex.WithLocalHandoff(mutex.Handoff{Streak: 5, Span: simTimeout, Idle: idle})},
		{mutex.WithLocalHandoff(mutex.Handoff{Streak: 2, Span: time.Second, Idle: idle}), mutex.WithKazooNames()},
		nil,
	} {
		name := fmt.Sprintf("c%d", i)
		client := testlock.Client(t, srv.Client(name), srv.MemAddr(), random, simTimeout,
			framework.WithMetrics(&measured), framework.WithLossPolicy(framework.LossPolicy(random.IntN(2))))
		locks = append(locks, newMutex(t, client, "/lock", opts...))
		for range 1 + 3*min(1, len(opts)) {
			running.Go((&member{shared, name, locks[i], rand.New(rand.NewPCG(random.Uint64(), 0))}).run)
		}
	}
	harm(t, srv, random, aim, shared.model, len(locks))
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
			m.shared.mu.Lock()
			m.shared.impatient = append(m.shared.impatient, cancel)
			m.shared.mu.Unlock()
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
	o := &ownership{holds: []*recipes.Hold{hold}}
	use := testlock.UseOf(hold)
	use.Err = o.err
	m.shared.model.Begin(use)
	work := hold.Context(context.Background())
	for m.random.IntN(3) == 0 {
		time.Sleep(m.upTo(100 * time.Millisecond))
		inner, err := m.lock.Acquire(work)
		if err != nil {
			break // work has ended
		}
		if inner.Token() != use.Token {
			m.shared.t.Errorf("%s re-enters %d with %d", m.name, use.Token, inner.Token())
		}
		o.add(inner)
	}
	for _, i := range m.random.Perm(len(o.holds)) {
		select {
		case <-time.After(testlock.HoldTime(m.random, simTimeout)):
		case <-o.holds[i].Done():
		}
		m.shared.release(o.holds[i])
	}
}

// shared is what all members share.
type shared struct {
	t     *testing.T
	model *testlock.Model

	mu        sync.Mutex
	impatient []context.CancelFunc // cancel acquires at the next release
}

// release cancels the impatient acquires just before it releases h. Some of them are being granted
// then.
func (s *shared) release(h *recipes.Hold) {
	s.mu.Lock()
	for _, giveUp := range s.impatient {
		giveUp()
	}
	s.impatient = nil
	s.mu.Unlock()
	_ = h.Release()
}

// ownership is a hold with its reentrant holds. It ends with the last of them.
type ownership struct {
	mu    sync.Mutex
	holds []*recipes.Hold
}

func (o *ownership) add(h *recipes.Hold) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.holds = append(o.holds, h)
}

// err returns nil if one of the holds is valid.
func (o *ownership) err() (err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, h := range o.holds {
		if err = h.Err(); err == nil {
			return nil
		}
	}
	return err
}
