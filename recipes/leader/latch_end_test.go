package leader_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/framework/metrics"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/leader"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

func TestLatchIsStartedOnce(t *testing.T) {
	t.Parallel()
	ctx, c := context.Background(), own(t)
	var noContext context.Context
	ended, cancel := context.WithCancel(ctx)
	cancel()
	l := newLatch(t, c, testzk.Path(t))
	_, err := l.Await(ctx)
	require.ErrorIs(t, err, leader.ErrNotStarted)
	require.Nil(t, l.Term())
	require.ErrorIs(t, l.Start(noContext), framework.ErrNilContext)
	require.ErrorIs(t, l.Start(ended), context.Canceled)
	require.NoError(t, l.Start(ctx), "refused calls do not start it")
	require.ErrorIs(t, l.Start(ctx), leader.ErrRunning)
	await(t, l)
	_, err = l.Await(ended)
	require.ErrorIs(t, err, context.Canceled, "even if it leads")
	_, err = l.Await(noContext)
	require.ErrorIs(t, err, framework.ErrNilContext)
	require.NoError(t, l.Close())
	require.NoError(t, l.Close())
	require.ErrorIs(t, l.Start(ctx), leader.ErrLatchClosed)
	_, err = l.Await(ctx)
	require.ErrorIs(t, err, leader.ErrLatchClosed)
	require.Nil(t, l.Term())
}

func TestLatchClosedBeforeStartCannotStart(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		l := newLatch(t, member(t, srv, "c"), electionPath)
		l.Listen(func(leader.Change) {}) // its goroutine must end with Close, or the bubble does not
		require.NoError(t, l.Close())
		l.Listen(func(leader.Change) {})
		require.ErrorIs(t, l.Start(context.Background()), leader.ErrLatchClosed)
		_, err := l.Await(context.Background())
		require.ErrorIs(t, err, leader.ErrLatchClosed)
	})
}

func TestZeroValuesReturnErrors(t *testing.T) {
	ctx := context.Background()
	for _, l := range []*leader.Latch{{}} {
		_, err := l.Await(ctx)
		require.ErrorIs(t, err, framework.ErrZeroValue)
		require.ErrorIs(t, l.Start(ctx), framework.ErrZeroValue)
		require.ErrorIs(t, l.Close(), framework.ErrZeroValue)
		require.Nil(t, l.Term())
		l.Listen(func(leader.Change) {})()
	}
	for _, e := range []*leader.Election{{}} {
		require.ErrorIs(t, e.Run(ctx, func(context.Context, *leader.Term) error { return nil }), framework.ErrZeroValue)
		require.Nil(t, e.Term())
		require.False(t, e.Interrupt())
	}
	for _, term := range []*leader.Term{{}} {
		require.ErrorIs(t, term.Err(), recipes.ErrNotHeld)
		require.ErrorIs(t, term.Resign(), recipes.ErrNotHeld)
		require.ErrorIs(t, context.Cause(term.Context(ctx)), recipes.ErrNotHeld)
		require.Zero(t, term.Token())
		require.Empty(t, term.Path())
		require.True(t, term.ValidUntil().IsZero())
		require.Nil(t, term.Revoked())
		testzk.Closes(t, term.Done(), "the term never began")
		_, err := term.Guard(ctx)
		require.ErrorIs(t, err, recipes.ErrNotHeld)
	}
	for _, c := range []*framework.Client{nil, {}} {
		_, err := leader.New(c, "/a")
		require.Equal(t, bridge.Of(c).Validate(), errors.Unwrap(err))
		require.Error(t, err)
		_, err = leader.NewLatch(c, "/a")
		require.Equal(t, bridge.Of(c).Validate(), errors.Unwrap(err))
		require.Error(t, err)
	}
}

// A Latch ends in the same ways while it leads and while it waits.
func TestLatchEndsWithItsContextOrClient(t *testing.T) {
	for _, leads := range []bool{true, false} {
		for name, test := range map[string]struct {
			end   func(stop context.CancelFunc, c *framework.Client)
			cause error // Await returns it too
			ended error // error of the term
		}{
			"context of Start": {
				func(stop context.CancelFunc, _ *framework.Client) { stop() }, context.Canceled, recipes.ErrNotHeld},
			"client": {
				func(_ context.CancelFunc, c *framework.Client) { _ = c.Close() },
				framework.ErrClosed, framework.ErrClosed},
		} {
			t.Run(name, func(t *testing.T) {
				virtually(t, func(t *testing.T, srv *zktest.Server) {
					if !leads {
						await(t, started(t, member(t, srv, "other"), electionPath))
					}
					c := member(t, srv, "c")
					l := newLatch(t, c, electionPath)
					ctx, stop := context.WithCancel(context.Background())
					defer stop()
					require.NoError(t, l.Start(ctx))
					settle()
					term := l.Term()
					require.Equal(t, leads, term != nil)
					waiting := make(chan error, 1)
					if !leads {
						go func() {
							_, err := l.Await(context.Background())
							waiting <- err
						}()
						settle()
					}

					test.end(stop, c)
					settle()
					if leads {
						require.ErrorIs(t, term.Err(), test.ended)
					} else {
						require.ErrorIs(t, <-waiting, leader.ErrLatchClosed)
					}
					_, err := l.Await(context.Background())
					require.ErrorIs(t, err, leader.ErrLatchClosed)
					require.ErrorIs(t, err, test.cause)
					require.ErrorIs(t, l.Start(context.Background()), leader.ErrLatchClosed)
					require.NoError(t, l.Close())
					require.Len(t, nodes(srv), map[bool]int{true: 0, false: 1}[leads])
				})
			})
		}
	}
}

func TestLatchOfAClosedClientDoesNotStart(t *testing.T) {
	t.Parallel()
	c := own(t)
	l := newLatch(t, c, testzk.Path(t))
	require.NoError(t, c.Close())
	require.ErrorIs(t, l.Start(context.Background()), framework.ErrClosed)
	require.NoError(t, l.Close())
}

func TestCloseEndsAwait(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		await(t, started(t, member(t, srv, "other"), electionPath))
		l := started(t, member(t, srv, "c"), electionPath)
		waiting := make(chan error, 1)
		go func() {
			_, err := l.Await(context.Background())
			waiting <- err
		}()
		settle()
		require.NoError(t, l.Close())
		settle()
		require.ErrorIs(t, <-waiting, leader.ErrLatchClosed)
		require.Len(t, nodes(srv), 1)
	})
}

// Close returns the result of the term, also when it is called again.
func TestCloseReturnsTheResultOfTheRelease(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		c := member(t, srv, "c")
		l := started(t, c, electionPath)
		await(t, l)
		srv.Client("c").Cut()
		begun := time.Now()
		require.ErrorIs(t, l.Close(), recipes.ErrReleasePending)
		require.LessOrEqual(t, time.Since(begun), testzk.SessionTimeout)
		require.ErrorIs(t, l.Close(), recipes.ErrReleasePending)
		srv.Client("c").Heal()
		outage()
		require.Empty(t, nodes(srv))
	})
}

func TestRefusedLatchClosesAtOnce(t *testing.T) {
	for name, end := range map[string]func(*leader.Latch, *framework.Client) error{
		"latch":  func(l *leader.Latch, _ *framework.Client) error { return l.Close() },
		"client": func(_ *leader.Latch, c *framework.Client) error { return c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, func(t *testing.T, srv *zktest.Server) {
				match := fault.Match{Op: fault.OpGetData, Path: electionPath, Times: fault.Always}
				refusing := srv.On(match, fault.Fail(zktest.NoAuth))
				refused := srv.On(fault.Match{Op: fault.OpCreate, Times: fault.Always}, fault.Fail(zktest.NoAuth))
				c := member(t, srv, "c")
				l := started(t, c, electionPath)
				_, err := l.Await(testzk.Context(t))
				require.Error(t, err)
				begun := time.Now()
				require.NoError(t, end(l, c))
				require.Less(t, time.Since(begun), time.Second)
				refusing.Remove()
				refused.Remove()
			})
		})
	}
}

// A stop is not a failed attempt to lead.
func TestClosedLatchCountsNoFailure(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		var measured testzk.Metrics
		l := started(t, member(t, srv, "c", framework.WithMetrics(&measured)), electionPath)
		await(t, l)
		require.NoError(t, l.Close())
		require.NotContains(t, strings.Join(measured.Lines(time.Second), "\n"), metrics.OutcomeFailed)
	})
}
