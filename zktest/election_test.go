package zktest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/rawzk"
	"github.com/docent-zk/docent/zktest"
)

// Tests of leaders that are frozen or cut off. The tick is one second, and servers wait for each
// other for five.

const (
	syncLimit = 5 * time.Second
	election  = time.Second
	epoch     = int64(1) << 32
)

// readZxid requires that a server answers a read, and returns the transaction id of the answer.
func (r *raw) readZxid(t *testing.T) int64 {
	t.Helper()
	r.send(t, 1000, rawzk.Exists("/", false))
	h := r.receive(t, 1000)
	require.Zero(t, h.Err)
	return h.Zxid
}

func TestLeaderThatIsFrozenForShortGoesOn(t *testing.T) {
	ensemble(t, 2, func(t *testing.T, srv *zktest.Server, f []*zktest.Follower) {
		own := enterRawAt(t, srv, "own", srv.MemAddr())
		other := enterRawAt(t, srv, "other", f[0].MemAddr())
		srv.FreezeLeader()
		own.send(t, 1, createOp("/own"))
		other.send(t, 1, createOp("/other"))
		own.receiveNothing(t, time.Second)
		other.receiveNothing(t, syncLimit-time.Second-1)
		srv.ThawLeader()
		require.Zero(t, own.receive(t, 1).Err)
		require.Zero(t, other.receive(t, 1).Err)
		require.Less(t, other.readZxid(t), epoch)
		require.Equal(t, srv.MemAddr(), srv.Leader().MemAddr())
		time.Sleep(3 * time.Second)
		own.readZxid(t)
	})
}

func TestFollowersOfAFrozenLeaderElectAnother(t *testing.T) {
	for _, followers := range []int{1, 2, 4} {
		ensemble(t, followers, func(t *testing.T, srv *zktest.Server, f []*zktest.Follower) {
			began := time.Now()
			c := enterRawAt(t, srv, "a", f[0].MemAddr())
			c.send(t, 1, ephemeralOp("/mine"))
			c.receive(t, 1)
			srv.FreezeLeader()
			sleepUntil(began, syncLimit-1)
			require.Less(t, c.readZxid(t), epoch, "the follower waits for it")
			sleepUntil(began, syncLimit)
			c.receiveEnd(t, rawzk.ErrClosed)
			sleepUntil(began, syncLimit+election-1)
			away := dialRaw(t, srv.Client("a"), f[0].MemAddr())
			require.NoError(t, away.SendFrame(newSession.Encode()))
			_, err := away.ReadFrame(enough)
			require.ErrorIs(t, err, rawzk.ErrClosed)
			sleepUntil(began, syncLimit+election)
			require.NotEqual(t, srv.MemAddr(), srv.Leader().MemAddr())
			back := c.reconnectTo(t, srv, "a", f[0].MemAddr())
			require.Equal(t, epoch, back.readZxid(t))
			back.send(t, 1, createOp("/new"))
			require.Equal(t, epoch+1, back.receive(t, 1).Zxid)
			stat, err := srv.Stat("/mine")
			require.NoError(t, err)
			require.Equal(t, c.session, stat.EphemeralOwner)
			for _, other := range f {
				enterRawAt(t, srv, "b", other.MemAddr()).send(t, 1, rawzk.Ping())
			}
		})
	}
}

func TestElectionGivesSessionsTheirWholeTimeout(t *testing.T) {
	ensemble(t, 2, func(t *testing.T, srv *zktest.Server, f []*zktest.Follower) {
		began := time.Now()
		enterRawAt(t, srv, "a", f[0].MemAddr())
		sleepUntil(began, 4*time.Second)
		srv.FreezeLeader()
		require.Equal(t, 4*time.Second+syncLimit+election+timeout+time.Second, expiry(t, srv, began))
	})
}

func TestElectionForgetsTimeoutsOfReconnects(t *testing.T) {
	ensemble(t, 2, func(t *testing.T, srv *zktest.Server, f []*zktest.Follower) {
		c := enterRawAt(t, srv, "a", f[0].MemAddr())
		srv.SetSessionTimeouts(time.Minute, time.Minute)
		c.reconnectTo(t, srv, "a", f[0].MemAddr())
		require.Equal(t, time.Minute, srv.Sessions()[0].Timeout)
		srv.FreezeLeader()
		time.Sleep(syncLimit + election)
		synctest.Wait()
		require.Equal(t, timeout, srv.Sessions()[0].Timeout, "as in the transaction that created it")
	})
}

func TestThawedLeaderAnswersWhatNeedsNoQuorumForATick(t *testing.T) {
	ensemble(t, 2, func(t *testing.T, srv *zktest.Server, f []*zktest.Follower) {
		require.NoError(t, srv.Create("/data", []byte("old")))
		host := srv.MemAddr()
		pings, syncs, reads, writes := enterRawAt(t, srv, "pings", host), enterRawAt(t, srv, "syncs", host),
			enterRawAt(t, srv, "reads", host), enterRawAt(t, srv, "writes", host)
		old := zxidOf(t, srv, "/data") + 4
		srv.FreezeLeader()
		pings.send(t, 1, rawzk.Ping())
		syncs.send(t, 1, rawzk.Sync("/"))
		reads.send(t, 1, rawzk.GetData("/data", false))
		writes.send(t, 1, createOp("/unheard"))
		writes.send(t, 2, rawzk.Sync("/"))
		time.Sleep(syncLimit + election)
		synctest.Wait()
		require.NoError(t, srv.Set("/data", []byte("new")))
		pings.receiveNothing(t, time.Millisecond)

		thawed := time.Now()
		srv.ThawLeader()
		require.Equal(t, old, pings.receive(t, -2).Zxid)
		require.Equal(t, old, syncs.receive(t, 1).Zxid)
		frame, err := reads.ReadFrame(enough)
		require.NoError(t, err)
		d := rawzk.Decode(frame)
		d.Header()
		require.Equal(t, "old", string(d.Buf()))
		back := pings.reconnectTo(t, srv, "pings", host)
		pings.receiveEnd(t, rawzk.ErrClosed)
		writes.receiveNothing(t, election-1)
		require.Equal(t, old, back.readZxid(t))
		sleepUntil(thawed, election)
		for _, c := range []*raw{back, syncs, reads, writes} {
			c.receiveEnd(t, rawzk.ErrClosed)
		}
		require.False(t, srv.Exists("/unheard"))
		again := reads.reconnectTo(t, srv, "reads", host)
		require.Equal(t, epoch+1, again.readZxid(t), "it follows the new leader")
		again.send(t, 1, createOp("/x"))
		require.Equal(t, epoch+2, again.receive(t, 1).Zxid)
		require.NotEqual(t, host, srv.Leader().MemAddr())
	})
}

// A stale leader that hears from a session does not keep it alive.
func TestStaleLeaderKeepsNoSessionAlive(t *testing.T) {
	ensemble(t, 2, func(t *testing.T, srv *zktest.Server, f []*zktest.Follower) {
		began := time.Now()
		c := enterRaw(t, srv, "a")
		srv.FreezeLeader()
		c.send(t, 1, rawzk.Ping())
		sleepUntil(began, syncLimit+election+timeout)
		srv.ThawLeader()
		c.receive(t, -2)
		require.Equal(t, syncLimit+election+timeout+time.Second, expiry(t, srv, began))
	})
}

func TestLeaderThatIsThawedDuringTheElectionDoesNotKeepItsFollowers(t *testing.T) {
	ensemble(t, 2, func(t *testing.T, srv *zktest.Server, f []*zktest.Follower) {
		began := time.Now()
		c := enterRaw(t, srv, "a")
		srv.FreezeLeader()
		sleepUntil(began, syncLimit+election/2)
		srv.ThawLeader()
		c.send(t, 1, createOp("/x"))
		c.send(t, 2, rawzk.Sync("/"))
		c.receiveNothing(t, election-1)
		time.Sleep(election)
		synctest.Wait()
		require.False(t, srv.Exists("/x"))
		require.NotEqual(t, srv.MemAddr(), srv.Leader().MemAddr())
		c.receiveEnd(t, rawzk.ErrClosed)
	})
}

func TestIsolatedLeaderAnswersReadsAndSyncsAndNoWrites(t *testing.T) {
	ensemble(t, 2, func(t *testing.T, srv *zktest.Server, f []*zktest.Follower) {
		reads, writes := enterRaw(t, srv, "reads"), enterRaw(t, srv, "writes")
		srv.IsolateLeader()
		writes.send(t, 1, createOp("/x"))
		writes.send(t, 2, rawzk.Exists("/x", false))
		reads.send(t, 1, rawzk.Sync("/"))
		require.Zero(t, reads.receive(t, 1).Err)
		reads.readZxid(t)
		writes.receiveNothing(t, syncLimit-1)
		srv.RestoreAll()
		require.Zero(t, writes.receive(t, 1).Err)
		require.Zero(t, writes.receive(t, 2).Err)
		require.Less(t, reads.readZxid(t), epoch)
	})
}

func TestIsolatedLeaderStepsDown(t *testing.T) {
	for _, followers := range []int{1, 2} {
		ensemble(t, followers, func(t *testing.T, srv *zktest.Server, f []*zktest.Follower) {
			began := time.Now()
			c := enterRaw(t, srv, "a")
			srv.IsolateLeader()
			c.send(t, 1, createOp("/lost"))
			c.receiveNothing(t, syncLimit-1)
			sleepUntil(began, syncLimit)
			c.receiveEnd(t, rawzk.ErrClosed)
			require.Nil(t, srv.Leader())
			sleepUntil(began, syncLimit+election)
			require.NotEqual(t, srv.MemAddr(), srv.Leader().MemAddr())
			require.False(t, srv.Exists("/lost"))
			back := c.reconnectTo(t, srv, "a", f[0].MemAddr())
			back.send(t, 1, createOp("/x"))
			require.Zero(t, back.receive(t, 1).Err)
			srv.RestoreAll()
			require.GreaterOrEqual(t, back.reconnectTo(t, srv, "a", srv.MemAddr()).readZxid(t), epoch)
		})
	}
}

func TestCutsOfAllFollowersMakeTheLeaderStepDown(t *testing.T) {
	ensemble(t, 2, func(t *testing.T, srv *zktest.Server, f []*zktest.Follower) {
		c := enterRawAt(t, srv, "a", f[0].MemAddr())
		for _, each := range f {
			each.CutLeader()
		}
		c.send(t, 1, createOp("/lost"))
		time.Sleep(syncLimit + election)
		synctest.Wait()
		c.receiveEnd(t, rawzk.ErrClosed)
		require.NotNil(t, srv.Leader())
		require.NotEqual(t, srv.MemAddr(), srv.Leader().MemAddr())
		require.False(t, srv.Exists("/lost"))
	})
}

// A follower that is cut off does not affect the others.
func TestWritesThatWaitForAQuorumGoOnWhenAFollowerComesBack(t *testing.T) {
	ensemble(t, 2, func(t *testing.T, srv *zktest.Server, f []*zktest.Follower) {
		own := enterRawAt(t, srv, "own", srv.MemAddr())
		f[0].CutLeader()
		time.Sleep(syncLimit - time.Second)
		f[1].CutLeader()
		time.Sleep(2 * time.Second) // the first has given up, the second has not
		own.send(t, 1, createOp("/first"))
		own.receiveNothing(t, time.Second)
		f[0].Restore()
		require.Zero(t, own.receive(t, 1).Err)
		own.send(t, 2, createOp("/second"))
		require.Zero(t, own.receive(t, 2).Err)
		first, err := srv.Stat("/first")
		require.NoError(t, err)
		second, err := srv.Stat("/second")
		require.NoError(t, err)
		require.Less(t, first.Czxid, second.Czxid)
	})
}

func TestOneCutOfTwoAffectsOneFollower(t *testing.T) {
	ensemble(t, 2, func(t *testing.T, srv *zktest.Server, f []*zktest.Follower) {
		c, own := enterRawAt(t, srv, "a", f[1].MemAddr()), enterRaw(t, srv, "own")
		f[0].CutLeader()
		time.Sleep(syncLimit + election)
		synctest.Wait()
		for _, each := range []*raw{c, own} {
			each.send(t, 1, rawzk.SetData("/zookeeper/quota", nil, -1))
			require.Less(t, each.receive(t, 1).Zxid, epoch)
		}
		require.Equal(t, srv.MemAddr(), srv.Leader().MemAddr())
	})
}

func TestLeaderThatRestartsIsFollowedByAnElection(t *testing.T) {
	ensemble(t, 2, func(t *testing.T, srv *zktest.Server, f []*zktest.Follower) {
		c := enterRawAt(t, srv, "a", f[0].MemAddr())
		srv.Leader().Restart()
		c.receiveEnd(t, rawzk.ErrClosed)
		time.Sleep(election)
		synctest.Wait()
		require.Equal(t, epoch, c.reconnectTo(t, srv, "a", srv.MemAddr()).readZxid(t))
	})
}

func TestSessionOverdueWithoutAQuorumEndsWithTheNext(t *testing.T) {
	ensemble(t, 2, func(t *testing.T, srv *zktest.Server, f []*zktest.Follower) {
		began := time.Now()
		c := enterRaw(t, srv, "a")
		sleepUntil(began, 7*time.Second)
		srv.IsolateLeader()
		sleepUntil(began, 10500*time.Millisecond)
		require.Len(t, srv.Sessions(), 1)
		c.send(t, 1, rawzk.Ping())
		c.receiveNothing(t, time.Second)
		srv.RestoreAll()
		synctest.Wait()
		require.Empty(t, srv.Sessions(), "the leader had begun to expire it")
	})
}

func TestServersThatStartFollowTheLastLeader(t *testing.T) {
	ensemble(t, 2, func(t *testing.T, srv *zktest.Server, f []*zktest.Follower) {
		c := enterRawAt(t, srv, "a", f[0].MemAddr())
		srv.FreezeLeader()
		time.Sleep(syncLimit + election)
		synctest.Wait()
		require.NoError(t, srv.Restart())
		for _, host := range []string{srv.MemAddr(), f[0].MemAddr(), f[1].MemAddr()} {
			c = c.reconnectTo(t, srv, "a", host)
			c.send(t, 1, rawzk.Sync("/"))
			require.GreaterOrEqual(t, c.receive(t, 1).Zxid, epoch)
		}
		srv.Stop()
		require.NoError(t, srv.Wipe())
		require.NoError(t, srv.Start())
		require.Less(t, enterRaw(t, srv, "b").readZxid(t), epoch)
	})
}

func TestFrozenServerWithoutFollowersHoldsNoElection(t *testing.T) {
	ensemble(t, 0, func(t *testing.T, srv *zktest.Server, _ []*zktest.Follower) {
		c := enterRaw(t, srv, "a")
		srv.FreezeLeader()
		c.send(t, 1, createOp("/x"))
		c.receiveNothing(t, timeout/2)
		srv.ThawLeader()
		require.Zero(t, c.receive(t, 1).Err)
		srv.FreezeLeader()
		c.send(t, 2, rawzk.Ping())
		time.Sleep(2 * timeout)
		synctest.Wait()
		require.Len(t, srv.Sessions(), 1)
		srv.ThawLeader()
		synctest.Wait()
		require.Empty(t, srv.Sessions(), "sessions past their timeout expire first")
	})
}
