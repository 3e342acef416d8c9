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

// Tests of when and how a client learns of the end of its connection.

func TestDropAfterLosesNoEarlierAnswer(t *testing.T) {
	for range 50 { // it depended on chance
		bubble(t, func(t *testing.T, srv *zktest.Server) {
			c := enterRaw(t, srv, "a")
			srv.On(fault.Match{Op: fault.OpCreate}, fault.DropAfter())
			both := rawzk.Join(rawzk.Frame(rawzk.Request(1, rawzk.GetData("/", false))),
				rawzk.Frame(rawzk.Request(2, createOp("/x"))))
			require.NoError(t, c.SendBytes(both))
			c.receive(t, 1)
			c.receiveEnd(t, rawzk.ErrClosed)
			require.True(t, srv.Exists("/x"))
		})
	}
}

func TestBlackholeSwallowsTheEndOfItsConnections(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := enterRaw(t, srv, "a")
		srv.Client("a").Blackhole(true)
		c.receiveNothing(t, 2*timeout)
		require.Empty(t, srv.Sessions(), "it has expired")
		srv.Client("a").Drop()
		c.receiveNothing(t, time.Hour)
		srv.Client("a").Blackhole(false)
		c.receiveEnd(t, rawzk.ErrReset)
	})
}

func TestBlackholeSwallowsADrop(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := enterRaw(t, srv, "a")
		srv.Client("a").Blackhole(true)
		srv.Client("a").Drop()
		c.receiveNothing(t, time.Second)
		require.Len(t, srv.Sessions(), 1)
	})
}

func TestBlackholeThatSwallowedNothingLeavesNoTrace(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := enterRaw(t, srv, "a")
		srv.Client("a").Blackhole(true)
		synctest.Wait()
		srv.Client("a").Blackhole(false)
		c.send(t, 1, createOp("/x"))
		require.Zero(t, c.receive(t, 1).Err)
	})
}

func TestResetDoesNotGetThroughACutCable(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := enterRaw(t, srv, "a")
		srv.Client("a").Cut()
		srv.Client("a").Reset()
		c.receiveNothing(t, time.Minute)
		srv.Client("a").Heal()
		c.receiveEnd(t, rawzk.ErrReset)
	})
}

func TestResetDoesNotGetThroughACutCableAfterAnAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := enterRaw(t, srv, "a")
		srv.Client("a").CutReplies()
		c.send(t, 1, createOp("/x"))
		synctest.Wait()
		require.True(t, srv.Exists("/x"))
		srv.Client("a").Reset()
		c.receiveNothing(t, time.Minute)
		srv.Client("a").Heal()
		c.receiveEnd(t, rawzk.ErrReset)
	})
}

func TestEndInPlaceOfAnAnswerDoesNotGetThroughACutCable(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := enterRaw(t, srv, "a")
		srv.On(fault.Match{Op: fault.OpCreate}, fault.DropAfter())
		srv.Client("a").CutReplies()
		c.send(t, 1, createOp("/x"))
		c.receiveNothing(t, time.Minute)
		require.True(t, srv.Exists("/x"))
		srv.Client("a").Heal()
		c.receiveEnd(t, rawzk.ErrClosed)
	})
}

func TestResetDoesNotWaitForHeldEvents(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := enterRaw(t, srv, "a")
		c.send(t, 1, rawzk.Exists("/x", true))
		c.receive(t, 1)
		srv.Client("a").HoldEvents()
		require.NoError(t, srv.Create("/x", nil))
		c.receiveNothing(t, time.Second)
		srv.Client("a").Reset()
		c.receiveEnd(t, rawzk.ErrReset)
	})
}
