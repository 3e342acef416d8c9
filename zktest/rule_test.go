package zktest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/rawzk"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

const noAuth = zktest.NoAuth

func TestReleasedRuleLetsLaterRulesDecide(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := enterRaw(t, srv, "a")
		first := srv.On(fault.Match{Op: fault.OpCreate, Times: fault.Always}, fault.Hold())
		second := srv.On(fault.Match{Op: fault.OpCreate, Times: fault.Always}, fault.Fail(noAuth))
		c.send(t, 1, createOp("/held"))
		synctest.Wait()
		require.Zero(t, second.Hits())
		first.Release()
		require.Zero(t, c.receive(t, 1).Err, "the first rule had fired")
		c.send(t, 2, createOp("/x"))
		require.EqualValues(t, noAuth, c.receive(t, 2).Err)
		require.Equal(t, []int{2, 1}, []int{first.Hits(), second.Hits()})
	})
}

func TestWaitForSeveralHits(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := enterRaw(t, srv, "a")
		rule := srv.On(fault.Match{Op: fault.OpCreate, Times: fault.Always}, fault.Pass())
		waiting := start(func() error { return rule.WaitHits(t.Context(), 2) })
		c.send(t, 1, createOp("/x"))
		require.False(t, waiting.ended())
		c.send(t, 2, createOp("/y"))
		require.NoError(t, waiting.wait(t))
		removed := start(func() error { return rule.WaitHits(t.Context(), 3) })
		rule.Remove()
		require.ErrorContains(t, removed.wait(t), "removed after 2 of 3 hits")
		require.NoError(t, rule.WaitHits(t.Context(), 2), "it has fired twice")
	})
}

func TestResetFaultsUndoesRulesAndSwitches(t *testing.T) {
	faults := map[string]func(*zktest.Server){
		"hold":         func(srv *zktest.Server) { srv.On(fault.Match{Times: fault.Always}, fault.Hold()) },
		"fail":         func(srv *zktest.Server) { srv.On(fault.Match{Times: fault.Always}, fault.Fail(noAuth)) },
		"cut":          func(srv *zktest.Server) { srv.Client("a").Cut() },
		"cut requests": func(srv *zktest.Server) { srv.Client("a").CutRequests() },
		"cut replies":  func(srv *zktest.Server) { srv.Client("a").CutReplies() },
		"freeze":       func(srv *zktest.Server) { srv.Client("a").Freeze() },
	}
	for name, begin := range faults {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zktest.Server) {
				c := enterRaw(t, srv, "a")
				begin(srv)
				srv.ResetFaults()
				c.send(t, 1, createOp("/x"))
				require.Zero(t, c.receive(t, 1).Err)
			})
		})
	}
}

func TestResetFaultsReleasesEventsAndHeldRequests(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := enterRaw(t, srv, "a")
		c.send(t, 1, rawzk.Exists("/x", true))
		c.receive(t, 1)
		srv.On(fault.Match{Op: fault.OpCreate}, fault.Hold())
		srv.Client("a").HoldEvents()
		c.send(t, 2, createOp("/x"))
		c.receiveNothing(t, time.Second)
		srv.ResetFaults()
		c.receive(t, -1)
		c.receive(t, 2)
	})
}

func TestResetFaultsLetsNewConnectionsIn(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		srv.Client("refused").Refuse(true)
		srv.Client("swallowed").Blackhole(true)
		srv.ResetFaults()
		enterRaw(t, srv, "refused")
		enterRaw(t, srv, "swallowed")
	})
}

func TestFailedTestShowsRulesThatNeverFired(t *testing.T) {
	tb := &fakeTB{}
	srv := zktest.Start(tb)
	srv.On(fault.Match{Op: fault.OpCreate, Path: "/never"}, fault.Hold())
	used := srv.On(fault.Match{Op: fault.OpConnect}, fault.Pass())
	enterRaw(t, srv, "a")
	require.Equal(t, 1, used.Hits())
	tb.failed = true
	tb.end()
	require.Contains(t, tb.logged, "this rule has never fired: create /never: hold\n")
	require.NotContains(t, tb.logged, used.String())
}
