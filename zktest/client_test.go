package zktest_test

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

func TestCutClientLosesItsSessionAndOthersDoNot(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		a, b := connect(t, srv, "a"), connect(t, srv, "b")
		createEphemeral(t, a, "/e")
		_, _, watch, err := b.ExistsW("/e")
		require.NoError(t, err)
		srv.Client("a").Cut()
		lost := start(func() error { _, _, err := a.Get("/"); return err })
		require.ErrorIs(t, lost.wait(t), zk.ErrConnectionClosed)
		require.LessOrEqual(t, lost.took, silence)
		require.NotZero(t, lost.took, "the cut is not announced")
		time.Sleep(timeout)
		require.Equal(t, "EventNodeDeleted /e", event(watch))
		require.Len(t, srv.Sessions(), 1)
		require.Len(t, traced(srv, "expired"), 1)
		require.Len(t, srv.Client("b").Sessions(), 1)

		srv.Client("a").Heal()
		time.Sleep(3 * reconnectPause)
		require.Equal(t, zk.StateHasSession, a.State())
		require.Len(t, srv.Client("a").Sessions(), 1, "a new session")
	})
}

func TestCutRequestArrivesAfterHealEvenIfItsSenderGaveUp(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		conn := connect(t, srv, "a")
		session := conn.SessionID()
		srv.Client("a").CutRequests()
		given := start(func() error { return create(conn, "/late") })
		require.ErrorIs(t, given.wait(t), zk.ErrConnectionClosed)
		require.Equal(t, silence, given.took)
		require.False(t, srv.Exists("/late"))
		time.Sleep(reconnectPause / 2) // during the client's pause
		srv.Client("a").Heal()
		synctest.Wait()
		require.True(t, srv.Exists("/late"))
		time.Sleep(2 * reconnectPause)
		require.Equal(t, zk.StateHasSession, conn.State())
		require.Equal(t, session, conn.SessionID())
	})
}

func TestCutReplyLeavesTheOutcomeUnknown(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		conn := connect(t, srv, "a")
		srv.Client("a").CutReplies()
		creation := start(func() error { return create(conn, "/x") })
		require.True(t, srv.Exists("/x"))
		require.False(t, creation.ended())
		srv.Client("a").Heal()
		require.NoError(t, creation.wait(t))
		require.Zero(t, creation.took)

		srv.Client("a").CutReplies()
		creation = start(func() error { return create(conn, "/y") })
		require.ErrorIs(t, creation.wait(t), zk.ErrConnectionClosed)
		require.Equal(t, silence, creation.took)
		require.True(t, srv.Exists("/y"))
	})
}

func TestCutClientCannotConnectUntilItTimesOut(t *testing.T) {
	cuts := map[string]func(*zktest.Client){
		"both": (*zktest.Client).Cut, "requests": (*zktest.Client).CutRequests, "replies": (*zktest.Client).CutReplies,
	}
	for name, cut := range cuts {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zktest.Server) {
				cut(srv.Client("a"))
				begun := time.Now()
				_, err := srv.Client("a").Dialer()("tcp", srv.MemAddr(), time.Second)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.Equal(t, time.Second, time.Since(begun))
				dialling := start(func() error {
					nc, err := srv.Client("a").DialContext(context.Background(), "tcp", srv.MemAddr())
					if err != nil {
						return err
					}
					return nc.Close()
				})
				require.False(t, dialling.ended())
				srv.Client("a").Heal()
				require.NoError(t, dialling.wait(t))
			})
		})
	}
}

func TestFrozenClientWaitsAndMayConnect(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		a, b := connect(t, srv, "a"), connect(t, srv, "b")
		srv.Client("a").Freeze()
		waiting := start(func() error { return create(a, "/x") })
		require.NoError(t, create(b, "/y"))
		nc, err := srv.Client("a").DialContext(context.Background(), "tcp", srv.MemAddr())
		require.NoError(t, err)
		defer nc.Close()
		time.Sleep(time.Second)
		require.False(t, waiting.ended())
		require.Equal(t, "/y\n", srv.Tree())
		srv.Client("a").Thaw()
		require.NoError(t, waiting.wait(t))
		require.Equal(t, time.Second, waiting.took)
	})
}

func TestFrozenClientsSessionExpires(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		connect(t, srv, "a")
		srv.Client("a").Freeze()
		time.Sleep(timeout + 100*time.Millisecond)
		synctest.Wait()
		require.Empty(t, srv.Sessions())
	})
}

func TestHeldEventHoldsAllBehindItAndNothingBefore(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.Create("/x", nil))
		conn := connect(t, srv, "a")
		_, _, watch, err := conn.GetW("/x")
		require.NoError(t, err)
		srv.Client("a").HoldEvents()
		_, _, err = conn.Get("/x")
		require.NoError(t, err, "before the event")
		require.NoError(t, srv.Set("/x", []byte("new")))
		behind := start(func() error { _, _, err := conn.Get("/x"); return err })
		time.Sleep(time.Second)
		require.False(t, behind.ended())
		require.Empty(t, event(watch))
		srv.Client("a").ReleaseEvents()
		require.NoError(t, behind.wait(t))
		require.Equal(t, "EventNodeDataChanged /x", event(watch))
	})
}

func TestBlackholeSwallowsAndItsEndResets(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		a, b := connect(t, srv, "a"), connect(t, srv, "b")
		srv.Client("a").Blackhole(true)
		swallowed := start(func() error { return create(a, "/x") })
		require.NoError(t, create(b, "/y"))
		time.Sleep(time.Second)
		require.False(t, swallowed.ended())
		srv.Client("a").Blackhole(false)
		require.ErrorIs(t, swallowed.wait(t), zk.ErrConnectionClosed)
		require.Equal(t, time.Second, swallowed.took)
		time.Sleep(2 * reconnectPause)
		require.Equal(t, zk.StateHasSession, a.State())
		require.Equal(t, "/y\n", srv.Tree())
	})
}

func TestBlackholeAcceptsConnectionsAndAnswersNothing(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		srv.Client("a").Blackhole(true)
		nc, err := srv.Client("a").DialContext(context.Background(), "tcp", srv.MemAddr())
		require.NoError(t, err)
		defer nc.Close()
		_, err = nc.Write([]byte("ruok"))
		require.NoError(t, err)
		require.NoError(t, nc.SetReadDeadline(time.Now().Add(time.Second)))
		n, err := nc.Read(make([]byte, 1))
		require.Zero(t, n)
		var timedOut interface{ Timeout() bool }
		require.True(t, errors.As(err, &timedOut) && timedOut.Timeout(), "%v", err)
		srv.Client("a").Blackhole(false)
		require.NoError(t, nc.SetReadDeadline(time.Time{}))
		_, err = nc.Read(make([]byte, 1))
		require.ErrorIs(t, err, syscall.ECONNRESET)
	})
}

func TestRefusedClientKeepsItsConnection(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		conn := connect(t, srv, "a")
		session := conn.SessionID()
		srv.Client("a").Refuse(true)
		require.NoError(t, create(conn, "/x"))
		_, err := srv.Client("a").DialContext(context.Background(), "tcp", srv.MemAddr())
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		require.ErrorContains(t, err, srv.MemAddr())
		connect(t, srv, "b")
		srv.Client("a").Drop()
		time.Sleep(3 * reconnectPause)
		require.NotEqual(t, zk.StateHasSession, conn.State())
		srv.Client("a").Refuse(false)
		time.Sleep(2 * reconnectPause)
		require.Equal(t, zk.StateHasSession, conn.State())
		require.Equal(t, session, conn.SessionID())
	})
}

// Answers are on their way when the connection ends.
func TestDropSendsWhatWasAnsweredAndResetDoesNot(t *testing.T) {
	tests := map[string]struct {
		end  func(*zktest.Client)
		want error
	}{
		"drop":  {(*zktest.Client).Drop, nil},
		"reset": {(*zktest.Client).Reset, zk.ErrConnectionClosed},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zktest.Server) {
				a, b := connect(t, srv, "a"), connect(t, srv, "b")
				srv.Client("a").CutReplies()
				creation := start(func() error { return create(a, "/x") })
				require.True(t, srv.Exists("/x"))
				test.end(srv.Client("a"))
				synctest.Wait()
				srv.Client("a").Heal()
				require.ErrorIs(t, creation.wait(t), test.want)
				require.Zero(t, creation.took)
				require.NoError(t, create(b, "/y"))
				require.Equal(t, 1, srv.Client("b").Connections())
				time.Sleep(2 * reconnectPause)
				require.Equal(t, zk.StateHasSession, a.State())
			})
		})
	}
}

func TestConnectionsSessionsAndRequestsAreEachClientsOwn(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		a, b := srv.Client("a"), srv.Client("b")
		first, second := connect(t, srv, "a"), connect(t, srv, "a")
		other := connect(t, srv, "b")
		require.Equal(t, []int{2, 1}, []int{a.Connections(), b.Connections()})
		require.Len(t, a.Sessions(), 2)
		require.Equal(t, other.SessionID(), b.Sessions()[0].ID)
		require.NoError(t, create(first, "/x"))
		require.NoError(t, create(second, "/y"))
		_, _, err := other.Get("/x")
		require.NoError(t, err)
		require.Equal(t, fault.Counts{fault.OpCreate: 2}, a.Requests())
		require.Equal(t, fault.Counts{fault.OpGetData: 1}, b.Requests())
		require.Equal(t, fault.Counts{fault.OpCreate: 2, fault.OpGetData: 1}, srv.Requests())
		srv.ResetCounts()
		require.Empty(t, srv.Requests())
		require.Empty(t, a.Requests())
		first.Close()
		synctest.Wait()
		require.Equal(t, 1, a.Connections())
		require.Len(t, a.Sessions(), 1)
	})
}

func TestPingsAreCountedByTypeButNotInTheTotal(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		conn := connect(t, srv, "a")
		time.Sleep(time.Hour + ping/2)
		require.Equal(t, int(time.Hour/ping), srv.Requests()[fault.OpPing])
		require.Zero(t, srv.Requests().Total())
		require.Equal(t, zk.StateHasSession, conn.State())
	})
}

func TestClientIsCreatedAtItsFirstUse(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		require.Same(t, srv.Client("a"), srv.Client("a"))
		require.NotSame(t, srv.Client("a"), srv.Client("b"))
		require.Equal(t, "a", srv.Client("a").Name())
		require.Equal(t, "a", srv.Client("a").String())
		require.Equal(t, "-", srv.Client("").String())
	})
}
