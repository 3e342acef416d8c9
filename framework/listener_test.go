package framework_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

func TestBlockedListenerDelaysNoOtherAndMissesNoChange(t *testing.T) {
	t.Parallel()
	c, p, states := traced(t)
	blocked, began := make(chan struct{}), make(chan struct{})
	slow := &trace{}
	var once sync.Once
	c.Listen(func(change framework.StateChange) {
		once.Do(func() { close(began) })
		<-blocked
		slow.add(change)
	})
	want := []framework.State{framework.Connected}
	for range 5 {
		p.DropConnections()
		want = append(want, framework.Suspended, framework.Reconnected)
		states.await(t, want...)
	}
	closes(t, began, "the slow listener was not called")
	require.NoError(t, c.Sync(testzk.Context(t), "/"))
	require.Empty(t, slow.states())
	close(blocked)
	slow.await(t, want[1:]...)
}

func TestStoppedListenerIsNotCalledAgain(t *testing.T) {
	const listeners = 20
	c, p, states := traced(t)
	all := []framework.State{
		framework.Connected, framework.Suspended, framework.Reconnected, framework.Suspended, framework.Reconnected,
	}
	more := make(chan struct{})
	var heard []*trace
	for range listeners {
		r, stopping := &trace{}, make(chan func(), 1)
		stopping <- c.Listen(func(change framework.StateChange) {
			r.add(change)
			<-more // until more changes are queued
			stop := <-stopping
			stop()
			stop()
		})
		heard = append(heard, r)
	}
	p.DropConnections()
	states.await(t, all[:3]...)
	p.DropConnections()
	states.await(t, all...)
	close(more)
	require.NoError(t, c.Close())
	for _, r := range heard {
		require.LessOrEqual(t, len(r.states()), 1, "%v", r.states())
	}
}

func TestListenerIsCalledWithClosedBeforeCloseReturns(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client("a").DialContext))
		states := &trace{}
		c.Listen(states.add)
		id := session(t, c).ID()
		require.NoError(t, c.Close())
		require.Equal(t, []framework.State{framework.Lost, framework.Closed}, states.states())
		lost, closed := states.changes()[0], states.changes()[1]
		require.Equal(t, id, lost.Session)
		require.ErrorIs(t, lost.Cause, framework.ErrClosed)
		require.Zero(t, closed.Session)
		require.NoError(t, closed.Cause)
	})
}

func TestListenerMayCloseTheClient(t *testing.T) {
	t.Parallel()
	c, p, _ := traced(t)
	heard := &trace{}
	closed := make(chan struct{})
	c.Listen(heard.add)
	c.Listen(func(change framework.StateChange) {
		if change.State == framework.Suspended {
			within(t, "Close in a listener", func() { require.NoError(t, c.Close()) })
			close(closed)
		}
	})
	p.DropConnections()
	closes(t, closed, "Close in a listener")
	require.Equal(t, framework.Closed, c.State())
	lost := func() bool { return slices.Contains(heard.states(), framework.Lost) }
	testzk.Eventually(t, lost, "the other listener is not told of the loss") // Close waits a second for it
}

func TestListenerMayCloseTheClientAsSoonAsItIsConnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		server := srv.Client("a")
		server.Refuse(true) // until there is a listener, which gets no earlier changes
		c := testzk.Client(t, srv.MemAddr(), framework.WithDialer(server.DialContext))
		closed := make(chan struct{})
		c.Listen(func(change framework.StateChange) {
			if change.State == framework.Connected {
				_ = c.Close()
				close(closed)
			}
		})
		server.Refuse(false)
		closes(t, closed, "Close in a listener")
		require.Equal(t, framework.Closed, c.State())
		require.Empty(t, srv.Sessions())
	})
}

func TestListenerThatDoesNotReturnDelaysCloseOnlyBriefly(t *testing.T) {
	t.Parallel()
	c, _, _ := traced(t)
	forever, in := make(chan struct{}), make(chan struct{})
	left := make(chan struct{})
	c.Listen(func(change framework.StateChange) {
		if change.State == framework.Closed {
			defer close(left)
		}
		select {
		case <-in:
		default:
			close(in)
		}
		<-forever
	})
	within(t, "Close", func() { require.NoError(t, c.Close()) })
	closes(t, in, "the call of the listener")
	close(forever)
	closes(t, left, "the last call of the listener")
}

func TestListenersAreCalledOnceForEachChange(t *testing.T) {
	c, p, states := traced(t)
	var many []*trace
	for range 20 {
		r := &trace{}
		c.Listen(r.add)
		many = append(many, r)
	}
	for range 10 {
		p.DropConnections()
		time.Sleep(20 * time.Millisecond) // workload
	}
	require.NoError(t, c.Close())
	testzk.Eventually(t, func() bool { return slices.Contains(states.states(), framework.Closed) }, "no end is told")
	want := states.states()[1:]
	for _, r := range many {
		r.await(t, want...)
	}
	for i := 1; i < len(want); i++ {
		require.NotEqual(t, want[i-1], want[i], "a change to the same state")
	}
}

func TestListenWithNilAndStopTwice(t *testing.T) {
	c := refusedClient(t)
	require.Panics(t, func() { c.Listen(nil) })
	stop := c.Listen(func(framework.StateChange) {})
	stop()
	stop()
	require.Equal(t, framework.Connecting, c.State())
}
