package acceptance_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/realzk"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/semaphore"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

const (
	p14Limit   = 5
	p14Clients = 50
)

// 50 clients share 5 permits. Their connections are lost, interrupted and silent all the time, and
// their sessions expire. There are 1,000 cycles here and 10,000 in "make seeds". There are never
// more than 5 valid permits, no two have the same slot, and no node is left at the end.
func TestP14_NeverMoreValidPermitsThanTheLimit(t *testing.T) { // not parallel: it would starve the tests in real time
	onlyInProcess(t, virtual)
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		total := int64(often(t))
		permits := p14Permits{t: t, holds: map[*recipes.Hold]string{}, expelled: map[string]int64{}}
		var cycles atomic.Int64
		var running sync.WaitGroup
		for i := range p14Clients {
			name := fmt.Sprintf("c%d", i)
			s := p14Semaphore(t, bubbleClient(t, srv, name), "/sem", semaphore.WithSlots())
			pace := rand.New(rand.NewPCG(random.Uint64(), 0))
			running.Go(func() {
				for cycles.Add(1) <= total {
					hold, err := s.Acquire(t.Context())
					if !permits.check(err) {
						return
					}
					permits.enter(name, hold)
					time.Sleep(time.Duration(pace.Int64N(int64(20 * time.Millisecond))))
					permits.leave(hold)
					_ = hold.Release()
				}
			})
		}
		faults := 0
		for ; cycles.Load() < total; faults++ {
			time.Sleep(time.Duration(random.Int64N(int64(time.Second))))
			p14Harm(srv, srv.Client(fmt.Sprintf("c%d", random.IntN(p14Clients))), random, &permits)
		}
		running.Wait()
		require.Greater(t, faults, int(total/100))
		require.Equal(t, p14Limit, permits.peak)
		time.Sleep(2 * bubbleTimeout)
		for _, dir := range []string{"/sem/leases", "/sem/locks"} {
			children, _ := srv.Children(dir)
			require.Empty(t, children, dir)
		}
	})
}

func p14Semaphore(t testing.TB, c *framework.Client, path string, opts ...semaphore.Option) *semaphore.Semaphore {
	t.Helper()
	s, err := semaphore.New(c, path, p14Limit, opts...)
	require.NoError(t, err)
	return s
}

// p14Harm applies one random fault to a client.
func p14Harm(srv *zktest.Server, c *zktest.Client, random *rand.Rand, permits *p14Permits) {
	match := fault.Match{Client: c.Name(), Op: fault.OpMulti}
	switch random.IntN(10) {
	default:
		c.Reset()
	case 1:
		srv.On(match, fault.DropBefore())
	case 2:
		srv.On(match, fault.DropAfter())
	case 3:
		srv.On(match, fault.Delay(time.Duration(random.Int64N(int64(300*time.Millisecond)))))
	case 4:
		c.HoldEvents()
		time.AfterFunc(time.Duration(random.Int64N(int64(300*time.Millisecond))), c.ReleaseEvents)
	case 5:
		c.Cut() // sometimes until the session has ended
		time.AfterFunc(time.Duration(random.Int64N(int64(3*bubbleTimeout/2))), c.Heal)
	case 6:
		permits.expel(srv, c)
	}
}

// p14Permits has the permits that are valid, as far as their holders can know.
type p14Permits struct {
	t     testing.TB
	mu    sync.Mutex
	holds map[*recipes.Hold]string // the client of each
	// By client, the last transaction before its session was ended by a fault. Earlier permits do
	// not count, although the client may not know that yet.
	expelled map[string]int64
	peak     int
}

func (p *p14Permits) check(err error) bool {
	if err != nil {
		p.t.Errorf("acquire: %v", err)
	}
	return err == nil
}

func (p *p14Permits) expel(srv *zktest.Server, c *zktest.Client) {
	for _, s := range c.Sessions() {
		_ = s.Expire()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expelled[c.Name()] = srv.Trace().Tail(1).Entries[0].Zxid
}

func (p *p14Permits) enter(owner string, h *recipes.Hold) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holds[h] = owner
	slots := map[int]string{}
	for hold, owner := range p.holds {
		if hold.Token() <= p.expelled[owner] || hold.Err() != nil {
			delete(p.holds, hold)
			continue
		}
		slot := semaphore.Slots(hold)[0]
		if other, taken := slots[slot]; taken {
			p.t.Errorf("slot %d is that of %s and of %s", slot, owner, other)
		}
		slots[slot] = owner
	}
	if p.peak = max(p.peak, len(p.holds)); len(p.holds) > p14Limit {
		p.t.Errorf("%d permits are valid", len(p.holds))
	}
}

func (p *p14Permits) leave(h *recipes.Hold) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.holds, h)
}

// 10 clients use connections that are cut at any time, for 200 cycles. There are never more than 5
// valid permits, and no two have the same slot.
func TestP14_NeverMoreValidPermitsThanTheLimitBehindABadNetwork(t *testing.T) {
	t.Parallel()
	path := testzk.Path(t)
	permits := p14Permits{t: t, holds: map[*recipes.Hold]string{}}
	var running sync.WaitGroup
	for i := range 10 {
		p := testzk.Proxy(t)
		s := p14Semaphore(t, testzk.Connected(t, p.Addr(), long()), path, semaphore.WithSlots())
		running.Go(func() {
			actions := []fault.Action{fault.DropBefore(), fault.DropAfter(), fault.Delay(20 * time.Millisecond)}
			for cycle := range 20 {
				if cycle%4 == 0 {
					p.On(fault.Match{Op: fault.OpMulti, Path: path}, actions[cycle/4%len(actions)])
				}
				hold, err := s.Acquire(testzk.Context(t))
				if !permits.check(err) {
					return
				}
				permits.enter(fmt.Sprint(i), hold)
				permits.leave(hold)
				_ = hold.Release()
			}
		})
	}
	running.Wait()
	testzk.Empty(t, path+"/leases")
	testzk.Empty(t, path+"/locks")
}

// 10 clients wait when the limit is raised from 5 to 8. The first 3 of them are granted permits, in
// order, and no others.
func TestP14_RaisedLimitGrantsAsManyMore(t *testing.T) {
	t.Parallel()
	anywhere(t, func(t *testing.T, in place) {
		shared := semaphore.WithSharedLimit(in.root + "/limit")
		s := p14Semaphore(t, in.client(t), in.root+"/sem", shared)
		_, err := s.AcquireN(t.Context(), p14Limit)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		type grant struct {
			waiter int
			token  int64
		}
		admitted := make(chan grant, 10)
		for i := range 10 {
			waiter := p14Semaphore(t, in.client(t), in.root+"/sem", shared)
			running.Go(func() {
				if hold, err := waiter.Acquire(ctx); err == nil {
					admitted <- grant{i, hold.Token()}
				}
			})
			testzk.Eventually(t, func() bool {
				return p14Present(t, s) == p14Limit+i+1
			}, "waiter %d is not in the queue", i)
		}
		require.NoError(t, s.SetLimit(t.Context(), 8))
		first := []grant{<-admitted, <-admitted, <-admitted} // of several clients, so they may come in any order
		slices.SortFunc(first, func(a, b grant) int { return cmp.Compare(a.token, b.token) })
		for i, g := range first {
			require.Equal(t, i, g.waiter)
		}
		time.Sleep(2 * time.Second) // so that others could be granted a permit
		require.Empty(t, admitted)
		require.Equal(t, p14Limit+10, p14Present(t, s))
	})
}

// p14Present returns the number of holders and waiters.
func p14Present(t testing.TB, s *semaphore.Semaphore) int {
	t.Helper()
	all, err := s.Participants(testzk.Context(t))
	require.NoError(t, err)
	return len(all)
}

// The permits of a process that is killed are free after the session timeout and a second.
func TestP14_PermitsOfAKilledHolderAreFreeInTime(t *testing.T) {
	t.Parallel()
	if realzk.Wanted() != "" {
		p := testzk.Proxy(t)
		path := testzk.Path(t)
		holder := testzk.Connected(t, p.Addr(), testzk.Mortal())
		session, err := holder.Session(testzk.Context(t))
		require.NoError(t, err)
		busy := 9 * time.Second // more time, because the machine is busy
		p14Killed(t, path, holder, testzk.Connected(t, testzk.Connect()), func() {
			_ = p.Refuse(true)
		}, session.Timeout()+busy)
		return
	}
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		holder := bubbleClient(t, srv, "holder")
		p14Killed(t, "/sem", holder, bubbleClient(t, srv, "waiter"), func() {
			srv.Client("holder").Refuse(true)
			srv.Client("holder").Reset()
		}, bubbleTimeout)
	})
}

// p14Killed kills a holder of all permits once a waiter is in the queue.
func p14Killed(t *testing.T, path string, holder, waiter *framework.Client, kill func(), timeout time.Duration) {
	_, err := p14Semaphore(t, holder, path).AcquireN(t.Context(), p14Limit)
	require.NoError(t, err)
	s := p14Semaphore(t, waiter, path)
	freed := make(chan error, 1)
	go func() {
		_, err := s.AcquireN(t.Context(), p14Limit)
		freed <- err
	}()
	testzk.Eventually(t, func() bool { return p14Present(t, s) == p14Limit+1 }, "no waiter is in the queue")
	began := time.Now()
	kill()
	require.NoError(t, <-freed)
	require.LessOrEqual(t, time.Since(began), timeout+time.Second)
}
