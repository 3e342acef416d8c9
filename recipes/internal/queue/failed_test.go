package queue_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/internal/ownership"
	"github.com/docent-zk/docent/recipes/internal/queue"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// connected returns a connected client of a simulated server.
func connected(t *testing.T, srv *zktest.Server, name string, opts ...framework.Option) *framework.Client {
	t.Helper()
	opts = append(opts, framework.WithDialer(srv.Client(name).DialContext))
	return testzk.Connected(t, srv.MemAddr(), opts...)
}

// result is what an acquire has returned.
type result struct {
	hold *ownership.Hold
	err  error
}

// acquiring starts an acquire that may wait.
func acquiring(ctx context.Context, l *queue.Lock, o queue.Observer) <-chan result {
	done := make(chan result, 1)
	go func() {
		hold, err := l.Acquire(ctx, o)
		done <- result{hold, err}
	}()
	return done
}

// The reply to a create has the token of the node. If the reply is lost, the token has to be read
// after the node was found.
func TestNodeWhoseTokenCannotBeReadIsNotAHold(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		l := queue.Single(connected(t, srv, "c"), "test", "/lock", queue.Exclusive, nil)
		first, err := l.Acquire(t.Context(), waits)
		require.NoError(t, err)
		require.NoError(t, first.Release())
		lost := srv.On(fault.Match{Op: fault.OpCreate}, fault.DropAfter())
		refused := srv.On(fault.Match{Op: fault.OpExists, Skip: 1}, fault.Fail(zktest.NoAuth))
		hold, err := l.Acquire(t.Context(), waits)
		require.Equal(t, 1, lost.Hits())
		require.Equal(t, 1, refused.Hits())
		require.ErrorIs(t, err, zk.ErrNoAuth)
		require.Nil(t, hold)
		settle()
		require.Equal(t, "/lock container\n", srv.Tree())
	})
}

// observed collects the nodes with which acquires wait.
type observed struct {
	mu  sync.Mutex
	all []queue.OwnNodes
}

func (o *observed) Waits(own queue.OwnNodes) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, own)
}

// The warning of a long wait names no node of the acquire itself: it has to know all of them.
func TestObserverOfAnAcquireOfSeveralQueuesIsToldAllItsNodes(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		holder, c := connected(t, srv, "holder"), connected(t, srv, "c")
		var held []*ownership.Hold
		paths := []string{"/a", "/b"}
		spec := queue.Spec{Client: c, Recipe: "test", Paths: paths, Key: "key"}
		for _, path := range paths {
			hold, err := queue.Single(holder, "test", path, queue.Exclusive, nil).Acquire(t.Context(), waits)
			require.NoError(t, err)
			held = append(held, hold)
			spec.Queues = append(spec.Queues, queue.NewQueue(c, path, queue.Exclusive, nil))
		}
		var o observed
		done := acquiring(testzk.Context(t), queue.New(spec), &o)
		settle()
		require.Len(t, o.all, 2, "it waits in both queues")
		for _, own := range o.all {
			require.Len(t, own, 2)
			for i, path := range paths {
				children, err := srv.Children(path)
				require.NoError(t, err)
				require.Len(t, children, 2)
				require.False(t, own.Contain(held[i].Path()))
				require.True(t, own.Contain(path+"/"+children[0]) || own.Contain(path+"/"+children[1]))
			}
		}
		for _, hold := range held {
			require.NoError(t, hold.Release())
		}
		last := <-done
		require.NoError(t, last.err)
		require.NoError(t, last.hold.Release())
	})
}

func TestDowngradeWithoutASessionFails(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		c := connected(t, srv, "c")
		l := queue.Single(c, "test", "/lock", queue.Exclusive, nil)
		h, err := l.Acquire(t.Context(), waits)
		require.NoError(t, err)
		require.NoError(t, c.Close())
		hold, err := l.Downgrade(t.Context(), h)
		require.ErrorIs(t, err, framework.ErrClosed)
		require.Nil(t, hold)
	})
}

// A waiter deletes its node when it enqueues again, unless the node is that of another session.
func TestNodeOfAnotherSessionIsNotDeleted(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		other, c := connected(t, srv, "other"), connected(t, srv, "c")
		first, err := queue.Single(other, "test", "/lock", queue.Exclusive, nil).Acquire(t.Context(), waits)
		require.NoError(t, err)
		done := acquiring(testzk.Context(t), queue.Single(c, "test", "/lock", queue.Exclusive, nil), waits)
		settle()
		children, err := srv.Children("/lock")
		require.NoError(t, err)
		require.Len(t, children, 2)
		replaced := "/lock/" + children[0]
		if replaced == first.Path() {
			replaced = "/lock/" + children[1]
		}
		_, err = other.Multi(t.Context(), framework.DeleteOp(replaced, -1),
			framework.CreateOp(replaced, nil, framework.Ephemeral()))
		require.NoError(t, err)
		settle()
		children, err = srv.Children("/lock")
		require.NoError(t, err)
		require.Len(t, children, 3, "the waiter has enqueued again")
		require.True(t, srv.Exists(replaced))
		require.NoError(t, first.Release())
		require.NoError(t, other.Delete(t.Context(), replaced, -1))
		last := <-done
		require.NoError(t, last.err)
		require.NoError(t, last.hold.Release())
	})
}

// brokenGate has each acquire at the front meet a lost connection, and end during the pause after it.
type brokenGate struct{}

func (brokenGate) Ready(context.Context) error { return nil }

func (brokenGate) TryFast(context.Context, *framework.Session) (*ownership.Hold, error) {
	return nil, queue.ErrQueueNeeded
}

func (brokenGate) Admit(ctx context.Context, f *queue.FrontWaiter) (*ownership.Hold, error) {
	_, _, err := f.Session().Get(ctx, "/lock")
	ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	return nil, f.PauseForRetry(ctx, err)
}

func TestContextEndsThePauseAtTheFront(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		c := connected(t, srv, "c", framework.WithRetry(retry.Never()))
		lost := srv.On(fault.Match{Op: fault.OpGetData, Path: "/lock"}, fault.DropBefore())
		l := queue.Single(c, "test", "/lock", queue.Exclusive, nil).WithGate(brokenGate{})
		hold, err := l.Acquire(t.Context(), waits)
		require.Equal(t, 1, lost.Hits())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Nil(t, hold)
	})
}
