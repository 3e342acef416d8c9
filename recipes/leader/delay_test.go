package leader_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/leader"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
)

const delay = 10 * time.Second

// succession has a leader, and a latch that is to follow it, both with a lock delay.
func succession(t *testing.T, test func(t *testing.T, srv *zktest.Server, first *leader.Latch, term *leader.Term, next *leader.Latch)) {
	t.Helper()
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		first := started(t, member(t, srv, "first"), "/leader", leader.WithLockDelay(delay))
		term := await(t, first)
		next := started(t, member(t, srv, "next"), "/leader", leader.WithLockDelay(delay))
		time.Sleep(time.Second)
		test(t, srv, first, term, next)
	})
}

// takes is how long it takes next to lead.
func takes(t *testing.T, next *leader.Latch) time.Duration {
	t.Helper()
	begun := time.Now()
	_, err := next.Await(t.Context())
	require.NoError(t, err)
	return time.Since(begun)
}

func TestNobodyWaitsForALeaderThatResigned(t *testing.T) {
	for name, resign := range map[string]func(*leader.Latch, *leader.Term) error{
		"resigned": func(_ *leader.Latch, term *leader.Term) error { return term.Resign() },
		"closed":   func(l *leader.Latch, _ *leader.Term) error { return l.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			succession(t, func(t *testing.T, _ *zktest.Server, first *leader.Latch, term *leader.Term, next *leader.Latch) {
				require.NoError(t, resign(first, term))
				require.Less(t, takes(t, next), time.Second)
			})
		})
	}
}

func TestNewLeaderWaitsAfterOneThatVanished(t *testing.T) {
	for name, vanish := range map[string]func(*testing.T, *zktest.Server, *leader.Term){
		"session over": func(t *testing.T, srv *zktest.Server, _ *leader.Term) { expire(t, srv, "first") },
		"node deleted": func(_ *testing.T, srv *zktest.Server, term *leader.Term) { _ = srv.Delete(term.Path()) },
	} {
		t.Run(name, func(t *testing.T) {
			succession(t, func(t *testing.T, srv *zktest.Server, first *leader.Latch, term *leader.Term, next *leader.Latch) {
				vanish(t, srv, term)
				took := takes(t, next)
				require.GreaterOrEqual(t, took, delay)
				require.Less(t, took, delay+time.Second)
				require.NoError(t, next.Term().Resign())
				require.Less(t, takes(t, first), time.Second, "the one before it is long over")
			})
		})
	}
}

func TestWaitAfterALeaderThatVanishedIsLogged(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		core, logs := observer.New(zap.InfoLevel)
		term := await(t, started(t, member(t, srv, "first"), "/leader", leader.WithLockDelay(delay)))
		expire(t, srv, "first")
		await(t, started(t, member(t, srv, "next", framework.WithLogger(zap.New(core))), "/leader", leader.WithLockDelay(delay)))
		entry := logs.FilterMessageSnippet("vanished").All()[0]
		require.Equal(t, fmt.Sprintf("%#x", term.Token()), entry.ContextMap()["last"])
		require.Equal(t, "docent.latch", entry.LoggerName)
	})
}

// Whoever vanishes while it waits to lead has not led.
func TestNobodyWaitsForACandidateThatVanished(t *testing.T) {
	succession(t, func(t *testing.T, srv *zktest.Server, _ *leader.Latch, term *leader.Term, next *leader.Latch) {
		third := started(t, member(t, srv, "third"), "/leader", leader.WithLockDelay(delay))
		time.Sleep(time.Second)
		expire(t, srv, "next")
		srv.Client("next").Refuse(true)
		require.NoError(t, term.Resign())
		require.Less(t, takes(t, third), time.Second)
		require.Nil(t, next.Term())
	})
}

// The time counts anew for each who comes to the front, as long as nobody has led since.
func TestWhoWaitsToLeadAndVanishesKeepsNobodyFromWaiting(t *testing.T) {
	succession(t, func(t *testing.T, srv *zktest.Server, _ *leader.Latch, _ *leader.Term, next *leader.Latch) {
		third := started(t, member(t, srv, "third"), "/leader", leader.WithLockDelay(delay))
		time.Sleep(time.Second)
		srv.Client("first").Refuse(true)
		expire(t, srv, "first")
		time.Sleep(delay / 2)
		require.Nil(t, next.Term())
		srv.Client("next").Refuse(true)
		expire(t, srv, "next")
		require.GreaterOrEqual(t, takes(t, third), delay)
	})
}

func TestElectionWaitsLikeALatch(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		first := stand(t, member(t, srv, "first"), "/leader", leader.WithLockDelay(delay))
		first.leads(t)
		next := stand(t, member(t, srv, "next"), "/leader", leader.WithLockDelay(delay))
		time.Sleep(time.Second)
		begun := time.Now()
		require.True(t, first.Interrupt())
		next.leads(t)
		require.Less(t, time.Since(begun), time.Second)
		begun = time.Now()
		expire(t, srv, "next")
		first.leads(t)
		require.GreaterOrEqual(t, time.Since(begun), delay)
	})
}

// behind has a candidate, next, that comes to the front by an event, reads the ledger on a server
// that does not know yet what the event told, and finds there that the last leader has resigned.
// But then third has led, and has vanished.
func behind(t *testing.T, test func(t *testing.T, srv *zktest.Server, vanished time.Time, next *candidacy)) {
	t.Helper()
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		f := srv.Follower(500 * time.Millisecond)
		var away atomic.Bool
		moving := testzk.Connected(t, srv.MemAddr()+","+f.MemAddr(), framework.WithSessionTimeout(20*time.Second),
			framework.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
				if (addr == f.MemAddr()) != away.Load() {
					return nil, errors.New("the test refuses this server")
				}
				return srv.Client("next").DialContext(ctx, network, addr)
			}))
		one := member(t, srv, "one")
		first := stand(t, one, "/leader", leader.WithLockDelay(delay))
		first.leads(t)
		first.stop()
		require.ErrorIs(t, first.returns(t), context.Canceled) // it has resigned
		lock, err := mutex.New(one, "/leader")
		require.NoError(t, err)
		hold, err := lock.Acquire(t.Context()) // keeps the candidates from leading
		require.NoError(t, err)
		third := stand(t, member(t, srv, "third"), "/leader", leader.WithLockDelay(delay))
		time.Sleep(time.Second)
		next := stand(t, moving, "/leader", leader.WithLockDelay(delay))
		time.Sleep(time.Second)
		read := srv.On(zktest.Match{Client: "next", Op: zktest.OpGetData, Path: "/leader-term"}, zktest.DropBefore())
		srv.On(zktest.Match{Client: "third", Op: zktest.OpMulti}, zktest.Delay(time.Second))
		away.Store(true)
		require.NoError(t, hold.Release())
		third.leads(t)
		srv.Client("third").Refuse(true)
		expire(t, srv, "third")
		vanished := time.Now()
		require.NoError(t, read.WaitHits(t.Context(), 1))
		test(t, srv, vanished, next)
	})
}

func TestNewLeaderWaitsThoughAServerThatIsBehindSaysThatTheLastOneResigned(t *testing.T) {
	behind(t, func(t *testing.T, _ *zktest.Server, vanished time.Time, next *candidacy) {
		next.leads(t)
		require.GreaterOrEqual(t, time.Since(vanished), delay)
	})
}

// The transaction that is refused is answered to nobody, and the ledger is read again.
func TestNewLeaderWaitsWhereTheRefusalOfAnOldNoteIsLost(t *testing.T) {
	behind(t, func(t *testing.T, srv *zktest.Server, vanished time.Time, next *candidacy) {
		lost := srv.On(zktest.Match{Client: "next", Op: zktest.OpMulti}, zktest.DropAfter())
		next.leads(t)
		require.Equal(t, 1, lost.Hits())
		require.GreaterOrEqual(t, time.Since(vanished), delay)
	})
}

// A candidate that has to leave while it waits leaves at once, and leaves nothing.
func TestWaitForTheDelayEndsWithTheCandidate(t *testing.T) {
	succession(t, func(t *testing.T, srv *zktest.Server, first *leader.Latch, term *leader.Term, next *leader.Latch) {
		require.NoError(t, srv.Delete(term.Path()))
		time.Sleep(time.Second)
		begun := time.Now()
		require.NoError(t, next.Close())
		require.Less(t, time.Since(begun), time.Second)
		line, err := srv.Children("/leader")
		require.NoError(t, err)
		require.Len(t, line, 1, "first stands again")
	})
}

func TestCandidateThatWaitsForTheDelayLeavesInTimeWhenTheServersAreSilent(t *testing.T) {
	succession(t, func(t *testing.T, srv *zktest.Server, _ *leader.Latch, term *leader.Term, next *leader.Latch) {
		require.NoError(t, srv.Delete(term.Path()))
		time.Sleep(time.Second)
		srv.Client("next").Cut()
		begun := time.Now()
		_ = next.Close()
		require.LessOrEqual(t, time.Since(begun), time.Second)
	})
}

// Also if the context ends because of what the candidate loses.
func TestCandidateThatIsStoppedWhenItLosesItsTurnEndsWithItsContext(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		term := await(t, started(t, member(t, srv, "first"), "/leader", leader.WithLockDelay(delay)))
		c := member(t, srv, "next")
		next := stand(t, c, "/leader", leader.WithLockDelay(delay))
		defer c.Listen(func(change framework.StateChange) {
			if change.State == framework.Lost {
				next.stop()
			}
		})()
		time.Sleep(time.Second)
		require.NoError(t, srv.Delete(term.Path()))
		time.Sleep(time.Second)
		expire(t, srv, "next")
		require.ErrorIs(t, next.returns(t), context.Canceled)
	})
}

func TestTroubleWithTheLedgerIsOutlasted(t *testing.T) {
	for _, fault := range []zktest.Action{zktest.DropBefore(), zktest.DropAfter()} {
		for _, skip := range []int{0, 1} {
			succession(t, func(t *testing.T, srv *zktest.Server, first *leader.Latch, term *leader.Term, next *leader.Latch) {
				srv.On(zktest.Match{Client: "next", Op: zktest.OpMulti, Times: 1}, fault)
				srv.On(zktest.Match{Client: "next", Op: zktest.OpGetData, Path: "/leader-term", Skip: skip, Times: 1}, fault)
				require.NoError(t, term.Resign())
				require.Less(t, takes(t, next), 5*time.Second)
				noted, err := srv.Get("/leader-term")
				require.NoError(t, err)
				require.Contains(t, string(noted), `"resigned":false`)
				require.NoError(t, next.Close())
				await(t, first)
			})
		}
	}
}

// Whoever still works when it is noted that it resigns may vanish with requests on their way that
// nobody would wait for.
func TestTermEndsBeforeItIsNotedThatItResigns(t *testing.T) {
	succession(t, func(t *testing.T, srv *zktest.Server, first *leader.Latch, term *leader.Term, next *leader.Latch) {
		noting := srv.On(zktest.Match{Client: "first", Op: zktest.OpMulti, Times: 1}, zktest.Hold())
		resigned := make(chan error, 1)
		go func() { resigned <- term.Resign() }()
		require.NoError(t, noting.Wait(t.Context()))
		require.ErrorIs(t, term.Err(), recipes.ErrNotHeld)
		closes(t, term.Done(), "it goes on")
		require.Contains(t, srv.Tree(), term.Path())
		noting.Release()
		require.NoError(t, <-resigned)
		require.Less(t, takes(t, next), time.Second)
	})
}

// Who closes a Latch while its term is being resigned does not delete the node first.
func TestNobodyWaitsForALeaderThatIsClosedWhileItResigns(t *testing.T) {
	succession(t, func(t *testing.T, srv *zktest.Server, first *leader.Latch, term *leader.Term, next *leader.Latch) {
		noting := srv.On(zktest.Match{Client: "first", Op: zktest.OpMulti, Times: 1}, zktest.DropBefore())
		srv.Client("first").Refuse(true)
		resigned := make(chan error, 1)
		go func() { resigned <- term.Resign() }()
		require.NoError(t, noting.WaitHits(t.Context(), 1))
		require.NoError(t, first.Close())
		srv.Client("first").Refuse(false)
		require.NoError(t, <-resigned)
		require.Less(t, takes(t, next), time.Second)
	})
}

// It has not led, whatever it was about to note.
func TestNobodyWaitsForACandidateThatLeftWhileItNotedItsTerm(t *testing.T) {
	succession(t, func(t *testing.T, srv *zktest.Server, first *leader.Latch, term *leader.Term, next *leader.Latch) {
		srv.On(zktest.Match{Client: "next", Op: zktest.OpMulti, Times: 1}, zktest.DropAfter())
		srv.Client("next").Refuse(true)
		require.NoError(t, term.Resign())
		time.Sleep(100 * time.Millisecond)
		noted, err := srv.Get("/leader-term")
		require.NoError(t, err)
		require.Contains(t, string(noted), `"resigned":false`)
		closed := make(chan error, 1)
		go func() { closed <- next.Close() }()
		time.Sleep(100 * time.Millisecond)
		srv.Client("next").Refuse(false)
		require.NoError(t, <-closed)
		require.Less(t, takes(t, first), time.Second)
	})
}

// The ledger belongs to the leaders: what is there instead is not written over.
func TestNodeThatIsNoLedgerIsAnError(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.Create("/leader-term", []byte("mine")))
		l := started(t, member(t, srv, "c"), "/leader", leader.WithLockDelay(delay))
		_, err := l.Await(t.Context())
		require.ErrorContains(t, err, "/leader-term")
		require.ErrorContains(t, err, `"mine"`)
		data, err := srv.Get("/leader-term")
		require.NoError(t, err)
		require.Equal(t, "mine", string(data))
		require.NoError(t, srv.Delete("/leader-term"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = l.Await(ctx)
		require.NoError(t, err, "once it is gone")
	})
}
