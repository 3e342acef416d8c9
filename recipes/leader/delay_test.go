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
	"github.com/docent-zk/docent/zktest/fault"
)

const delay = 10 * time.Second

// successionTest is a test with a leader, first, its term and its successor.
type successionTest = func(
	t *testing.T, srv *zktest.Server, first *leader.Latch, term *leader.Term, next *leader.Latch,
)

// succession runs a test with a leader and a latch that waits to succeed it. Both have a lock
// delay.
func succession(t *testing.T, test successionTest) {
	t.Helper()
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		first := started(t, member(t, srv, "first"), "/leader", leader.WithLockDelay(delay))
		term := await(t, first)
		next := started(t, member(t, srv, "next"), "/leader", leader.WithLockDelay(delay))
		time.Sleep(time.Second)
		test(t, srv, first, term, next)
	})
}

// takes returns the time until next leads.
func takes(t *testing.T, next *leader.Latch) time.Duration {
	t.Helper()
	begun := time.Now()
	_, err := next.Await(t.Context())
	require.NoError(t, err)
	return time.Since(begun)
}

func TestNewLeaderDoesNotWaitAfterAResignation(t *testing.T) {
	for name, resign := range map[string]func(*leader.Latch, *leader.Term) error{
		"resigned": func(_ *leader.Latch, term *leader.Term) error { return term.Resign() },
		"closed":   func(l *leader.Latch, _ *leader.Term) error { return l.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			succession(t, func(
				t *testing.T, _ *zktest.Server, first *leader.Latch, term *leader.Term, next *leader.Latch,
			) {
				require.NoError(t, resign(first, term))
				require.Less(t, takes(t, next), time.Second)
			})
		})
	}
}

func TestNewLeaderWaitsAfterALeaderThatDidNotResign(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *zktest.Server, *leader.Term){
		"session expired": func(t *testing.T, srv *zktest.Server, _ *leader.Term) { expire(t, srv, "first") },
		"node deleted":    func(_ *testing.T, srv *zktest.Server, term *leader.Term) { _ = srv.Delete(term.Path()) },
	} {
		t.Run(name, func(t *testing.T) {
			succession(t, func(
				t *testing.T, srv *zktest.Server, first *leader.Latch, term *leader.Term, next *leader.Latch,
			) {
				end(t, srv, term)
				took := takes(t, next)
				require.GreaterOrEqual(t, took, delay)
				require.Less(t, took, delay+time.Second)
				require.NoError(t, next.Term().Resign())
				require.Less(t, takes(t, first), time.Second, "the term before ended long ago")
			})
		})
	}
}

func TestWaitAfterALostTermIsLogged(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		core, logs := observer.New(zap.InfoLevel)
		term := await(t, started(t, member(t, srv, "first"), "/leader", leader.WithLockDelay(delay)))
		expire(t, srv, "first")
		c := member(t, srv, "next", framework.WithLogger(zap.New(core)))
		await(t, started(t, c, "/leader", leader.WithLockDelay(delay)))
		entry := logs.FilterMessageSnippet("did not resign").All()[0]
		require.Equal(t, fmt.Sprintf("%#x", term.Token()), entry.ContextMap()["last"])
		require.Equal(t, "docent.latch", entry.LoggerName)
	})
}

// A candidate that expires while it waits to lead has not led.
func TestNewLeaderDoesNotWaitForAnExpiredCandidate(t *testing.T) {
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

// The delay starts again for each candidate that comes to the front, until one of them leads.
func TestDelayStartsAgainAfterAnExpiredCandidate(t *testing.T) {
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

func TestElectionWaitsAsALatchDoes(t *testing.T) {
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

// behind runs a test with a candidate, next, that comes to the front by an event. Then next reads
// the term record on a server that does not yet know of the event. That server says that the last
// leader has resigned, but since then third has led, and its session has expired.
func behind(t *testing.T, test func(t *testing.T, srv *zktest.Server, expired time.Time, next *candidacy)) {
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
		hold, err := lock.Acquire(t.Context()) // so that no candidate leads
		require.NoError(t, err)
		third := stand(t, member(t, srv, "third"), "/leader", leader.WithLockDelay(delay))
		time.Sleep(time.Second)
		next := stand(t, moving, "/leader", leader.WithLockDelay(delay))
		time.Sleep(time.Second)
		read := srv.On(fault.Match{Client: "next", Op: fault.OpGetData, Path: "/leader-term"}, fault.DropBefore())
		srv.On(fault.Match{Client: "third", Op: fault.OpMulti}, fault.Delay(time.Second))
		away.Store(true)
		require.NoError(t, hold.Release())
		third.leads(t)
		srv.Client("third").Refuse(true)
		expire(t, srv, "third")
		expired := time.Now()
		require.NoError(t, read.WaitHits(t.Context(), 1))
		test(t, srv, expired, next)
	})
}

func TestNewLeaderWaitsAlthoughALaggingServerReportsAResignation(t *testing.T) {
	behind(t, func(t *testing.T, _ *zktest.Server, expired time.Time, next *candidacy) {
		next.leads(t)
		require.GreaterOrEqual(t, time.Since(expired), delay)
	})
}

// The reply that refuses the transaction is lost, and the term record is read again.
func TestNewLeaderWaitsAlthoughARefusalIsLost(t *testing.T) {
	behind(t, func(t *testing.T, srv *zktest.Server, expired time.Time, next *candidacy) {
		lost := srv.On(fault.Match{Client: "next", Op: fault.OpMulti}, fault.DropAfter())
		next.leads(t)
		require.Equal(t, 1, lost.Hits())
		require.GreaterOrEqual(t, time.Since(expired), delay)
	})
}

// A candidate that is stopped during the delay stops at once and leaves no node.
func TestWaitForTheDelayEndsWithTheCandidate(t *testing.T) {
	succession(t, func(t *testing.T, srv *zktest.Server, first *leader.Latch, term *leader.Term, next *leader.Latch) {
		require.NoError(t, srv.Delete(term.Path()))
		time.Sleep(time.Second)
		begun := time.Now()
		require.NoError(t, next.Close())
		require.Less(t, time.Since(begun), time.Second)
		all, err := srv.Children("/leader")
		require.NoError(t, err)
		require.Len(t, all, 1, "first is a candidate again")
	})
}

func TestCandidateClosesDuringTheDelayAlthoughServersAreSilent(t *testing.T) {
	succession(t, func(t *testing.T, srv *zktest.Server, _ *leader.Latch, term *leader.Term, next *leader.Latch) {
		require.NoError(t, srv.Delete(term.Path()))
		time.Sleep(time.Second)
		srv.Client("next").Cut()
		begun := time.Now()
		_ = next.Close()
		require.LessOrEqual(t, time.Since(begun), time.Second)
	})
}

// The same if the loss of the session causes the end of the context.
func TestCandidateStoppedBecauseOfALossEndsWithItsContext(t *testing.T) {
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

func TestCandidateRetriesRequestsOfTheTermRecord(t *testing.T) {
	for _, action := range []fault.Action{fault.DropBefore(), fault.DropAfter()} {
		for _, skip := range []int{0, 1} {
			succession(t, func(
				t *testing.T, srv *zktest.Server, first *leader.Latch, term *leader.Term, next *leader.Latch,
			) {
				srv.On(fault.Match{Client: "next", Op: fault.OpMulti, Times: 1}, action)
				read := fault.Match{
					Client: "next", Op: fault.OpGetData, Path: "/leader-term", Skip: skip, Times: 1,
				}
				srv.On(read, action)
				require.NoError(t, term.Resign())
				require.Less(t, takes(t, next), 5*time.Second)
				recorded, err := srv.Get("/leader-term")
				require.NoError(t, err)
				require.Contains(t, string(recorded), `"resigned":false`)
				require.NoError(t, next.Close())
				await(t, first)
			})
		}
	}
}

// If a leader still worked after its resignation is recorded, its session could expire with
// requests on the way. The next leader would not wait for these.
func TestTermEndsBeforeTheResignationIsRecorded(t *testing.T) {
	succession(t, func(t *testing.T, srv *zktest.Server, first *leader.Latch, term *leader.Term, next *leader.Latch) {
		recording := srv.On(fault.Match{Client: "first", Op: fault.OpMulti, Times: 1}, fault.Hold())
		resigned := make(chan error, 1)
		go func() { resigned <- term.Resign() }()
		require.NoError(t, recording.Wait(t.Context()))
		require.ErrorIs(t, term.Err(), recipes.ErrNotHeld)
		testzk.Closes(t, term.Done(), "the term does not end")
		require.Contains(t, srv.Tree(), term.Path())
		recording.Release()
		require.NoError(t, <-resigned)
		require.Less(t, takes(t, next), time.Second)
	})
}

// Close of a Latch during a resignation of its term does not delete the node first.
func TestNewLeaderDoesNotWaitAfterACloseDuringAResignation(t *testing.T) {
	succession(t, func(t *testing.T, srv *zktest.Server, first *leader.Latch, term *leader.Term, next *leader.Latch) {
		recording := srv.On(fault.Match{Client: "first", Op: fault.OpMulti, Times: 1}, fault.DropBefore())
		srv.Client("first").Refuse(true)
		resigned := make(chan error, 1)
		go func() { resigned <- term.Resign() }()
		require.NoError(t, recording.WaitHits(t.Context(), 1))
		require.NoError(t, first.Close())
		srv.Client("first").Refuse(false)
		require.NoError(t, <-resigned)
		require.Less(t, takes(t, next), time.Second)
	})
}

// A candidate that stops while it records its term has not led.
func TestNewLeaderDoesNotWaitAfterACandidateThatStopped(t *testing.T) {
	succession(t, func(t *testing.T, srv *zktest.Server, first *leader.Latch, term *leader.Term, next *leader.Latch) {
		srv.On(fault.Match{Client: "next", Op: fault.OpMulti, Times: 1}, fault.DropAfter())
		srv.Client("next").Refuse(true)
		require.NoError(t, term.Resign())
		time.Sleep(100 * time.Millisecond)
		recorded, err := srv.Get("/leader-term")
		require.NoError(t, err)
		require.Contains(t, string(recorded), `"resigned":false`)
		closed := make(chan error, 1)
		go func() { closed <- next.Close() }()
		time.Sleep(100 * time.Millisecond)
		srv.Client("next").Refuse(false)
		require.NoError(t, <-closed)
		require.Less(t, takes(t, first), time.Second)
	})
}

// Only leaders write the term record. Other data at its path is not overwritten.
func TestForeignDataOfTheTermRecordIsAnError(t *testing.T) {
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
		require.NoError(t, err, "after the foreign node is deleted")
	})
}
