package zktest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

func TestPassOnlyCounts(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		conn := connect(t, srv, "a")
		rule := srv.On(fault.Match{Op: fault.OpCreate}, fault.Pass())
		require.Zero(t, rule.Hits())
		require.NoError(t, create(conn, "/x"))
		require.Equal(t, 1, rule.Hits())
		require.NoError(t, rule.Wait(soon(t)))
		require.NoError(t, create(conn, "/y"))
		require.Equal(t, 1, rule.Hits(), "it fires once")
		require.True(t, srv.Exists("/x") && srv.Exists("/y"))
	})
}

// Each action that ends the connection has its own effect on the request, and none on the session.
func TestActionsThatEndTheConnection(t *testing.T) {
	tests := map[string]struct {
		action  fault.Action
		applied bool
	}{
		"drop before":    {fault.DropBefore(), false},
		"drop after":     {fault.DropAfter(), true},
		"reset":          {fault.Reset(), false},
		"truncate to 0":  {fault.Truncate(0), true},
		"truncate to 3":  {fault.Truncate(3), true},
		"truncate to 10": {fault.Truncate(10), true},
		"truncate to -1": {fault.Truncate(-1), true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zktest.Server) {
				conn := connect(t, srv, "a")
				session := conn.SessionID()
				rule := srv.On(fault.Match{Op: fault.OpCreate}, test.action)
				creation := start(func() error { return create(conn, "/x") })
				require.ErrorIs(t, creation.wait(t), zk.ErrConnectionClosed)
				require.Zero(t, creation.took)
				require.Equal(t, 1, rule.Hits())
				require.Equal(t, test.applied, srv.Exists("/x"))
				require.Zero(t, srv.Client("a").Connections())

				time.Sleep(2 * reconnectPause)
				require.NoError(t, create(conn, "/y"))
				require.Equal(t, session, conn.SessionID())
			})
		})
	}
}

func TestTruncateLongerThanTheAnswerOnlyEndsTheConnection(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		conn := connect(t, srv, "a")
		srv.On(fault.Match{Op: fault.OpCreate}, fault.Truncate(1000))
		require.NoError(t, create(conn, "/x"))
		synctest.Wait()
		require.Zero(t, srv.Client("a").Connections())
	})
}

func TestDroppedRequestTakesWhatIsBehindIt(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		conn := connect(t, srv, "a")
		srv.Client("a").Freeze()
		srv.On(fault.Match{Path: "/first"}, fault.DropBefore())
		first := start(func() error { return create(conn, "/first") })
		second := start(func() error { return create(conn, "/second") })
		srv.Client("a").Thaw()
		require.ErrorIs(t, first.wait(t), zk.ErrConnectionClosed)
		require.ErrorIs(t, second.wait(t), zk.ErrConnectionClosed)
		require.Empty(t, srv.Tree())
	})
}

func TestDelayIsExact(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		conn := connect(t, srv, "a")
		srv.On(fault.Match{Op: fault.OpCreate}, fault.Delay(2*time.Second))
		delayed := start(func() error { return create(conn, "/x") })
		behind := start(func() error { _, _, err := conn.Get("/"); return err })
		time.Sleep(2*time.Second - 1)
		require.False(t, delayed.ended())
		require.False(t, srv.Exists("/x"))
		require.NoError(t, delayed.wait(t))
		require.Equal(t, 2*time.Second, delayed.took)
		require.NoError(t, behind.wait(t))
		require.Equal(t, 2*time.Second, behind.took)
	})
}

func TestHeldRequestGoesOnWhenReleasedOrItsRuleRemoved(t *testing.T) {
	ends := map[string]func(*fault.Rule){"release": (*fault.Rule).Release, "remove": (*fault.Rule).Remove}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zktest.Server) {
				conn := connect(t, srv, "a")
				rule := srv.On(fault.Match{Op: fault.OpCreate}, fault.Hold())
				held := start(func() error { return create(conn, "/x") })
				require.NoError(t, rule.Wait(soon(t)))
				time.Sleep(time.Second)
				require.False(t, held.ended())
				require.False(t, srv.Exists("/x"))
				end(rule)
				end(rule) // a second time has no effect
				require.NoError(t, held.wait(t))
				require.Equal(t, time.Second, held.took)
			})
		})
	}
}

func TestReleasedRuleHoldsNothingMoreAndCounts(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		conn := connect(t, srv, "a")
		rule := srv.On(fault.Match{Op: fault.OpCreate, Times: fault.Always}, fault.Hold())
		rule.Release()
		require.NoError(t, create(conn, "/x"))
		require.NoError(t, create(conn, "/y"))
		require.Equal(t, 2, rule.Hits())
	})
}

func TestFailedRequestIsNotCarriedOutAndTheConnectionGoesOn(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		conn := connect(t, srv, "a")
		srv.On(fault.Match{Op: fault.OpCreate}, fault.Fail(zktest.NoAuth))
		require.ErrorIs(t, create(conn, "/x"), zk.ErrNoAuth)
		require.False(t, srv.Exists("/x"))
		require.NoError(t, create(conn, "/x"))
		require.Empty(t, traced(srv, "disconnected"))
	})
}

func TestMatches(t *testing.T) {
	tests := map[string]struct {
		match fault.Match
		fails []string // of the creates of /a, /a/b, /a/b/c and /d, in this order
	}{
		"everything":      {fault.Match{Times: fault.Always}, []string{"/a", "/a/b", "/a/b/c", "/d"}},
		"the next":        {fault.Match{}, []string{"/a"}},
		"type":            {fault.Match{Op: fault.OpDelete, Times: fault.Always}, nil},
		"prefix":          {fault.Match{Path: "/a/", Times: fault.Always}, []string{"/a/b", "/a/b/c"}},
		"pattern":         {fault.Match{Path: "/*", Times: fault.Always}, []string{"/a", "/d"}},
		"pattern of two":  {fault.Match{Path: "/a/[a-b]", Times: fault.Always}, []string{"/a/b"}},
		"client":          {fault.Match{Client: "a", Times: fault.Always}, []string{"/a", "/a/b", "/a/b/c", "/d"}},
		"another client":  {fault.Match{Client: "b", Times: fault.Always}, nil},
		"skip":            {fault.Match{Skip: 2}, []string{"/a/b/c"}},
		"skip and times":  {fault.Match{Skip: 1, Times: 2}, []string{"/a/b", "/a/b/c"}},
		"skip of matches": {fault.Match{Path: "/a/", Skip: 1}, []string{"/a/b/c"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zktest.Server) {
				conn := connect(t, srv, "a")
				require.NoError(t, srv.Create("/a/b", nil), "so that no create fails without a parent")
				rule := srv.On(test.match, fault.Fail(zktest.BadVersion))
				var failed []string
				for _, path := range []string{"/a", "/a/b", "/a/b/c", "/d"} {
					if create(conn, path) == zk.ErrBadVersion {
						failed = append(failed, path)
					}
				}
				require.Equal(t, test.fails, failed)
				require.Equal(t, len(test.fails), rule.Hits())
			})
		})
	}
}

func TestFirstRuleThatFiresDecides(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		conn := connect(t, srv, "a")
		seen := srv.On(fault.Match{Op: fault.OpCreate, Times: fault.Always}, fault.Pass())
		first := srv.On(fault.Match{Op: fault.OpCreate}, fault.Fail(zktest.NoAuth))
		second := srv.On(fault.Match{Op: fault.OpCreate}, fault.Fail(zktest.BadVersion))
		require.ErrorIs(t, create(conn, "/x"), zk.ErrNoAuth)
		require.Equal(t, []int{1, 1, 0}, []int{seen.Hits(), first.Hits(), second.Hits()})
		require.ErrorIs(t, create(conn, "/x"), zk.ErrBadVersion)
		require.NoError(t, create(conn, "/x"))
		require.Equal(t, []int{3, 1, 1}, []int{seen.Hits(), first.Hits(), second.Hits()})
	})
}

func TestRemovedRuleSeesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		conn := connect(t, srv, "a")
		rule := srv.On(fault.Match{Op: fault.OpCreate, Times: fault.Always}, fault.Fail(zktest.NoAuth))
		require.ErrorIs(t, create(conn, "/x"), zk.ErrNoAuth)
		rule.Remove()
		require.NoError(t, create(conn, "/x"))
		require.Equal(t, 1, rule.Hits())
	})
}

func TestRuleStaysOverRestart(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		conn := connect(t, srv, "a")
		srv.On(fault.Match{Op: fault.OpCreate}, fault.Fail(zktest.NoAuth))
		require.NoError(t, srv.Restart())
		time.Sleep(2 * reconnectPause)
		require.ErrorIs(t, create(conn, "/x"), zk.ErrNoAuth)
	})
}

func TestWaitForRuleEndsWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		rule := srv.On(fault.Match{Op: fault.OpCreate, Path: "/x", Client: "a"}, fault.Pass())
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		err := rule.Wait(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "fault: wait for create /x of a")
	})
}

func TestRulesThatCanNeverFirePanic(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		require.Panics(t, func() { srv.On(fault.Match{Op: fault.OpCheck}, fault.Pass()) })
		require.Panics(t, func() { srv.On(fault.Match{}, fault.Fail(zktest.OK)) })
		require.NoError(t, create(connect(t, srv, "a"), "/x"), "no rule was added")
	})
}
