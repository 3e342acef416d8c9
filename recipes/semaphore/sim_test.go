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
	sim.Run(t, 50, simulate, zktest.WithConfig("znode.container.checkIntervalMs", "300"))
}

func simulate(t *testing.T, srv *zktest.Server, random *rand.Rand) {
	require.NoError(t, srv.Create("/limit", number(3)))
	r := &room{t: t, srv: srv, expelled: map[string]int64{}, inside: map[*recipes.Hold]string{}}
	r.setLimit(2 + random.IntN(2))
	var measured testzk.Metrics
	var running sync.WaitGroup
	for i := range contenders {
		c := &contender{room: r, name: fmt.Sprintf("c%d", i), random: rand.New(rand.NewPCG(random.Uint64(), 0))}
		lib := client(t, srv, c.name, framework.WithMetrics(&measured),
			framework.WithRandom(rand.New(rand.NewPCG(random.Uint64(), 1)).Int64N))
		c.semaphore = newSemaphore(t, lib, "/sem", 3, semaphore.WithSlots(), semaphore.WithSharedLimit("/limit"))
		running.Go(c.run)
	}
	for range faultsInARun {
		time.Sleep(time.Duration(random.Int64N(int64(time.Second))))
		c := srv.Client(fmt.Sprintf("c%d", random.IntN(contenders)))
		switch random.IntN(8) {
		case 0:
			r.expel(c)
		case 1, 2, 3:
			r.setLimit(random.IntN(4))
		default:
			harm(srv, c, random)
		}
	}
	r.setLimit(2)
	running.Wait()
	requireEmpty(t, srv, "/sem")
	require.False(t, srv.Exists("/sem"), "%s", srv.Tree())
	require.Empty(t, measured.Levels())
}

// harm applies a random fault to a client. Its effect ends before a session would expire.
func harm(srv *zktest.Server, c *zktest.Client, random *rand.Rand) {
	ops := []fault.Op{
		fault.OpMulti, fault.OpCreate, fault.OpDelete, fault.OpGetChildren2, fault.OpGetData,
		fault.OpSync, fault.AnyOp,
	}
	match := fault.Match{Client: c.Name(), Op: ops[random.IntN(len(ops))]}
	switch random.IntN(7) {
	case 0:
		c.Drop()
	case 1:
		c.Reset()
	case 2:
		srv.On(match, fault.DropBefore())
	case 3:
		srv.On(match, fault.DropAfter())
	case 4:
		srv.On(match, fault.Delay(time.Duration(random.Int64N(int64(simTimeout)))))
	case 5:
		c.Cut()
		time.AfterFunc(time.Duration(random.Int64N(int64(2*simTimeout))), c.Heal)
	case 6:
		c.HoldEvents()
		time.AfterFunc(time.Duration(random.Int64N(int64(simTimeout))), c.ReleaseEvents)
	}
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
		c.room.enter(c.name, hold)
		select {
		case <-time.After(time.Duration(c.random.Int64N(int64(time.Second)))):
		case <-hold.Done():
		}
		c.room.leave(hold)
		_ = hold.Release()
		done++
	}
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
	t        *testing.T
	srv      *zktest.Server
	mu       sync.Mutex
	limits   []limitAt
	inside   map[*recipes.Hold]string // valid holds and their clients
	expelled map[string]int64         // the last transaction in which the test expired the client's sessions
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

// expel expires all sessions of a client. The client cannot know it at once, so its holds do not
// count from then on.
func (r *room) expel(c *zktest.Client) {
	for _, s := range c.Sessions() {
		_ = s.Expire()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expelled[c.Name()] = r.srv.Trace().Tail(1).Entries[0].Zxid
}

// enter checks all holds that are valid and were not expired by the test. As of the transaction of
// each hold, it and the earlier ones must not exceed the limit. No two holds may share a slot.
func (r *room) enter(owner string, h *recipes.Hold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inside[h] = owner
	slots := map[int]int64{}
	for hold, owner := range r.inside {
		if !r.holds(hold, owner) {
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

func (r *room) holds(h *recipes.Hold, owner string) bool {
	return h.Err() == nil && h.Token() > r.expelled[owner]
}

func (r *room) leave(h *recipes.Hold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.inside, h)
}
