package barrier_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/barrier"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

const (
	simSeeds   = 40
	simTimeout = 4 * time.Second
	// quiet is long enough for everything that the faults have caused.
	quiet = 3*simTimeout + 5*time.Second
)

// world is the clients of a simulation, and their networks.
type world struct {
	t       *testing.T
	srv     *zktest.Server
	random  *rand.Rand
	clients []*framework.Client
	mild    bool // no fault loses a session, or ends a call
}

func newWorld(t *testing.T, srv *zktest.Server, random *rand.Rand, n int, mild bool) *world {
	w := &world{t: t, srv: srv, random: random, mild: mild}
	connect := srv.MemAddr()
	if random.IntN(2) == 0 {
		connect = sim.Ensemble(srv, random, 2)
	}
	policies := []retry.Policy{retry.Times(20, 100*time.Millisecond), retry.Never()}
	if mild {
		policies = policies[:1]
	}
	for i := range n {
		name := fmt.Sprint("c", i)
		c, err := framework.New(connect,
			framework.WithRetry(policies[random.IntN(len(policies))]),
			framework.WithDialer(srv.Client(name).DialContext),
			framework.WithSessionTimeout(simTimeout),
			framework.WithRandom(rand.New(rand.NewPCG(random.Uint64(), 1)).Int64N))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, c.Close()) })
		w.clients = append(w.clients, c)
	}
	return w
}

// disturb makes faults until they have all ended, and waits until all is quiet.
func (w *world) disturb(faults int) {
	for range faults {
		time.Sleep(w.upTo(2 * time.Second))
		w.harm()
	}
	time.Sleep(2 * simTimeout)
	sim.Calm(w.srv)
	w.srv.ResetFaults()
	time.Sleep(quiet)
}

func (w *world) upTo(limit time.Duration) time.Duration {
	return time.Duration(w.random.Int64N(int64(limit)))
}

// harm makes a random fault.
func (w *world) harm() {
	c := w.srv.Client(fmt.Sprint("c", w.random.IntN(len(w.clients))))
	match := fault.Match{Client: c.Name(), Skip: w.random.IntN(6)}
	length := w.upTo(2 * simTimeout)
	kinds := 9
	if w.mild {
		kinds, length = 5, length/8
	}
	switch w.random.IntN(kinds) {
	case 0:
		c.Drop()
	case 1:
		w.srv.On(match, fault.DropBefore())
	case 2:
		w.srv.On(match, fault.DropAfter())
	case 3:
		c.HoldEvents()
		time.AfterFunc(length, c.ReleaseEvents)
	case 4:
		w.srv.On(match, fault.Delay(length/2))
	case 5:
		c.Cut()
		time.AfterFunc(length, c.Heal)
	case 6:
		for _, s := range c.Sessions() {
			_ = s.Expire()
		}
	case 7:
		c.CutReplies()
		time.AfterFunc(length, c.Heal)
	case 8:
		sim.Disturb(w.srv, w.random, simTimeout)
	}
}

// own returns random numbers for one goroutine.
func (w *world) own() *rand.Rand { return rand.New(rand.NewPCG(w.random.Uint64(), 2)) }

// below returns the nodes below those of the barriers.
func (w *world) below() (all []string) {
	for line := range strings.Lines(w.srv.Tree()) {
		if name := strings.Fields(line)[0]; strings.Count(name, "/") > 1 {
			all = append(all, name)
		}
	}
	return all
}

// simMember is a member of a double barrier in one round.
type simMember struct {
	entered, leaving, left bool
	lost                   bool // it has lost its session or its node
	failed                 bool // a call of Enter has failed, and may have been counted
}

// simRound is the model of a round.
type simRound struct {
	t       *testing.T
	mu      sync.Mutex
	begun   int
	members []simMember
	early   [][2]int // the first has left when the second was still inside, or lost
}

func (r *simRound) do(fn func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fn()
}

// enter enters, again if that fails.
func (r *simRound) enter(ctx context.Context, i int, d *barrier.Double, random *rand.Rand) *barrier.Entry {
	r.do(func() { r.begun++ })
	for ctx.Err() == nil {
		limited, cancel := context.WithTimeout(ctx, time.Duration(random.Int64N(int64(time.Minute))))
		e, err := d.Enter(limited)
		cancel()
		r.do(func() {
			if err != nil {
				r.members[i].failed = true
				return
			}
			r.members[i].entered = true
			if r.begun < len(r.members) {
				r.t.Errorf("member %d has entered when %d have come", i, r.begun)
			}
		})
		if err == nil {
			return e
		}
	}
	return nil
}

// leave leaves, and checks that the others have left then.
func (r *simRound) leave(ctx context.Context, i int, e *barrier.Entry) {
	r.do(func() { r.members[i].leaving = true })
	err := e.Leave(ctx)
	r.do(func() {
		if err != nil {
			if ctx.Err() == nil && !errors.Is(err, framework.ErrSessionLost) {
				r.t.Errorf("member %d: %v", i, err)
			}
			r.members[i].lost = true
			return
		}
		r.members[i].left = true
		for j, m := range r.members {
			if m.entered && !m.leaving {
				r.early = append(r.early, [2]int{i, j})
			}
		}
	})
}

// Sessions are lost, networks flap and servers restart while members enter and leave. No member
// enters before all have come. None leaves before the others. All that are not lost enter and leave
// once it is quiet, and no node is left.
func TestSimulatedDoubleBarriers(t *testing.T) {
	sim.Run(t, simSeeds, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		const members, rounds = 4, 3
		w := newWorld(t, srv, random, members, false)
		doubles := map[int][]*barrier.Double{}
		for round := range rounds {
			for _, c := range w.clients {
				doubles[round] = append(doubles[round], newDouble(t, c, fmt.Sprint("/round-", round), members))
			}
			w.round(doubles[round])
			require.Empty(t, w.membersLeft(), "round %d", round)
		}
	})
}

func (w *world) membersLeft() (all []string) {
	for _, name := range w.below() {
		if !strings.HasSuffix(name, "/ready") {
			all = append(all, name)
		}
	}
	return all
}

// round has all members enter and leave.
func (w *world) round(doubles []*barrier.Double) {
	ctx, cancel := context.WithCancel(context.Background())
	r := &simRound{t: w.t, members: make([]simMember, len(doubles))}
	entries := make([]*barrier.Entry, len(doubles))
	var entering, leaving sync.WaitGroup
	for i, d := range doubles {
		random := w.own()
		entering.Go(func() {
			time.Sleep(time.Duration(random.Int64N(int64(5 * time.Second))))
			entries[i] = r.enter(ctx, i, d, random)
		})
	}
	w.disturb(4)
	r.do(func() {
		for i, m := range r.members {
			if !m.entered && !m.failed {
				w.t.Errorf("member %d hangs in Enter", i)
			}
		}
	})
	cancel() // a member that was counted although it failed may have missed the round
	entering.Wait()
	ctx, cancel = context.WithCancel(context.Background())
	defer cancel()
	for i, e := range entries {
		random := w.own()
		leaving.Go(func() {
			if e == nil {
				return
			}
			time.Sleep(time.Duration(random.Int64N(int64(5 * time.Second))))
			if err := e.Err(); err != nil {
				r.do(func() { r.members[i].lost = true })
			}
			r.leave(ctx, i, e)
		})
	}
	w.disturb(4)
	r.do(func() {
		for i, m := range r.members {
			if m.entered && !m.left && !m.lost {
				w.t.Errorf("member %d hangs in Leave", i)
			}
		}
		for _, pair := range r.early {
			if r.members[pair[1]].left {
				w.t.Errorf("member %d has left before member %d", pair[0], pair[1])
			}
		}
	})
	cancel()
	leaving.Wait()
	time.Sleep(quiet)
}

// Connections flap while members go through many rounds of one barrier as fast as they can. They
// all stay in step.
func TestSimulatedRoundsOfOneDoubleBarrier(t *testing.T) {
	sim.Run(t, simSeeds, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		const members, rounds = 4, 12
		w := newWorld(t, srv, random, members, true)
		var mu sync.Mutex
		began := make([]int, members)
		left := make([]int, members)
		var running sync.WaitGroup
		for i, c := range w.clients {
			d, random := newDouble(t, c, path, members), w.own()
			running.Go(func() {
				for round := 1; round <= rounds; round++ {
					time.Sleep(time.Duration(random.Int64N(int64(100 * time.Millisecond))))
					mu.Lock()
					began[i] = round
					mu.Unlock()
					e, err := d.Enter(testzk.Context(t))
					if err != nil {
						t.Errorf("member %d, round %d: %v", i, round, err)
						return
					}
					mu.Lock()
					for j, other := range began {
						if other < round {
							t.Errorf("member %d has entered round %d, and %d is in %d", i, round, j, other)
						}
					}
					left[i] = round
					mu.Unlock()
					time.Sleep(time.Duration(random.Int64N(int64(10 * time.Millisecond))))
					if err := e.Leave(testzk.Context(t)); err != nil {
						t.Errorf("member %d, round %d: %v", i, round, err)
						return
					}
					mu.Lock()
					for j, other := range left {
						if other < round {
							t.Errorf("member %d has left round %d, and %d is in %d", i, round, j, other)
						}
					}
					mu.Unlock()
				}
			})
		}
		w.disturb(12)
		running.Wait()
		time.Sleep(quiet)
		require.Empty(t, w.below())
	})
}

// Sessions are lost while members go through rounds of one barrier, and come again. Once it is quiet, none hangs:
// each goes through more rounds.
func TestSimulatedMembersThatComeAgain(t *testing.T) {
	sim.Run(t, simSeeds, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		const members = 3
		w := newWorld(t, srv, random, members, false)
		ctx, cancel := context.WithCancel(context.Background())
		var rounds [members]atomic.Int64
		var running sync.WaitGroup
		for i, c := range w.clients {
			d, random := newDouble(t, c, path, members), w.own()
			running.Go(func() {
				for ctx.Err() == nil {
					e, err := d.Enter(ctx)
					if err != nil {
						time.Sleep(100 * time.Millisecond)
						continue
					}
					select {
					case <-time.After(time.Duration(random.Int64N(int64(time.Second)))):
					case <-e.Done(): // it comes again at once
					}
					if e.Leave(ctx) == nil {
						rounds[i].Add(1)
					}
				}
			})
		}
		w.disturb(12)
		var before [members]int64
		for i := range rounds {
			before[i] = rounds[i].Load()
		}
		time.Sleep(time.Minute)
		for i := range rounds {
			require.Greater(t, rounds[i].Load(), before[i]+1, "member %d hangs", i)
		}
		cancel()
		running.Wait()
		time.Sleep(quiet)
		require.Empty(t, w.membersLeft())
	})
}

// simParties is the model of a cyclic barrier.
type simParties struct {
	t         *testing.T
	mu        sync.Mutex
	n         int
	begun     int // calls that may be counted
	uncertain int
	passed    map[int64]int
}

// await calls Await once.
func (p *simParties) await(ctx context.Context, b *barrier.Cyclic) {
	p.mu.Lock()
	p.begun++
	p.mu.Unlock()
	g, err := b.Await(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err == nil:
		p.passed[g]++
		if p.passed[g] > p.n {
			p.t.Errorf("%d parties have passed in generation %d", p.passed[g], g)
		}
		if all := int(g+1) * p.n; p.begun < all {
			p.t.Errorf("a party has passed in generation %d, when %d had come", g, p.begun)
		}
	case framework.OutcomeOf(err) == framework.NotApplied:
		p.begun--
	default:
		p.uncertain++
	}
}

// Parties come, give up and lose their sessions, while networks flap and servers restart. None
// passes before n have come, and none passes twice. Once it is quiet, fewer than n wait, and each
// generation has had n.
func TestSimulatedCyclicBarriers(t *testing.T) {
	sim.Run(t, simSeeds, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		const clients = 4
		n := 2 + random.IntN(2)
		w := newWorld(t, srv, random, clients, false)
		p := &simParties{t: t, n: n, passed: map[int64]int{}}
		ctx, cancel := context.WithCancel(context.Background())
		stop := make(chan struct{})
		var running sync.WaitGroup
		for _, c := range w.clients {
			b, random := newCyclic(t, c, path, n), w.own()
			running.Go(func() {
				for {
					select {
					case <-stop:
						p.await(ctx, b) // until it passes, or all have stopped
						return
					default:
					}
					time.Sleep(time.Duration(random.Int64N(int64(3 * time.Second))))
					limited, cancel := context.WithTimeout(ctx, time.Duration(random.Int64N(int64(20*time.Second))))
					p.await(limited, b)
					cancel()
				}
			})
		}
		for range 2 {
			w.disturb(6)
		}
		close(stop)
		time.Sleep(quiet)
		time.Sleep(20 * time.Second)
		p.mu.Lock()
		passed, generations := 0, int64(0)
		for g, count := range p.passed {
			generations = max(generations, g+1)
			passed += count
		}
		require.GreaterOrEqual(t, passed+p.uncertain, int(generations)*n, "a party was counted that has not passed")
		require.Less(t, p.begun-p.uncertain-passed, n, "parties hang")
		p.mu.Unlock()
		cancel()
		running.Wait()
		time.Sleep(quiet)
		require.Empty(t, w.below())
	})
}

// Programs count down and wait, while networks flap and servers restart. Each count is made once:
// the latch is closed before the last count, and open after it. Then it is deleted.
func TestSimulatedLatches(t *testing.T) {
	sim.Run(t, simSeeds, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		const clients = 3
		n := 2 + random.IntN(8)
		w := newWorld(t, srv, random, clients, false)
		var latches []*barrier.CountDown
		var waiting []*call[struct{}]
		for _, c := range w.clients {
			latches = append(latches, newLatch(t, c, path, n))
			waiting = append(waiting, wait(t, latches[len(latches)-1]))
		}
		var counting sync.WaitGroup
		for i := range n - 1 {
			random := w.own()
			counting.Go(func() {
				time.Sleep(time.Duration(random.Int64N(int64(10 * time.Second))))
				countDown(t, latches[i%clients], random)
			})
		}
		w.disturb(6)
		counting.Wait()
		allWait(waiting)
		requireCount(t, latches[0], 1)
		random = w.own()
		counting.Go(func() { countDown(t, latches[0], random) })
		w.disturb(3)
		counting.Wait()
		for _, l := range waiting {
			require.NotEmpty(t, l.result, "a waiter hangs")
		}
		returned(waiting)
		deleting, next := w.own(), w.own()
		counting.Go(func() { w.deleteLatch(latches[1], deleting) })
		counting.Go(func() { // begins the next latch as soon as it can
			for {
				countDown(t, latches[2], next)
				if missing, err := latches[2].Count(context.Background()); err == nil && missing == n-1 {
					return
				}
			}
		})
		w.disturb(3)
		counting.Wait()
		requireCount(t, latches[0], n-1)
	})
}

// deleteLatch deletes a latch. Only a repeated call can find the next one, which is not open.
func (w *world) deleteLatch(l *barrier.CountDown, random *rand.Rand) {
	for calls := 1; ; calls++ {
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(random.Int64N(int64(5*time.Second))))
		err := l.Delete(ctx)
		cancel()
		if err == nil || calls > 1 && errors.Is(err, barrier.ErrNotOpen) {
			return
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			w.t.Errorf("call %d of Delete: %v", calls, err)
			return
		}
	}
}

// countDown counts once, however often that fails.
func countDown(t *testing.T, l *barrier.CountDown, random *rand.Rand) {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(random.Int64N(int64(5*time.Second))))
		err := l.CountDown(ctx)
		cancel()
		if err == nil {
			return
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("count down: %v", err)
			return
		}
	}
}

// A barrier is set and removed while its waiters have faults. They wait as long as it is set.
func TestSimulatedBarriers(t *testing.T) {
	sim.Run(t, simSeeds, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		w := newWorld(t, srv, random, 3, false)
		setter := newBarrier(t, w.clients[0], path)
		repeat := func(fn func(context.Context) error) {
			for fn(context.Background()) != nil { // by a policy that ends
			}
		}
		for range 3 {
			repeat(setter.Set)
			var waiting []*call[struct{}]
			for _, c := range w.clients {
				waiting = append(waiting, wait(t, newBarrier(t, c, path)))
			}
			w.disturb(4)
			allWait(waiting)
			var removing sync.WaitGroup
			removing.Go(func() { repeat(setter.Remove) })
			w.disturb(2)
			removing.Wait()
			for _, b := range waiting {
				require.NotEmpty(t, b.result, "a waiter hangs")
			}
			returned(waiting)
		}
	})
}
