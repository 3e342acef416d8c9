package leader_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/leader"
	"github.com/docent-zk/docent/zktest"
)

// once is an option of elections that lead once.
func once() leader.Option { return leader.WithRequeue(func(error) bool { return false }) }

var errFailed = errors.New("failed")

// Curator: testInterruptLeadership, testInterruption.
func TestInterruptedLeaderLeadsUntilItHasReturned(t *testing.T) {
	t.Parallel()
	path := testzk.Path(t)
	c := own(t)
	interrupted, work := make(chan error, 1), make(chan struct{})
	finish := sync.OnceFunc(func() { close(work) })
	defer finish() // a test that fails must not wait for lead
	first := standWith(t, newElection(t, c, path), func(ctx context.Context, _ *leader.Term) error {
		<-ctx.Done()
		interrupted <- context.Cause(ctx)
		<-work
		return nil
	})
	term := first.leads(t)
	second := stand(t, own(t), path)
	queued(t, c, path, 2)
	require.False(t, second.Interrupt(), "a former leader does not lead")
	require.True(t, first.Interrupt())
	require.ErrorIs(t, <-interrupted, leader.ErrInterrupted)
	require.NoError(t, term.Err())
	require.Same(t, term, first.Term())
	require.Nil(t, second.Term())
	finish()
	require.Greater(t, second.leads(t).Token(), term.Token())
	require.ErrorIs(t, term.Err(), recipes.ErrNotHeld)
	queued(t, c, path, 2)
	second.stop()
	first.leads(t)
}

// Curator: testInterruptLeadershipWithRequeue, testAutoRequeue.
func TestInterruptEndsTheCurrentTermOnly(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		e := newElection(t, member(t, srv, "c"), electionPath)
		require.False(t, e.Interrupt(), "it is not a candidate")
		c := standWith(t, e, func(ctx context.Context, _ *leader.Term) error {
			<-ctx.Done()
			return context.Cause(ctx)
		})
		begun := time.Now()
		for range 10 {
			term := c.leads(t)
			require.True(t, e.Interrupt())
			e.Interrupt()
			<-term.Done()
			require.False(t, e.Interrupt() && e.Term() == term)
		}
		c.leads(t)
		require.Less(t, time.Since(begun), time.Second, "there is no pause after an interrupt")
	})
}

// Curator: testRotatingLeadership.
func TestCandidatesThatReturnLeadInTurn(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		const members, rounds = 5, 3
		turns := make(chan int, 1000)
		for i := range members {
			e := newElection(t, member(t, srv, strconv.Itoa(i)), electionPath)
			standWith(t, e, func(context.Context, *leader.Term) error {
				turns <- i
				settle() // the other candidates queue
				return nil
			})
		}
		queued(t, member(t, srv, "observer"), electionPath, members)
		for range rounds {
			seen := map[int]bool{}
			for range members {
				seen[<-turns] = true
			}
			require.Len(t, seen, members)
		}
	})
}

// Curator: LeaderSelectorWithExecutor.test.
func TestElectionWithoutRequeueReturnsTheErrorOfLead(t *testing.T) {
	t.Parallel()
	for _, result := range []error{nil, errFailed} {
		path, c := testzk.Path(t), own(t)
		var asked []error
		e := newElection(t, c, path, leader.WithRequeue(func(err error) bool {
			asked = append(asked, err)
			return false
		}))
		for range 2 { // Run may be called again
			calls := 0
			err := e.Run(testzk.Context(t), func(context.Context, *leader.Term) error { calls++; return result })
			require.Equal(t, result, err)
			require.Equal(t, 1, calls)
		}
		require.Equal(t, []error{result, result}, asked)
		testzk.Empty(t, path)
	}
}

func TestElectionRunsOnceAtATime(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	lead := func(context.Context, *leader.Term) error { return errFailed }
	path := testzk.Path(t)
	other := stand(t, own(t), path)
	other.leads(t)
	c := stand(t, own(t), path)
	queued(t, own(t), path, 2)
	require.ErrorIs(t, c.Run(ctx, lead), leader.ErrRunning)
	other.stop()
	c.leads(t)
	require.ErrorIs(t, c.Run(ctx, lead), leader.ErrRunning)
	c.stop()
	require.ErrorIs(t, c.returns(t), context.Canceled)
	require.ErrorContains(t, c.Run(ctx, nil), "nil function")
	var noContext context.Context
	require.ErrorIs(t, c.Run(noContext, lead), framework.ErrNilContext)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	require.ErrorIs(t, c.Run(ended, lead), context.Canceled)
	standWith(t, c.Election, func(ctx context.Context, _ *leader.Term) error { <-ctx.Done(); return nil }).leads(t)
}

// Curator: testClosing.
func TestCandidateThatStopsWaitingDoesNotAffectTheLeader(t *testing.T) {
	t.Parallel()
	path, c := testzk.Path(t), own(t)
	first := stand(t, c, path)
	term := first.leads(t)
	second := stand(t, own(t), path)
	queued(t, c, path, 2)
	second.stop()
	require.ErrorIs(t, second.returns(t), context.Canceled)
	queued(t, c, path, 1)
	require.Same(t, term, first.Term())
	first.stop()
	require.ErrorIs(t, first.returns(t), context.Canceled)
	require.ErrorIs(t, term.Err(), recipes.ErrNotHeld)
	require.Nil(t, first.Term())
	testzk.Empty(t, path)
}

func TestRunReturnsTheErrorOfLeadWhenItsContextEnds(t *testing.T) {
	t.Parallel()
	stop := errors.New("stop")
	both := errors.Join(context.Canceled, errFailed)
	for result, returned := range map[error]bool{
		nil: false, context.Canceled: false, stop: true, errFailed: true, both: true,
	} {
		ctx, cancel := context.WithCancelCause(context.Background())
		err := newElection(t, own(t), testzk.Path(t), once()).Run(ctx, func(context.Context, *leader.Term) error {
			cancel(stop)
			return result
		})
		require.ErrorIs(t, err, context.Canceled)
		if returned {
			require.ErrorIs(t, err, result)
		}
	}
}

// A resignation deletes the node at once. While lead still runs, it is not called again.
func TestResignInLeadElectsTheNextCandidateAtOnce(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		work := make(chan struct{})
		e := newElection(t, member(t, srv, "first"), electionPath)
		first := standWith(t, e, func(ctx context.Context, term *leader.Term) error {
			_ = term.Resign()
			require.ErrorIs(t, context.Cause(ctx), recipes.ErrNotHeld)
			<-work
			return nil
		})
		first.leads(t)
		second := stand(t, member(t, srv, "second"), electionPath)
		second.leads(t)
		second.stop()
		outage()
		require.Empty(t, first.terms)
		require.Empty(t, nodes(srv), "it is no candidate meanwhile")
		close(work)
		first.leads(t)
	})
}

func TestPanicInLeadReachesTheCallerAndLeavesNoNode(t *testing.T) {
	t.Parallel()
	path, c := testzk.Path(t), own(t)
	e := newElection(t, c, path)
	var term *leader.Term
	value := &struct{ string }{"a value of its own"}
	func() {
		defer func() { require.Same(t, value, recover()) }()
		_ = e.Run(context.Background(), func(_ context.Context, t *leader.Term) error {
			term = t
			panic(value)
		})
	}()
	require.ErrorIs(t, term.Err(), recipes.ErrNotHeld)
	require.Nil(t, e.Term())
	require.Empty(t, queued(t, c, path, 0))
	standWith(t, e, func(ctx context.Context, _ *leader.Term) error { <-ctx.Done(); return nil }).leads(t)
}

func TestLeadThatEndsItsGoroutineResigns(t *testing.T) {
	t.Parallel()
	path, c := testzk.Path(t), own(t)
	e := newElection(t, c, path)
	ended, returned := make(chan struct{}), false
	go func() {
		defer close(ended)
		_ = e.Run(context.Background(), func(context.Context, *leader.Term) error { runtime.Goexit(); return nil })
		returned = true
	}()
	testzk.Closes(t, ended, "the goroutine does not end")
	require.False(t, returned)
	queued(t, c, path, 0)
	standWith(t, e, func(ctx context.Context, _ *leader.Term) error { <-ctx.Done(); return nil }).leads(t)
}

func TestPausesGrowWhileLeadFailsUpToTenSeconds(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		const failures = 70
		calls, ended := 0, time.Time{}
		before := make(chan time.Duration, failures+2)
		e := newElection(t, member(t, srv, "c"), electionPath)
		c := standWith(t, e, func(ctx context.Context, _ *leader.Term) error {
			if calls++; calls > 1 {
				before <- time.Since(ended).Truncate(100 * time.Millisecond)
			}
			defer func() { ended = time.Now() }()
			switch calls {
			case failures, failures + 2:
				return nil
			case failures + 3:
				<-ctx.Done()
			}
			return errFailed
		})
		for range failures + 3 {
			select {
			case <-c.terms:
			case <-c.done:
				require.FailNow(t, "Run has returned", "%v", c.err)
			}
		}
		for i, want := 0, 100*time.Millisecond; i < failures-1; i, want = i+1, min(2*want, 10*time.Second) {
			require.Equal(t, want, <-before, "pause %d", i)
		}
		for _, want := range []time.Duration{0, 100 * time.Millisecond, 0} {
			require.Equal(t, want, <-before, "from the beginning after a success")
		}
	})
}

// An occasional failure does not count as one in a row.
func TestPauseAfterALongTermIsTheShortest(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		var ended time.Time
		pauses := make(chan time.Duration, 10)
		e := newElection(t, member(t, srv, "c"), electionPath)
		standWith(t, e, func(ctx context.Context, _ *leader.Term) error {
			if !ended.IsZero() {
				pauses <- time.Since(ended).Truncate(100 * time.Millisecond)
			}
			select {
			case <-time.After(2 * time.Minute):
			case <-ctx.Done():
			}
			ended = time.Now()
			return errFailed
		})
		for range 5 {
			require.Equal(t, firstFailure, <-pauses)
		}
	})
}

// A function that returns the cause of its context, as it should, has not failed.
func TestLogTellsAnEndWithTheTermFromAFailure(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, c *candidacy, srv *zktest.Server){
		"interrupted": func(t *testing.T, c *candidacy, _ *zktest.Server) { require.True(t, c.Interrupt()) },
		"resigned":    func(t *testing.T, c *candidacy, _ *zktest.Server) { require.NoError(t, c.Term().Resign()) },
		"suspended":   func(_ *testing.T, _ *candidacy, srv *zktest.Server) { srv.Client("c").Drop() },
		"expired":     func(t *testing.T, _ *candidacy, srv *zktest.Server) { expire(t, srv, "c") },
	} {
		for returned, test := range map[string]struct {
			of      func(ctx context.Context) error
			message string
		}{
			"the cause":        {context.Cause, "leader function ended with its term: enqueueing again"},
			"the cause, added": {causeAdded, "leader function ended with its term: enqueueing again"},
			"ctx.Err":          {context.Context.Err, "leader function ended with its term: enqueueing again"},
			"another error":    {failedLate, "leader function failed after its term: enqueueing again"},
		} {
			if name == "resigned" && returned == "another error" {
				continue // a function that resigns may go on, and fail for a reason of its own
			}
			t.Run(name+", "+returned, func(t *testing.T) {
				virtually(t, func(t *testing.T, srv *zktest.Server) {
					core, logs := observer.New(zap.InfoLevel)
					client := member(t, srv, "c",
						framework.WithLogger(zap.New(core)), framework.WithLossPolicy(framework.Strict))
					e := newElection(t, client, electionPath)
					c := standWith(t, e, func(ctx context.Context, _ *leader.Term) error {
						<-ctx.Done()
						return test.of(ctx)
					})
					c.leads(t)
					end(t, c, srv)
					settle()
					c.leads(t)
					entries := logs.FilterMessageSnippet("leader function").All()
					require.Len(t, entries, 1)
					require.Equal(t, test.message, entries[0].Message)
					require.Equal(t, zap.InfoLevel, entries[0].Level)
				})
			})
		}
	}
}

func causeAdded(ctx context.Context) error { return fmt.Errorf("step 3: %w", context.Cause(ctx)) }
func failedLate(context.Context) error     { return errFailed }

func TestErrorsOfLeadAreLoggedUnlessRunReturnsThem(t *testing.T) {
	for name, test := range map[string]struct {
		opts   []leader.Option
		end    func(t *testing.T, e *leader.Election, srv *zktest.Server) // makes lead return
		logged int
	}{
		"failure":            {nil, nil, 1},
		"returned":           {[]leader.Option{once()}, nil, 0},
		"after an interrupt": {nil, func(_ *testing.T, e *leader.Election, _ *zktest.Server) { e.Interrupt() }, 1},
		"after a loss": {
			nil, func(t *testing.T, _ *leader.Election, srv *zktest.Server) { expire(t, srv, "c") }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, func(t *testing.T, srv *zktest.Server) {
				core, logs := observer.New(zap.InfoLevel)
				client := member(t, srv, "c", framework.WithLogger(zap.New(core)))
				e := newElection(t, client, electionPath, test.opts...)
				calls := 0
				c := standWith(t, e, func(ctx context.Context, _ *leader.Term) error {
					if calls++; calls > 1 || test.end != nil {
						<-ctx.Done()
					}
					if calls == 1 {
						return errFailed
					}
					return context.Cause(ctx)
				})
				c.leads(t)
				if test.end != nil {
					test.end(t, e, srv)
				}
				outage()
				if test.opts == nil {
					c.leads(t)
					require.True(t, e.Interrupt())
					c.leads(t)
				}
				c.stop()
				<-c.done
				found := 0
				for _, entry := range logs.All() {
					if entry.ContextMap()["error"] == errFailed.Error() {
						found++
					}
				}
				require.Equal(t, test.logged, found, "%v", logs.All())
			})
		})
	}
}

func TestLeadThatOutlastsItsTermIsLoggedAndNotCalledAgain(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		core, logs := observer.New(zap.WarnLevel)
		work := make(chan struct{})
		first := standWith(t, newElection(t, member(t, srv, "first", framework.WithLogger(zap.New(core)),
			framework.WithWaitWarning(10*time.Second)), electionPath), func(context.Context, *leader.Term) error {
			<-work
			return nil
		})
		first.leads(t)
		second := stand(t, member(t, srv, "second"), electionPath)
		time.Sleep(time.Minute)
		warnings := func() int { return logs.FilterMessageSnippet("still running").Len() }
		require.Zero(t, warnings(), "its term has not ended")
		expire(t, srv, "first")
		second.leads(t)
		time.Sleep(35 * time.Second)
		require.Equal(t, 3, warnings())
		cause := logs.FilterMessageSnippet("still running").All()[0].ContextMap()["cause"]
		require.Contains(t, cause, framework.ErrSessionLost.Error())
		require.Empty(t, first.terms)
		require.Len(t, nodes(srv), 1, "it is not a candidate")
		close(work)
		time.Sleep(time.Minute)
		require.Equal(t, 3, warnings())
		second.stop()
		first.leads(t)
	})
}

func TestSlowResignationIsNotLogged(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		core, logs := observer.New(zap.WarnLevel)
		client := member(t, srv, "c",
			framework.WithLogger(zap.New(core)), framework.WithWaitWarning(time.Second))
		c := stand(t, client, electionPath)
		c.leads(t)
		srv.Client("c").Cut()
		begun := time.Now()
		c.stop()
		require.ErrorIs(t, c.returns(t), context.Canceled)
		require.Greater(t, time.Since(begun), 2*time.Second)
		require.Zero(t, logs.FilterMessageSnippet("still running").Len())
	})
}

func TestWaitWarningOfZeroDisablesTheWarning(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		core, logs := observer.New(zap.WarnLevel)
		client := member(t, srv, "c", framework.WithLogger(zap.New(core)), framework.WithWaitWarning(0))
		c := standWith(t, newElection(t, client, electionPath),
			func(context.Context, *leader.Term) error {
				time.Sleep(10 * time.Minute)
				return nil
			})
		c.leads(t)
		require.True(t, c.Interrupt())
		c.stop()
		<-c.done
		require.Zero(t, logs.FilterMessageSnippet("still running").Len())
	})
}

func TestRunReturnsPermanentErrors(t *testing.T) {
	t.Parallel()
	ctx := testzk.Context(t)
	lead := func(context.Context, *leader.Term) error { t.Error("lead is called"); return nil }
	path := testzk.Path(t)
	_, err := own(t).Create(ctx, path, nil, framework.Parents(), framework.ACL(zk.WorldACL(zk.PermRead)...))
	require.NoError(t, err)
	require.ErrorIs(t, newElection(t, own(t), path).Run(ctx, lead), zk.ErrNoAuth)
	c := own(t)
	e := newElection(t, c, testzk.Path(t))
	require.NoError(t, c.Close())
	require.ErrorIs(t, e.Run(ctx, lead), framework.ErrClosed)
	big := string(make([]byte, 2<<20))
	require.ErrorIs(t, newElection(t, own(t), testzk.Path(t), leader.WithID(big)).Run(ctx, lead), framework.ErrTooLarge)
}

// Otherwise it would wait behind its own node until its session ends.
func TestRunFailsIfTheServersRefuseToDeleteItsNode(t *testing.T) {
	t.Parallel()
	path := testzk.Path(t)
	_, err := own(t).Create(testzk.Context(t), path, nil, framework.Parents(),
		framework.ACL(zk.WorldACL(zk.PermCreate|zk.PermRead)...))
	require.NoError(t, err)
	e := standWith(t, newElection(t, own(t), path), func(context.Context, *leader.Term) error { return nil })
	e.leads(t)
	require.ErrorIs(t, e.returns(t), zk.ErrNoAuth)
	require.Empty(t, e.terms)
}

// Run ends while it leads, waits, looks for servers or pauses.
func TestRunEndsSoonWithItsContextOrClient(t *testing.T) {
	for name, test := range map[string]struct {
		before  func(t *testing.T, srv *zktest.Server)
		lead    func(ctx context.Context, _ *leader.Term) error
		patient time.Duration
	}{
		"leading": {
			func(*testing.T, *zktest.Server) {},
			func(ctx context.Context, _ *leader.Term) error { <-ctx.Done(); return nil },
			100 * time.Millisecond},
		"waiting": {func(t *testing.T, srv *zktest.Server) {
			await(t, started(t, member(t, srv, "other"), electionPath+"x"))
		}, nil, 0},
		"no server": {func(_ *testing.T, srv *zktest.Server) { srv.Stop() }, nil, time.Second},
		"silence":   {func(_ *testing.T, srv *zktest.Server) { srv.Client("c").Cut() }, nil, time.Second},
		"pausing": {
			func(*testing.T, *zktest.Server) {},
			func(context.Context, *leader.Term) error { return errFailed },
			100 * time.Millisecond},
	} {
		for ending, cause := range map[string]error{"context": context.Canceled, "client": framework.ErrClosed} {
			t.Run(name+"/"+ending, func(t *testing.T) {
				virtually(t, func(t *testing.T, srv *zktest.Server) {
					lead := test.lead
					if lead == nil {
						stand(t, member(t, srv, "other"), electionPath).leads(t)
						lead = func(context.Context, *leader.Term) error { return nil }
					}
					test.before(t, srv)
					c := member(t, srv, "c")
					e := standWith(t, newElection(t, c, electionPath), lead)
					time.Sleep(10 * time.Second)
					begun := time.Now()
					var closing sync.WaitGroup
					defer closing.Wait() // before the test's cleanup, which closes the client again
					if ending == "context" {
						e.stop()
					} else {
						closing.Go(func() { _ = c.Close() })
					}
					err := e.returns(t)
					took := time.Since(begun)
					require.ErrorIs(t, err, cause)
					require.LessOrEqual(t, took, max(test.patient, 100*time.Millisecond))
				})
			})
		}
	}
}

// A call of Resign on another goroutine ends the context of lead. That is no failure of lead.
func TestLeadThatReturnsAfterAResignationHasNotFailed(t *testing.T) {
	reasons := map[string]func(context.Context) error{"error": context.Context.Err, "cause": context.Cause}
	for name, reason := range reasons {
		virtually(t, func(t *testing.T, srv *zktest.Server) {
			e := newElection(t, member(t, srv, "c"), electionPath)
			c := standWith(t, e, func(ctx context.Context, _ *leader.Term) error {
				<-ctx.Done()
				return reason(ctx)
			})
			term := c.leads(t)
			for range 5 {
				begun := time.Now()
				require.NoError(t, term.Resign())
				term = c.leads(t)
				require.Less(t, time.Since(begun), firstFailure, name)
			}
		})
	}
}

// firstFailure is the pause after the first failure of lead.
const firstFailure = 100 * time.Millisecond
