package zktest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/rawzk"
	"github.com/docent-zk/docent/zktest"
)

func TestRulesThatCanNeverFirePanic(t *testing.T) {
	matches := map[string]zktest.Match{
		"path without a slash": {Path: "a"},
		"pattern without one":  {Op: zktest.OpCreate, Path: "*"},
		"ping with a path":     {Op: zktest.OpPing, Path: "/x"},
		"handshake with one":   {Op: zktest.OpConnect, Path: "/x"},
		"end with one":         {Op: zktest.OpCloseSession, Path: "/x"},
		"check alone":          {Op: zktest.OpCheck},
		"no such request":      {Op: 99},
	}
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		for name, match := range matches {
			require.Panics(t, func() { srv.On(match, zktest.Pass()) }, name)
		}
		for _, match := range []zktest.Match{
			{}, {Path: "/x"}, {Op: zktest.OpMulti, Path: "/x"}, {Op: zktest.OpPing}, {Op: zktest.OpConnect},
			{Op: zktest.OpAddWatch, Path: "/*"},
		} {
			require.NotPanics(t, func() { srv.On(match, zktest.Pass()) }, "%v", match)
		}
	})
}

func TestRuleString(t *testing.T) {
	tests := map[string]struct {
		match  zktest.Match
		action zktest.Action
	}{
		"create /x of a: hold":            {zktest.Match{Op: zktest.OpCreate, Path: "/x", Client: "a"}, zktest.Hold()},
		"any: pass":                       {zktest.Match{}, zktest.Pass()},
		"connect: delay by 2s":            {zktest.Match{Op: zktest.OpConnect}, zktest.Delay(2 * time.Second)},
		"getData: truncate at 7 bytes":    {zktest.Match{Op: zktest.OpGetData}, zktest.Truncate(7)},
		"delete: drop before":             {zktest.Match{Op: zktest.OpDelete}, zktest.DropBefore()},
		"delete: drop after":              {zktest.Match{Op: zktest.OpDelete}, zktest.DropAfter()},
		"ping: reset":                     {zktest.Match{Op: zktest.OpPing}, zktest.Reset()},
		"any /*: fail: " + noAuth.Error(): {zktest.Match{Path: "/*"}, zktest.Fail(noAuth)},
	}
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		for want, test := range tests {
			require.Equal(t, want, srv.On(test.match, test.action).String())
		}
	})
}

const noAuth = zktest.NoAuth

func TestReleasedRuleLetsLaterRulesDecide(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := enterRaw(t, srv, "a")
		first := srv.On(zktest.Match{Op: zktest.OpCreate, Times: zktest.Always}, zktest.Hold())
		second := srv.On(zktest.Match{Op: zktest.OpCreate, Times: zktest.Always}, zktest.Fail(noAuth))
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
		rule := srv.On(zktest.Match{Op: zktest.OpCreate, Times: zktest.Always}, zktest.Pass())
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
		"hold":         func(srv *zktest.Server) { srv.On(zktest.Match{Times: zktest.Always}, zktest.Hold()) },
		"fail":         func(srv *zktest.Server) { srv.On(zktest.Match{Times: zktest.Always}, zktest.Fail(noAuth)) },
		"cut":          func(srv *zktest.Server) { srv.Client("a").Cut() },
		"cut requests": func(srv *zktest.Server) { srv.Client("a").CutRequests() },
		"cut replies":  func(srv *zktest.Server) { srv.Client("a").CutReplies() },
		"freeze":       func(srv *zktest.Server) { srv.Client("a").Freeze() },
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zktest.Server) {
				c := enterRaw(t, srv, "a")
				fault(srv)
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
		srv.On(zktest.Match{Op: zktest.OpCreate}, zktest.Hold())
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
	srv.On(zktest.Match{Op: zktest.OpCreate, Path: "/never"}, zktest.Hold())
	used := srv.On(zktest.Match{Op: zktest.OpConnect}, zktest.Pass())
	enterRaw(t, srv, "a")
	require.Equal(t, 1, used.Hits())
	tb.failed = true
	tb.end()
	require.Contains(t, tb.logged, "this rule has never fired: create /never: hold\n")
	require.NotContains(t, tb.logged, used.String())
}
