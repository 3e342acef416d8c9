package leader_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/leader"
	"github.com/docent-zk/docent/zktest"
)

// Curator: testCallbackSanity.
func TestListenerThatResignsAndClosesGetsEachChangeOnce(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		l, e := newLatch(t, member(t, srv, "c"), electionPath), &recorder{}
		closed := make(chan error, 1)
		l.Listen(func(c leader.Change) {
			e.add(c)
			switch e.history() {
			case "+":
				require.NoError(t, c.Term.Resign())
			case "+-+":
				closed <- l.Close()
			}
		})
		require.NoError(t, l.Start(t.Context()))
		require.NoError(t, <-closed)
		outage()
		changes := e.changes()
		require.Equal(t, "+-+-", e.history())
		require.Same(t, changes[0].Term, changes[1].Term)
		require.ErrorIs(t, changes[1].Err, recipes.ErrNotHeld)
		require.NotSame(t, changes[0].Term, changes[2].Term)
		require.Empty(t, nodes(srv))
	})
}

// Curator: testCallbackNotifyLeader.
func TestListenersGetTheEndOfATermThatCloseEnds(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		all, recorders := make([]*leader.Latch, 5), make([]*recorder, 5)
		for i := range all {
			all[i], recorders[i] = listened(t, member(t, srv, strconv.Itoa(i)))
			settle()
		}
		for i, l := range all {
			await(t, l)
			require.NoError(t, l.Close())
			require.Equal(t, "+-", recorders[i].history(), "before Close returns")
		}
		settle()
		for _, e := range recorders {
			require.Equal(t, "+-", e.history(), "after Close")
		}
	})
}

// Curator: testCallbackDontNotify.
func TestListenersThatWereStoppedGetNothingFromClose(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		l := newLatch(t, member(t, srv, "leader"), electionPath)
		follower := newLatch(t, member(t, srv, "follower"), electionPath)
		var stopped, heard, ofFollower recorder
		stop := l.Listen(stopped.add)
		l.Listen(heard.add)
		follower.Listen(ofFollower.add)
		require.NoError(t, l.Start(t.Context()))
		await(t, l)
		require.NoError(t, follower.Start(t.Context()))
		settle()
		stop()
		require.NoError(t, follower.Close())
		require.NoError(t, l.Close())
		outage()
		require.Equal(t, "+", stopped.history())
		require.Equal(t, "+-", heard.history())
		require.Empty(t, ofFollower.history())
	})
}

func TestBlockedListenerDelaysOnlyCloseByASecond(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		l, e := newLatch(t, member(t, srv, "c"), electionPath), &recorder{}
		blocked := make(chan struct{})
		slow := &recorder{}
		l.Listen(func(c leader.Change) {
			<-blocked
			slow.add(c)
		})
		l.Listen(e.add)
		require.NoError(t, l.Start(t.Context()))
		require.NoError(t, await(t, l).Resign())
		await(t, l)
		settle()
		require.Equal(t, "+-+", e.history())
		begun := time.Now()
		require.NoError(t, l.Close())
		require.InDelta(t, time.Second, time.Since(begun), float64(500*time.Millisecond))
		require.Equal(t, "+-+-", e.history())
		require.Empty(t, slow.history())
		close(blocked)
		settle()
		require.Equal(t, e.changes(), slow.changes(), "late, but in order")
	})
}

func TestListenerThatStopsItselfGetsNoMore(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		l, e := newLatch(t, member(t, srv, "c"), electionPath), &recorder{}
		var stop func()
		stop = l.Listen(func(c leader.Change) {
			e.add(c)
			stop()
			stop()
		})
		require.NoError(t, l.Start(t.Context()))
		for range 3 {
			require.NoError(t, await(t, l).Resign())
		}
		settle()
		require.Equal(t, "+", e.history())
		begun := time.Now()
		require.NoError(t, l.Close())
		require.Less(t, time.Since(begun), time.Second, "Close does not wait for it")
	})
}

func TestListenerAddedDuringATermGetsItsEnd(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		l, e := started(t, member(t, srv, "c"), electionPath), &recorder{}
		term := await(t, l)
		settle()
		l.Listen(e.add)
		settle()
		require.Empty(t, e.history())
		expire(t, srv, "c")
		time.Sleep(patience)
		require.Equal(t, "-+", e.history())
		require.Same(t, term, e.changes()[0].Term)
		require.NoError(t, l.Close())
		l.Listen(e.add)()
		require.Equal(t, "-+-", e.history())
	})
}

// A Latch that was never started needs no Close. The virtual time of a test does not end while a
// goroutine of it runs.
func TestListenersOfALatchWithoutStartLeaveNoGoroutine(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		c := member(t, srv, "c")
		fail := func(leader.Change) { t.Error("there was no term") }
		newLatch(t, c, "/leader").Listen(fail) // Start is never called
		late := newLatch(t, c, "/leader")
		late.Listen(fail)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, late.Start(ended), context.Canceled)
		stop := late.Listen(fail)
		stop()
		require.NoError(t, c.Close())
		require.ErrorIs(t, late.Start(t.Context()), framework.ErrClosed)
	})
}
