package acceptance_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

// 1,000 goroutines of one process use one lock with local hand-off. They share one node, each is
// granted the lock in the order of arrival, and the hand-offs among them send no request to the
// servers.
func TestP20_ThousandGoroutinesShareOneNode(t *testing.T) {
	onlyInProcess(t, "requests are counted at the server, and the order of arrival is made in virtual time")
	const many = 1000
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		process := newP20Process(t, srv, "a", mutex.WithLocalHandoff(mutex.Handoff{Streak: many, Span: time.Hour}))
		hold, err := process.mu.Acquire(t.Context())
		require.NoError(t, err)
		var order []int
		var running sync.WaitGroup
		for i := range many {
			running.Go(func() {
				hold, err := process.mu.Acquire(t.Context())
				if assert.NoError(t, err) {
					order = append(order, i) // protected by the lock under test
					assert.NoError(t, hold.Release())
				}
			})
			synctest.Wait()
		}
		children, err := srv.Children("/lock")
		require.NoError(t, err)
		require.Len(t, children, 1)
		srv.ResetCounts()
		require.NoError(t, hold.Release())
		running.Wait()
		for i := range many {
			require.Equal(t, i, order[i])
		}
		requests := srv.Requests()
		require.Equal(t, 1, requests[fault.OpDelete], "the last goroutine deletes the node")
		require.Equal(t, 1, p20All(requests))
	})
}

// Two processes with 1,000 goroutines each use one lock, with at most 50 local hand-offs for a
// node. There are never more than two nodes. A node costs its process at most four requests, made
// before its turn, and a deletion. Local hand-offs cost none.
func TestP20_ProcessesTakeTurnsAtFourRequestsEach(t *testing.T) {
	onlyInProcess(t, "requests are counted at the server, in virtual time")
	const many, streak = 1000, 50
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		a := newP20Process(t, srv, "a", mutex.WithLocalHandoff(mutex.Handoff{Streak: streak, Span: time.Hour}))
		b := newP20Process(t, srv, "b", mutex.WithLocalHandoff(mutex.Handoff{Streak: streak, Span: time.Hour}))
		for _, p := range []*p20Process{a, b} { // the first acquire sends more requests
			hold, err := p.mu.Acquire(t.Context())
			require.NoError(t, err)
			require.NoError(t, hold.Release())
		}
		srv.ResetCounts()
		var running sync.WaitGroup
		nodes := map[string]int{} // number of holds of each node
		var order []*p20Process
		for _, p := range []*p20Process{a, b} {
			for range many {
				running.Go(func() {
					hold, err := p.mu.Acquire(t.Context())
					if !assert.NoError(t, err) {
						return
					}
					nodes[hold.Path()]++
					order = append(order, p)
					time.Sleep(time.Millisecond) // all others have arrived by then
					children, err := srv.Children("/lock")
					assert.NoError(t, err)
					assert.LessOrEqual(t, len(children), 2, "nodes of two processes")
					assert.NoError(t, hold.Release())
				})
			}
		}
		running.Wait()
		require.Len(t, order, 2*many)
		for node, holds := range nodes {
			require.LessOrEqual(t, holds, streak+1, node)
		}
		const least = 2 * many / (streak + 1)
		require.InDelta(t, least, len(nodes), 10, "nodes are deleted too early")
		requests := srv.Requests()
		require.Equal(t, len(nodes), requests[fault.OpDelete])
		const discoveries = 2 // each process discovers the other one once
		require.LessOrEqual(t, p20All(requests), (4+1)*len(nodes)+discoveries, "requests for %d nodes", len(nodes))
		require.Greater(t, p20Turns(order), least/2, "the processes do not take turns")
	})
}

// A goroutine that gives up while it waits for others of its process does not delay them. After the
// lock was lost with its session, the waiters continue with a node of the next session. Each of
// them is granted the lock.
func TestP20_LocalQueueSurvivesCancelledWaitersAndLoss(t *testing.T) {
	onlyInProcess(t, "sessions are ended at the server, in virtual time")
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		p := newP20Process(t, srv, "a", mutex.WithLocalHandoff(mutex.Handoff{Streak: 100, Span: time.Hour}))
		hold, err := p.mu.Acquire(t.Context())
		require.NoError(t, err)
		impatient, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		var held, gaveUp atomic.Int64 // atomic, because a lost lock does not exclude
		for i := range 30 {
			ctx := t.Context()
			if i%3 == 0 {
				ctx = impatient
			}
			running.Go(func() {
				hold, err := p.mu.Acquire(ctx)
				if err != nil {
					assert.ErrorIs(t, err, context.Canceled)
					assert.ErrorIs(t, err, recipes.ErrNotAcquired)
					gaveUp.Add(1)
					return
				}
				if held.Add(1) == 5 {
					assert.NoError(t, srv.Client("a").Sessions()[0].Expire())
					<-hold.Done()
				}
				_ = hold.Release() // returns an error for the lost hold
			})
			synctest.Wait()
		}
		cancel()
		synctest.Wait()
		require.EqualValues(t, 10, gaveUp.Load())
		_, err = p.mu.TryAcquire(t.Context())
		require.ErrorIs(t, err, recipes.ErrNotAcquired, "others of the process are ahead")
		require.NoError(t, hold.Release())
		running.Wait()
		require.EqualValues(t, 20, held.Load())
		again, err := p.mu.TryAcquire(t.Context())
		require.NoError(t, err)
		require.NoError(t, again.Release())
		require.Equal(t, "/lock container\n", srv.Tree())
	})
}

// p20Process has what one process would have.
type p20Process struct{ mu *mutex.Mutex }

func newP20Process(t *testing.T, srv *zktest.Server, name string, opts ...mutex.Option) *p20Process {
	c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client(name).DialContext))
	mu, err := mutex.New(c, "/lock", opts...)
	require.NoError(t, err)
	return &p20Process{mu}
}

// p20Turns returns how often the lock passed from one process to the other.
func p20Turns(order []*p20Process) (turns int) {
	for i := 1; i < len(order); i++ {
		if order[i] != order[i-1] {
			turns++
		}
	}
	return turns
}

// p20All returns the number of requests, without those that keep a session.
func p20All(counts fault.Counts) (all int) {
	for op, n := range counts {
		if op != fault.OpSync && op != fault.OpPing {
			all += n
		}
	}
	return all
}
