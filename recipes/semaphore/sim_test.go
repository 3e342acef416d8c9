package semaphore_test

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
	"github.com/docent-zk/docent/recipes/semaphore"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

const (
	contenders   = 4
	turns        = 4 // each contender gets permits so often
	faultsInARun = 10
)

// Faults of connections, sessions and containers, and changes of the limit, leave the limit
// respected. No two holds share a slot, every contender gets permits, and no node is left.
func TestSimulatedContenders(t *testing.T) {
	aim := testlock.NewAim(t, fault.OpMulti, fault.OpCreate, fault.OpDelete, fault.OpGetChildren2, fault.OpGetData,
		fault.OpSync, fault.OpSetWatches, fault.OpConnect, fault.AnyOp)
	sim.Run(t, 50, func(t *testing.T, srv *zktest.Server, random *rand.Rand) { simulate(t, srv, random, aim) },
		zktest.WithConfig("znode.container.checkIntervalMs", "300"))
}

func simulate(t *testing.T, srv *zktest.Server, random *rand.Rand, aim *testlock.Aim) {
	require.NoError(t, srv.Create("/limit", number(3)))
	r, faults := newRoom(t, srv), aim.Faults(t, srv, random, simTimeout)
	r.setLimit(2 + random.IntN(2))
	var measured testzk.Metrics
	var running sync.WaitGroup
	for i := range contenders {
		c := &contender{room: r, name: fmt.Sprintf("c%d", i), random: rand.New(rand.NewPCG(random.Uint64(), 0))}
		client := testlock.Client(t, srv.Client(c.name), srv.MemAddr(), random, simTimeout,
			framework.WithMetrics(&measured))
		c.semaphore = newSemaphore(t, client, "/sem", 3, semaphore.WithSlots(), semaphore.WithSharedLimit("/limit"))
		running.Go(c.run)
	}
	for range faultsInARun {
		time.Sleep(time.Duration(random.Int64N(int64(time.Second))))
		c := srv.Client(fmt.Sprintf("c%d", random.IntN(contenders)))
		if random.IntN(8) < 3 {
			r.setLimit(random.IntN(4))
		} else {
			faults.Harm(c, r.model, "/sem/leases", "/sem/locks")
		}
	}
	r.setLimit(2)
	running.Wait()
	requireEmpty(t, srv, "/sem")
	require.False(t, srv.Exists("/sem"), "%s", srv.Tree())
	require.Empty(t, measured.Levels())
}

type contender struct {
	room      *room
	name      string
	random    *rand.Rand
	semaphore *semaphore.Semaphore
}

func (c *contender) run() {
	for done := 0; done < turns; {
		hold, err := c.try()
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		c.useFor(hold, testlock.HoldTime(c.random, simTimeout))
		done++
	}
}

// useFor keeps a hold for a time, or until it has ended, and releases it.
func (c *contender) useFor(hold *recipes.Hold, d time.Duration) {
	c.room.enter(hold)
	select {
	case <-time.After(d):
	case <-hold.Done():
	}
	c.room.leave(hold)
	_ = hold.Release()
}

// try acquires one permit or two. Some calls do not wait, others wait for a short time only.
func (c *contender) try() (*recipes.Hold, error) {
	n := 1 + c.random.IntN(2)
	switch c.random.IntN(4) {
	case 0:
		return c.semaphore.TryAcquireN(context.Background(), n)
	case 1:
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(c.random.Int64N(int64(3*time.Second))))
		defer cancel()
		return c.semaphore.AcquireN(ctx, n)
	}
	return c.semaphore.AcquireN(context.Background(), n)
}

// room is the state that the semaphore protects.
type room struct {
	t      *testing.T
	srv    *zktest.Server
	model  *testlock.Model
	mu     sync.Mutex
	limits []limitAt
	inside map[*recipes.Hold]bool // valid holds
}

func newRoom(t *testing.T, srv *zktest.Server) *room {
	return &room{t: t, srv: srv, model: testlock.NewModel(t, srv), inside: map[*recipes.Hold]bool{}}
}

// limitAt is a limit with the transaction that set it.
type limitAt struct {
	zxid    int64
	permits int
}

func (r *room) setLimit(permits int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	require.NoError(r.t, r.srv.Set("/limit", number(permits)))
	stat, err := r.srv.Stat("/limit")
	require.NoError(r.t, err)
	r.limits = append(r.limits, limitAt{stat.Mzxid, permits})
}

// limit returns the limit in force before a transaction.
func (r *room) limit(zxid int64) (permits int) {
	for _, l := range r.limits {
		if l.zxid < zxid {
			permits = l.permits
		}
	}
	return permits
}

// enter checks all holds that are valid and were not ended by the test. As of the transaction of
// each hold, it and the earlier ones must not exceed the limit. No two holds may share a slot.
func (r *room) enter(h *recipes.Hold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inside[h] = true
	slots := map[int]int64{}
	for hold := range r.inside {
		if !r.model.Valid(testlock.UseOf(hold)) {
			delete(r.inside, hold)
			continue
		}
		for _, slot := range semaphore.Slots(hold) {
			if other, ok := slots[slot]; ok {
				r.t.Errorf("slot %d is used by tokens %d and %d", slot, other, hold.Token())
			}
			slots[slot] = hold.Token()
		}
	}
	for hold := range r.inside {
		taken := 0
		for other := range r.inside {
			if other.Token() <= hold.Token() {
				taken += len(semaphore.Slots(other))
			}
		}
		if limit := r.limit(hold.Token()); taken > limit {
			r.t.Errorf("%d permits of %d at %d", taken, limit, hold.Token())
		}
	}
}

func (r *room) leave(h *recipes.Hold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.inside, h)
}
