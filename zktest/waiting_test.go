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

// Tests of requests that wait between a follower and the leader.

// tick is the default.
const tick = 100 * time.Millisecond

// enterRawAt returns a client with a session at one of the servers.
func enterRawAt(t *testing.T, srv *zktest.Server, name, host string) *raw {
	t.Helper()
	r := greet(t, dialRaw(t, srv.Client(name), host), newSession)
	require.NotZero(t, r.session)
	return r
}

// reconnectTo makes another connection of the same session, to one of the servers.
func (r *raw) reconnectTo(t *testing.T, srv *zktest.Server, name, host string) *raw {
	t.Helper()
	next := r.tryAt(t, srv, name, host)
	require.Equal(t, r.session, next.session)
	return next
}

func (r *raw) tryAt(t *testing.T, srv *zktest.Server, name, host string) *raw {
	t.Helper()
	hello := newSession
	hello.Session, hello.Password = r.session, r.password
	return greet(t, dialRaw(t, srv.Client(name), host), hello)
}

// ephemeralOp returns a request for an open ephemeral node.
func ephemeralOp(path string) rawzk.Op { return rawzk.Create(path, nil, rawzk.Open(), 1) }

func TestHeldRequestIsAppliedWhenItsSessionHasComeBack(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		f := srv.Follower(0)
		c := enterRawAt(t, srv, "a", f.MemAddr())
		f.HoldRequests()
		c.send(t, 1, ephemeralOp("/ghost"))
		c.receiveNothing(t, time.Second)
		require.Equal(t, 1, f.Waiting())
		require.NoError(t, c.Close())

		elsewhere := c.reconnectTo(t, srv, "a", srv.MemAddr())
		elsewhere.send(t, 1, rawzk.Sync("/"))
		require.Zero(t, elsewhere.receive(t, 1).Err)
		elsewhere.send(t, 2, rawzk.Exists("/ghost", false))
		require.EqualValues(t, zktest.NoNode, elsewhere.receive(t, 2).Err)
		require.NoError(t, elsewhere.Close())

		back := c.reconnectTo(t, srv, "a", f.MemAddr())
		f.ReleaseRequests()
		synctest.Wait()
		require.True(t, srv.Exists("/ghost"), "the session belongs to this server again")
		stat, err := srv.Stat("/ghost")
		require.NoError(t, err)
		require.Equal(t, c.session, stat.EphemeralOwner)
		back.receiveNothing(t, time.Second)
		require.Len(t, traced(srv, "create"), 1)
	})
}

func TestHeldWriteFailsWhenItsSessionHasMovedAway(t *testing.T) {
	writes := map[fault.Op]rawzk.Op{
		fault.OpCreate:  createOp("/x"),
		fault.OpMulti:   rawzk.Multi(createOp("/x"), createOp("/y")),
		fault.OpSetData: rawzk.SetData("/there", []byte("x"), -1),
		fault.OpDelete:  rawzk.Delete("/there", -1),
	}
	for kind, write := range writes {
		t.Run(kind.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zktest.Server) {
				require.NoError(t, srv.Create("/there", nil))
				f := srv.Follower(0)
				c := enterRawAt(t, srv, "a", f.MemAddr())
				f.HoldRequests()
				c.send(t, 1, write)
				synctest.Wait()
				c.reconnectTo(t, srv, "a", srv.MemAddr())
				before := srv.Tree()
				f.ReleaseRequests()
				c.receiveEnd(t, rawzk.ErrClosed)
				require.Equal(t, before, srv.Tree())
				entries := traced(srv, kind.String())
				require.Equal(t, zktest.SessionMoved, entries[len(entries)-1].Code)
			})
		})
	}
}

// A real leader does not check the owner of a session that is to be closed.
func TestHeldEndOfASessionThatHasMovedEndsIt(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		f := srv.Follower(0)
		c := enterRawAt(t, srv, "a", f.MemAddr())
		f.HoldRequests()
		c.send(t, 1, rawzk.CloseSession())
		synctest.Wait()
		moved := c.reconnectTo(t, srv, "a", srv.MemAddr())
		f.ReleaseRequests()
		c.receive(t, 1)
		c.receiveEnd(t, rawzk.ErrClosed)
		moved.receiveEnd(t, rawzk.ErrClosed)
		require.Empty(t, srv.Sessions())
	})
}

func TestRequestsOfTheNewConnectionAreBehindThoseThatWereHeld(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		f := srv.Follower(0)
		c := enterRawAt(t, srv, "a", f.MemAddr())
		f.HoldRequests()
		c.send(t, 1, createOp("/old"))
		synctest.Wait()
		back := c.reconnectTo(t, srv, "a", f.MemAddr())
		c.receiveEnd(t, rawzk.ErrClosed)
		back.send(t, 1, rawzk.Sync("/"))
		back.send(t, 2, rawzk.Exists("/old", false))
		back.send(t, 3, createOp("/new"))
		back.receiveNothing(t, time.Second)
		require.Equal(t, 3, f.Waiting())
		f.ReleaseRequests()
		require.Zero(t, back.receive(t, 1).Err)
		require.Zero(t, back.receive(t, 2).Err, "the old request is ahead of the sync")
		require.Zero(t, back.receive(t, 3).Err)
		require.Less(t, zxidOf(t, srv, "/old"), zxidOf(t, srv, "/new"))
	})
}

func TestManyHeldRequestsOfOneConnectionAreAppliedInOrder(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		f := srv.Follower(0)
		c := enterRawAt(t, srv, "a", f.MemAddr())
		f.HoldRequests()
		c.send(t, 1, createOp("/1"))
		c.send(t, 2, rawzk.GetChildren("/", false))
		c.send(t, 3, createOp("/2"))
		c.send(t, 4, rawzk.Exists("/1", false))
		c.receiveNothing(t, time.Second)
		require.Equal(t, 2, f.Waiting(), "reads wait at the follower")
		require.NoError(t, c.Close())
		back := c.reconnectTo(t, srv, "a", f.MemAddr())
		f.ReleaseRequests()
		synctest.Wait()
		require.Less(t, zxidOf(t, srv, "/1"), zxidOf(t, srv, "/2"))
		back.send(t, 1, rawzk.Ping())
		back.receive(t, -2)
	})
}

// Answers have the order of the requests, and reads see the writes before them. A write has the
// credentials that its client had when it sent the write.
func TestAnswersOfAFollowerComeInOrder(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		f := srv.Follower(lag)
		c := enterRawAt(t, srv, "a", f.MemAddr())
		f.HoldRequests()
		c.send(t, 1, createOp("/1"))
		c.send(t, 2, rawzk.Exists("/1", false))
		c.send(t, 3, rawzk.Exists("/2", false))
		c.send(t, 4, createOp("/2"))
		c.send(t, 5, rawzk.Ping())
		c.send(t, 6, rawzk.Exists("/2", false))
		synctest.Wait()
		f.ReleaseRequests()
		began := time.Now()
		for _, want := range []struct {
			xid, err int32
		}{{1, 0}, {2, 0}, {3, int32(zktest.NoNode)}, {4, 0}, {-2, 0}, {6, 0}} {
			require.Equal(t, want.err, c.receive(t, want.xid).Err)
		}
		require.Equal(t, lag, time.Since(began))
	})
}

func TestLostLinkLosesWhatWasHeld(t *testing.T) {
	ends := map[string]func(*zktest.Server, *zktest.Follower){
		"the follower restarts": func(_ *zktest.Server, f *zktest.Follower) { f.Restart() },
		"it is cut off for long": func(_ *zktest.Server, f *zktest.Follower) {
			f.CutLeader()
			time.Sleep(5*tick + 1)
			f.Restore()
		},
		"all restart": func(srv *zktest.Server, _ *zktest.Follower) { _ = srv.Restart() },
		"the leader is frozen for long": func(srv *zktest.Server, _ *zktest.Follower) {
			srv.FreezeLeader()
			time.Sleep(7 * tick)
			srv.ThawLeader()
			time.Sleep(2 * tick)
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zktest.Server) {
				f := srv.Follower(0)
				c := enterRawAt(t, srv, "a", f.MemAddr())
				f.HoldRequests()
				c.send(t, 1, createOp("/lost"))
				synctest.Wait()
				require.Equal(t, 1, f.Waiting())
				end(srv, f)
				c.receiveEnd(t, rawzk.ErrClosed)
				require.Zero(t, f.Waiting())
				c.reconnectTo(t, srv, "a", f.MemAddr())
				f.ReleaseRequests()
				synctest.Wait()
				require.False(t, srv.Exists("/lost"))
			})
		})
	}
}

func TestHeldRequestIsDeliveredWhenAShortCutEnds(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		f := srv.Follower(0)
		c := enterRawAt(t, srv, "a", f.MemAddr())
		f.CutLeader()
		c.send(t, 1, ephemeralOp("/ghost"))
		synctest.Wait()
		require.NoError(t, c.Close())
		elsewhere := c.reconnectTo(t, srv, "a", srv.MemAddr())
		require.NoError(t, elsewhere.Close())
		back := start(func() error { c.reconnectTo(t, srv, "a", f.MemAddr()); return nil })
		require.False(t, back.ended(), "the leader cannot be asked")
		time.Sleep(4 * tick)
		f.Restore()
		require.NoError(t, back.wait(t))
		require.True(t, srv.Exists("/ghost"), "the session that comes back overtakes the request")
	})
}

// A client connects to a slow server, gives up and connects to the next server. Later the first
// server may get the session after all.
func TestSessionThatComesBackLateStillMoves(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		f := srv.Follower(0)
		c := enterRaw(t, srv, "a")
		f.CutToLeader()
		hello := newSession
		hello.Session, hello.Password = c.session, c.password
		late := dialRaw(t, srv.Client("a"), f.MemAddr())
		require.NoError(t, late.SendFrame(hello.Encode()))
		synctest.Wait()
		require.NoError(t, late.Close())
		next := c.reconnectTo(t, srv, "a", srv.MemAddr())
		next.send(t, 1, createOp("/1"))
		next.receive(t, 1)
		f.Restore()
		next.send(t, 2, createOp("/2"))
		next.receiveEnd(t, rawzk.ErrClosed)
		require.False(t, srv.Exists("/2"))
	})
}

// A server closes a session's connection when another one is made to it. It does not close
// connections to other servers.
func TestConnectionAtAnotherServerStays(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		f := srv.Follower(0)
		c := enterRawAt(t, srv, "a", f.MemAddr())
		moved := c.reconnectTo(t, srv, "a", srv.MemAddr())
		c.send(t, 1, rawzk.Exists("/", false))
		require.Zero(t, c.receive(t, 1).Err, "a follower answers reads itself")
		c.send(t, 2, rawzk.Sync("/"))
		require.Zero(t, c.receive(t, 2).Err, "and passes syncs on, which need no owner")
		c.send(t, 3, createOp("/x"))
		c.receiveEnd(t, rawzk.ErrClosed)
		require.False(t, srv.Exists("/x"))
		moved.send(t, 1, createOp("/x"))
		require.Zero(t, moved.receive(t, 1).Err)

		back := c.reconnectTo(t, srv, "a", f.MemAddr())
		back.send(t, 1, createOp("/y"))
		require.Zero(t, back.receive(t, 1).Err)
		moved.send(t, 2, rawzk.Exists("/", false))
		moved.receiveEnd(t, rawzk.ErrClosed)
	})
}

func TestUndeliveredRequestsOfTheOldConnectionAreDropped(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		f := srv.Follower(0)
		c := enterRawAt(t, srv, "a", f.MemAddr())
		srv.Client("a").CutRequests()
		c.send(t, 1, createOp("/unread"))
		synctest.Wait()
		back := c.reconnectTo(t, srv, "b", f.MemAddr())
		srv.Client("a").Heal()
		c.receiveEnd(t, rawzk.ErrClosed)
		back.send(t, 1, rawzk.Sync("/"))
		back.receive(t, 1)
		require.False(t, srv.Exists("/unread"))
	})
}

func TestNewSessionWaitsWithTheOtherRequests(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		f := srv.Follower(0)
		f.HoldRequests()
		entering := start(func() error { enterRawAt(t, srv, "a", f.MemAddr()); return nil })
		require.False(t, entering.ended())
		require.Empty(t, srv.Sessions())
		f.ReleaseRequests()
		require.NoError(t, entering.wait(t))
		require.Len(t, srv.Sessions(), 1)
	})
}

func TestSessionThatEndsElsewhereEndsAllItsConnections(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		f := srv.Follower(0)
		c := enterRawAt(t, srv, "a", f.MemAddr())
		moved := c.reconnectTo(t, srv, "a", srv.MemAddr())
		require.NoError(t, srv.Sessions()[0].Expire())
		c.receiveEnd(t, rawzk.ErrClosed)
		moved.receiveEnd(t, rawzk.ErrClosed)
	})
}
