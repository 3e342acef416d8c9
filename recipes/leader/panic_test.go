package leader_test

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/framework/metrics"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/leader"
	"github.com/docent-zk/docent/zktest"
)

// measuring returns metrics that call end, once, on the goroutine that reports an acquire.
func measuring(ended *atomic.Bool, end func()) *testzk.Calling {
	return testzk.NewCalling(metrics.LockWait, 0, func() {
		if ended.CompareAndSwap(false, true) {
			end()
		}
	})
}

// vacant leaves an election with a last leader that did not resign. So the next leader waits.
func vacant(t *testing.T, srv *zktest.Server) {
	t.Helper()
	await(t, started(t, member(t, srv, "first"), electionPath, leader.WithLockDelay(delay)))
	srv.Client("first").Refuse(true)
	expire(t, srv, "first")
	settle()
	require.Empty(t, nodes(srv))
	t.Cleanup(func() { srv.Client("first").Refuse(false) })
}

// requireVacant checks that c has no node left while its session lives, and that another candidate
// leads.
func requireVacant(t *testing.T, srv *zktest.Server) {
	t.Helper()
	settle()
	require.Empty(t, nodes(srv), "left behind")
	require.Len(t, srv.Client("c").Sessions(), 1)
	await(t, started(t, member(t, srv, "other"), electionPath, leader.WithLockDelay(delay)))
}

// measured returns a client whose metrics call end when it has acquired the leadership.
func measured(t *testing.T, srv *zktest.Server, end func()) (c *framework.Client, ended *atomic.Bool) {
	t.Helper()
	ended = new(atomic.Bool)
	return member(t, srv, "c", framework.WithMetrics(measuring(ended, end))), ended
}

func TestElectionWithAnEndedGoroutineLeavesNoNode(t *testing.T) {
	for how, end := range map[string]func(){"panic": func() { panic("end") }, "goexit": runtime.Goexit} {
		t.Run(how, func(t *testing.T) {
			virtually(t, func(t *testing.T, srv *zktest.Server) {
				vacant(t, srv)
				c, ended := measured(t, srv, end)
				e := newElection(t, c, electionPath, leader.WithLockDelay(delay))
				done := make(chan struct{})
				go func() {
					defer close(done)
					defer func() { _ = recover() }()
					_ = e.Run(context.Background(), func(context.Context, *leader.Term) error { return nil })
				}()
				testzk.Closes(t, done, "Run does not end")
				require.True(t, ended.Load())
				require.Nil(t, e.Term())
				requireVacant(t, srv)
				ctx, stop := context.WithTimeout(context.Background(), time.Second)
				defer stop()
				err := e.Run(ctx, func(context.Context, *leader.Term) error { return nil })
				require.ErrorIs(t, err, context.DeadlineExceeded, "it has queued again, behind the other")
			})
		})
	}
}

func TestLatchWithAnEndedGoroutineLeavesNoNode(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		vacant(t, srv)
		c, ended := measured(t, srv, runtime.Goexit)
		l := started(t, c, electionPath, leader.WithLockDelay(delay))
		_, err := l.Await(testzk.Context(t))
		require.ErrorContains(t, err, "ended the goroutine")
		require.True(t, ended.Load())
		require.Nil(t, l.Term())
		requireVacant(t, srv)
		require.NoError(t, l.Close())
	})
}

// A listener that ends its goroutine gets no more changes. It delays neither other listeners nor
// Close.
func TestListenerThatEndsItsGoroutineDelaysNothing(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		l := newLatch(t, member(t, srv, "c"), electionPath)
		var calls atomic.Int32
		l.Listen(func(leader.Change) { calls.Add(1); runtime.Goexit() })
		var other recorder
		l.Listen(other.add)
		require.NoError(t, l.Start(context.Background()))
		for n := range 3 {
			term := await(t, l)
			require.NoError(t, term.Resign(), fmt.Sprint(n))
			settle()
		}
		await(t, l)
		begun := time.Now()
		require.NoError(t, l.Close())
		require.Less(t, time.Since(begun), time.Second)
		require.Equal(t, "+-+-+-+-", other.history())
		require.EqualValues(t, 1, calls.Load())
		require.Empty(t, nodes(srv))
	})
}
