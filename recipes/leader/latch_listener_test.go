package leader_test

import (
	"context"
	"strconv"
	"strings"
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
		require.Equal(t, "+-+", e.history())
		require.Same(t, changes[0].Term, changes[1].Term)
		require.ErrorIs(t, changes[1].Err, recipes.ErrNotHeld)
		require.NotSame(t, changes[0].Term, changes[2].Term)
		require.Empty(t, nodes(srv))
	})
}

// Curator: testCallbackNotifyLeader.
func TestListenersGetTheEndOnCloseWithNotifyLeader(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		all, recorders := make([]*leader.Latch, 10), make([]*recorder, 10)
		for i := range all {
			mode := leader.NotifyLeader
			if i < 3 {
				mode = leader.Silent
			}
			all[i], recorders[i] = listened(t, member(t, srv, strconv.Itoa(i)), leader.WithCloseMode(mode))
			settle()
		}
		var history []string
		for i, l := range all {
			await(t, l)
			require.NoError(t, l.Close())
			history = append(history, recorders[i].history())
		}
		settle()
		require.Equal(t, "+ + + +- +- +- +- +- +- +-", strings.Join(history, " "), "before Close returns")
	})
}

// Curator: testCallbackDontNotify.
func TestListenersGetNothingFromASilentClose(t *testing.T) {
	close, silent, notify := (*leader.Latch).Close,
		func(l *leader.Latch) error { return l.CloseWith(leader.Silent) },
		func(l *leader.Latch) error { return l.CloseWith(leader.NotifyLeader) }
	for _, test := range []struct {
		set     leader.CloseMode
		end     func(*leader.Latch) error
		history string // history of a leader
	}{
		{leader.Silent, close, "+"},
		{leader.Silent, silent, "+"},
		{leader.Silent, notify, "+-"},
		{leader.NotifyLeader, close, "+-"},
		{leader.NotifyLeader, silent, "+"},
		{leader.NotifyLeader, notify, "+-"},
	} {
		virtually(t, func(t *testing.T, srv *zktest.Server) {
			l, e := listened(t, member(t, srv, "leader"), leader.WithCloseMode(test.set))
			settle()
			follower, f := listened(t, member(t, srv, "follower"), leader.WithCloseMode(test.set))
			settle()
			require.NoError(t, test.end(follower))
			require.NoError(t, test.end(l))
			outage()
			require.Equal(t, test.history, e.history(), "%+v", test)
			require.Empty(t, f.history(), "%+v", test)
		})
	}
}

func TestInvalidCloseModesAreRefused(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		c := member(t, srv, "c")
		_, err := leader.NewLatch(c, electionPath, leader.WithCloseMode(7))
		require.ErrorContains(t, err, "CloseMode(7)")
		l := started(t, c, electionPath)
		term := await(t, l)
		require.ErrorContains(t, l.CloseWith(-1), "CloseMode(-1)")
		require.NoError(t, term.Err(), "the latch does not end")
	})
}

func TestBlockedListenerDelaysOnlyCloseByASecond(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		l, e := newLatch(t, member(t, srv, "c"), electionPath, leader.WithCloseMode(leader.NotifyLeader)), &recorder{}
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
		l.Listen(nil)()
		settle()
		require.Empty(t, e.history())
		expire(t, srv, "c")
		time.Sleep(patience)
		require.Equal(t, "-+", e.history())
		require.Same(t, term, e.changes()[0].Term)
		require.NoError(t, l.Close())
		l.Listen(e.add)()
		require.Equal(t, "-+", e.history())
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
