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

// Tests of requests that are late.

func TestHeldRequestDoesNotComeAfterThoseOfALaterConnection(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := enterRaw(t, srv, "a")
		held := srv.On(fault.Match{Path: "/old"}, fault.Hold())
		c.send(t, 1, createOp("/old"))
		require.NoError(t, held.Wait(soon(t)))
		srv.Client("a").Drop()
		later := c.again(t, srv, "a")
		later.send(t, 1, createOp("/new"))
		later.receive(t, 1)
		srv.Client("a").Drop()
		synctest.Wait()
		held.Release()
		synctest.Wait()
		require.True(t, srv.Exists("/new"))
		require.False(t, srv.Exists("/old"))
		require.Len(t, traced(srv, "create"), 1)
	})
}

// The server does not read a request after its connection has ended, so no rule sees it.
func TestRequestOfAnEndedConnectionUsesUpNoRule(t *testing.T) {
	actions := map[string]fault.Action{
		"pass": fault.Pass(), "delay": fault.Delay(0), "hold": fault.Hold(), "drop after": fault.DropAfter(),
	}
	for name, action := range actions {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zktest.Server) {
				c := enterRaw(t, srv, "a")
				rule := srv.On(fault.Match{Op: fault.OpCreate}, action)
				srv.Client("a").Freeze()
				c.send(t, 1, createOp("/x"))
				synctest.Wait()
				srv.Client("a").Drop()
				srv.Client("a").Thaw()
				synctest.Wait()
				require.Zero(t, rule.Hits())
				require.False(t, srv.Exists("/x"))
				require.Zero(t, srv.Client("a").Requests()[fault.OpCreate])
			})
		})
	}
}

func TestHeldRequestOfAnEndedConnectionLeavesNoWatch(t *testing.T) {
	requests := map[fault.Op]rawzk.Op{
		fault.OpAddWatch:     rawzk.AddWatch("/x", 1),
		fault.OpExists:       rawzk.Exists("/x", true),
		fault.OpGetData:      rawzk.GetData("/", true),
		fault.OpGetChildren2: rawzk.GetChildren2("/", true),
	}
	for kind, request := range requests {
		t.Run(kind.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zktest.Server) {
				c := enterRaw(t, srv, "a")
				held := srv.On(fault.Match{Op: kind}, fault.Hold())
				c.send(t, 1, request)
				require.NoError(t, held.Wait(soon(t)))
				srv.Client("a").Drop()
				synctest.Wait()
				held.Remove()
				synctest.Wait()
				require.Len(t, traced(srv, kind.String()), 1, "it was carried out")
				require.Contains(t, commandOf(t, srv, "wchs"), "Total watches:0")
			})
		})
	}
}

// A delay that ends while the server may not act lasts until it may.
func TestDelayedRequestWaitsWhileItsServerMayNotAct(t *testing.T) {
	tests := map[string]struct{ begin, end func(*zktest.Server) }{
		"pause": {(*zktest.Server).Pause, func(srv *zktest.Server) { srv.Resume(zktest.RequestsFirst) }},
		"freeze": {
			func(srv *zktest.Server) { srv.Client("a").Freeze() }, func(srv *zktest.Server) { srv.Client("a").Thaw() },
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zktest.Server) {
				c := enterRaw(t, srv, "a")
				delayed := srv.On(fault.Match{Op: fault.OpCreate}, fault.Delay(time.Second))
				c.send(t, 1, createOp("/x"))
				require.NoError(t, delayed.Wait(soon(t)))
				test.begin(srv)
				time.Sleep(2 * time.Second)
				require.False(t, srv.Exists("/x"))
				test.end(srv)
				c.receive(t, 1)
				require.True(t, srv.Exists("/x"))
			})
		})
	}
}

func TestAdvanceDuringAPauseExpiresSessionsAtResume(t *testing.T) {
	left := map[zktest.ResumeOrder]int{zktest.RequestsFirst: 1, zktest.ExpireFirst: 0}
	for order, sessions := range left {
		bubble(t, func(t *testing.T, srv *zktest.Server) {
			c := enterRaw(t, srv, "a")
			srv.Pause()
			c.send(t, 1, rawzk.Ping())
			srv.Advance(time.Minute)
			synctest.Wait()
			require.Len(t, srv.Sessions(), 1)
			srv.Resume(order)
			synctest.Wait()
			require.Len(t, srv.Sessions(), sessions, "order %d", order)
		})
	}
}
