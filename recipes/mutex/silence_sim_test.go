package mutex_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

const (
	longTimeout = 30 * time.Second // with ticks of a second
	limit       = longTimeout * 2 / 3
)

// silenced is what a scenario disturbs: the servers, the first client and its follower.
type silenced struct {
	srv    *zktest.Server
	f      *zktest.Follower
	c      *zktest.Client
	random *rand.Rand
}

// Late answers of a server leave one holder at a time. The first client knows one follower only,
// and does not reconnect in time when its answers were late. The other client knows all servers.
func TestSimulatedLateAnswers(t *testing.T) {
	scenarios := map[string]func(s silenced){
		"a frozen ZooKeeper leader and a disconnected follower": func(s silenced) {
			s.srv.FreezeLeader()
			time.Sleep(between(s.random, limit/4, limit))
			s.f.CutToLeader()
			s.srv.ThawLeader()
		},
		"a stalled network and a disconnected follower": func(s silenced) {
			s.c.CutRequests()
			time.Sleep(between(s.random, limit/4, limit))
			s.c.Heal()
			time.Sleep(between(s.random, 0, 400*time.Millisecond))
			s.f.CutToLeader()
		},
		"delayed requests and a disconnected follower": func(s silenced) {
			s.f.HoldRequests()
			time.Sleep(between(s.random, limit/4, limit))
			s.f.ReleaseRequests()
			s.f.CutToLeader()
		},
		"a shorter timeout and no server": func(s silenced) {
			bound := between(s.random, longTimeout/4, longTimeout/2)
			s.srv.SetSessionTimeouts(time.Second, bound)
			s.c.Drop()
			time.Sleep(between(s.random, time.Second, 3*time.Second))
			s.c.Refuse(true)
			s.c.Drop()
		},
	}
	for name, silence := range scenarios {
		t.Run(name, func(t *testing.T) { simulateSilence(t, 1, "40", silence) })
	}
}

// The same, with a ZooKeeper leader that answers late about changes that its successor does not
// have.
func TestSimulatedStaleLeader(t *testing.T) {
	simulateSilence(t, 0, "2", func(s silenced) {
		s.srv.FreezeLeader()
		time.Sleep(between(s.random, limit/2, limit))
		s.srv.ThawLeader()
		time.Sleep(between(s.random, 0, 50*time.Millisecond))
		s.c.Cut()
	})
}

func simulateSilence(t *testing.T, server int, syncLimit string, silence func(silenced)) {
	sim.Run(t, 50, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		all := sim.Ensemble(srv, random, 2)
		f := srv.Members()[server]
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var running sync.WaitGroup
		holders := &holders{model: testlock.NewModel(t, srv)}
		for i, addrs := range []string{f.MemAddr(), all} {
			c := &contender{t: t, model: holders.model, name: fmt.Sprintf("c%d", i)}
			c.random = rand.New(rand.NewPCG(random.Uint64(), 0))
			c.connectLong(srv, addrs)
			running.Go(func() { c.holdLong(ctx, holders) })
			time.Sleep(time.Second)
		}
		time.Sleep(between(random, 0, longTimeout/6))
		silence(silenced{srv, f, srv.Client("c0"), random})
		time.Sleep(2 * longTimeout)
		sim.Calm(srv)
		srv.ResetFaults()
		stop()
		running.Wait()
	}, zktest.WithConfig("tickTime", "1000"), zktest.WithConfig("maxSessionTimeout", "60000"),
		zktest.WithConfig("syncLimit", syncLimit))
}

// connectLong makes a client of servers and its lock.
func (c *contender) connectLong(srv *zktest.Server, servers string) {
	c.connect(srv, servers, longTimeout)
	c.lock = newMutex(c.t, c.client, "/lock")
}

// holdLong holds the lock for as long as it can. It reports another holder.
func (c *contender) holdLong(ctx context.Context, all *holders) {
	for ctx.Err() == nil {
		hold, err := c.lock.Acquire(ctx)
		if err != nil {
			continue
		}
		all.requireTold(c)
		all.begin(hold)
		select {
		case <-hold.Done():
		case <-ctx.Done():
		}
		all.end(hold)
		_ = hold.Release()
	}
}

// holders knows the holder that has not been told of its end.
type holders struct {
	model *testlock.Model
	mu    sync.Mutex
	last  *recipes.Hold
}

func (h *holders) begin(hold *recipes.Hold) {
	if h.model.Begin(testlock.UseOf(hold)) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.last = hold
	}
}

func (h *holders) end(hold *recipes.Hold) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.last == hold {
		h.last = nil
	}
}

// requireTold requires that the former holder's hold reports its end.
func (h *holders) requireTold(c *contender) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.last == nil {
		return
	}
	select {
	case <-h.last.Done():
	default:
		c.t.Errorf("%s holds while the hold with token %d reports no end", c.name, h.last.Token())
	}
}

// between returns a random duration.
func between(random *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(random.Int64N(int64(most-least)))
}

// A ZooKeeper leader is frozen and replaced. Its last change is the deletion of the predecessor.
// After it is thawed it accepts a waiter's connection and says that the waiter is first. The waiter
// must not rely on that for longer than on earlier answers.
func TestSimulatedStaleLeaderAdmitsAWaiter(t *testing.T) {
	sim.Run(t, 20, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		all := sim.Ensemble(srv, random, 2)
		on := func(name, addrs string) *contender {
			c := &contender{t: t, name: name, random: rand.New(rand.NewPCG(random.Uint64(), 0))}
			c.connectLong(srv, addrs)
			return c
		}
		waiter, other := on("c0", srv.Members()[0].MemAddr()), on("c1", all)
		first, err := other.lock.Acquire(t.Context())
		require.NoError(t, err)
		granted := make(chan *recipes.Hold, 1)
		ctx, leave := context.WithCancel(t.Context())
		go func() {
			hold, _ := waiter.lock.Acquire(ctx)
			granted <- hold
		}()
		time.Sleep(time.Second + between(random, 0, 5*time.Second))
		srv.Client("c0").Refuse(true)
		srv.Client("c0").Drop()
		require.NoError(t, first.Release())
		time.Sleep(20 * time.Millisecond)
		srv.FreezeLeader()
		srv.Client("c0").Refuse(false)
		time.Sleep(between(random, limit*7/10, limit*19/20))
		srv.ThawLeader()
		time.Sleep(50 * time.Millisecond)
		srv.Client("c0").Cut()
		next, err := other.lock.Acquire(t.Context())
		require.NoError(t, err)
		leave()
		if hold := <-granted; hold != nil {
			require.Error(t, hold.Err(), "two holds are valid")
		}
		require.NoError(t, next.Release())
		srv.Client("c0").Heal()
		sim.Calm(srv)
		srv.ResetFaults()
	},
		zktest.WithConfig("tickTime", "1000"), zktest.WithConfig("maxSessionTimeout", "60000"),
		zktest.WithConfig("syncLimit", "2"))
}
