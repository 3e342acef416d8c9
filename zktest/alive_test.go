package zktest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/rawzk"
	"github.com/docent-zk/docent/zktest"
)

// Tests of what the leader hears of sessions, and of session timeouts.

// ensemble runs a test with a tick of one second, a leader and a number of followers.
func ensemble(
	t *testing.T, followers int, test func(t *testing.T, srv *zktest.Server, f []*zktest.Follower),
	opts ...zktest.Option,
) {
	t.Helper()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		f := make([]*zktest.Follower, followers)
		for i := range f {
			f[i] = srv.Follower(0)
		}
		test(t, srv, f)
	}, append([]zktest.Option{zktest.WithTick(time.Second)}, opts...)...)
}

// sleepUntil waits for an instant, given as a time since the start of the test.
func sleepUntil(began time.Time, at time.Duration) {
	time.Sleep(time.Until(began.Add(at)))
	synctest.Wait()
}

// expiry returns the time at which the only session expires.
func expiry(t *testing.T, srv *zktest.Server, began time.Time) time.Duration {
	t.Helper()
	for range 10_000 {
		synctest.Wait()
		if len(srv.Sessions()) == 0 {
			return time.Since(began)
		}
		time.Sleep(100 * time.Millisecond)
	}
	require.FailNow(t, "the session does not expire")
	return 0
}

// The session's timeout is 9 s, and its last ping is at 0.9 s. On the leader it expires at 10 s,
// the first whole second after 9.9 s. A follower reports the ping at 1 s.
func TestLeaderCountsWhatAFollowerReports(t *testing.T) {
	ensemble(t, 1, func(t *testing.T, srv *zktest.Server, f []*zktest.Follower) {
		expiries := map[string]time.Duration{srv.MemAddr(): 10 * time.Second, f[0].MemAddr(): 11 * time.Second}
		for host, want := range expiries {
			synctest.Wait()
			time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)))
			began := time.Now()
			c := enterRawAt(t, srv, "a", host)
			sleepUntil(began, 900*time.Millisecond)
			c.send(t, 1, rawzk.Ping())
			c.receive(t, -2)
			require.Equal(t, want, expiry(t, srv, began), "%s", host)
		}
	})
}

// The leader pings each half second from when it has begun to lead, 0.3 s after a whole second. So a follower
// reports at 1.3 s what its client has sent at 0.9 s.
func TestFollowerReportsByTheTicksOfTheLeader(t *testing.T) {
	for cut, want := range map[time.Duration]time.Duration{
		1100 * time.Millisecond: 10 * time.Second, 1400 * time.Millisecond: 11 * time.Second,
	} {
		ensemble(t, 1, func(t *testing.T, srv *zktest.Server, f []*zktest.Follower) {
			began := time.Now()
			sleepUntil(began, 300*time.Millisecond)
			require.NoError(t, srv.Restart())
			c := enterRawAt(t, srv, "a", f[0].MemAddr())
			sleepUntil(began, 900*time.Millisecond)
			c.send(t, 1, rawzk.Ping())
			c.receive(t, -2)
			sleepUntil(began, cut)
			f[0].CutLeader()
			require.Equal(t, want, expiry(t, srv, began), "cut at %v", cut)
		}, zktest.WithConfig("syncLimit", "20"))
	}
}

func TestFollowerWithoutALeaderReportsNothing(t *testing.T) {
	cuts := map[string]func(*zktest.Follower){
		"both ways": (*zktest.Follower).CutLeader,
		"to":        (*zktest.Follower).CutToLeader,
		"from":      (*zktest.Follower).CutFromLeader,
	}
	for name, cut := range cuts {
		t.Run(name, func(t *testing.T) {
			ensemble(t, 1, func(t *testing.T, srv *zktest.Server, f []*zktest.Follower) {
				began := time.Now()
				c := enterRawAt(t, srv, "a", f[0].MemAddr())
				cut(f[0])
				for range 9 {
					time.Sleep(time.Second)
					c.send(t, 1, rawzk.Ping())
					c.receive(t, -2)
				}
				require.Equal(t, 10*time.Second, expiry(t, srv, began))
			}, zktest.WithConfig("syncLimit", "20"))
		})
	}
}

func TestFollowerReportsAfterAShortCut(t *testing.T) {
	ensemble(t, 1, func(t *testing.T, srv *zktest.Server, f []*zktest.Follower) {
		began := time.Now()
		c := enterRawAt(t, srv, "a", f[0].MemAddr())
		f[0].CutLeader()
		time.Sleep(4 * time.Second)
		c.send(t, 1, rawzk.Ping())
		c.receive(t, -2)
		sleepUntil(began, 4900*time.Millisecond)
		f[0].Restore()
		require.Equal(t, 15*time.Second, expiry(t, srv, began), "the report comes at 5 s")
	})
}

func TestLeaderHearsOfAReturningSessionAtOnce(t *testing.T) {
	ensemble(t, 1, func(t *testing.T, srv *zktest.Server, f []*zktest.Follower) {
		began := time.Now()
		c := enterRaw(t, srv, "a")
		sleepUntil(began, 3900*time.Millisecond)
		c.reconnectTo(t, srv, "a", f[0].MemAddr())
		f[0].CutLeader()
		require.Equal(t, 13*time.Second, expiry(t, srv, began))
	}, zktest.WithConfig("syncLimit", "20"))
}

// A connection that its client left without closing it keeps the session alive as long as pings
// arrive on it.
func TestPingsOfAnOldConnectionCount(t *testing.T) {
	ensemble(t, 1, func(t *testing.T, srv *zktest.Server, f []*zktest.Follower) {
		began := time.Now()
		c := enterRawAt(t, srv, "a", f[0].MemAddr())
		c.reconnectTo(t, srv, "a", srv.MemAddr())
		sleepUntil(began, 3900*time.Millisecond)
		c.send(t, 1, rawzk.Ping())
		c.receive(t, -2)
		require.Equal(t, 14*time.Second, expiry(t, srv, began))
	})
}

func TestFollowerWithoutALeaderServesNoClientAfterSyncLimit(t *testing.T) {
	cuts := map[string]func(*zktest.Follower){
		"both ways": (*zktest.Follower).CutLeader,
		"to":        (*zktest.Follower).CutToLeader,
		"from":      (*zktest.Follower).CutFromLeader,
	}
	for name, cut := range cuts {
		t.Run(name, func(t *testing.T) {
			ensemble(t, 1, func(t *testing.T, srv *zktest.Server, f []*zktest.Follower) {
				began := time.Now()
				c := enterRawAt(t, srv, "a", f[0].MemAddr())
				cut(f[0])
				sleepUntil(began, 3*time.Second-1)
				c.send(t, 1, rawzk.Exists("/", false))
				c.receive(t, 1)
				sleepUntil(began, 3*time.Second)
				c.receiveEnd(t, rawzk.ErrClosed)
				away := dialRaw(t, srv.Client("a"), f[0].MemAddr())
				require.NoError(t, away.SendFrame(newSession.Encode()))
				_, err := away.ReadFrame(enough)
				require.ErrorIs(t, err, rawzk.ErrClosed)
				require.NoError(t, srv.Create("/x", nil), "the leader still serves")
				f[0].Restore()
				back := c.reconnectTo(t, srv, "a", f[0].MemAddr())
				back.send(t, 1, rawzk.Exists("/x", false))
				require.Zero(t, back.receive(t, 1).Err)
			}, zktest.WithConfig("syncLimit", "3"))
		})
	}
}

// The network may be cut in one direction: the leader carries out a request, and the follower does
// not learn of it.
func TestAnswersWaitWhileWhatTheLeaderSendsIsCut(t *testing.T) {
	ensemble(t, 1, func(t *testing.T, srv *zktest.Server, f []*zktest.Follower) {
		c := enterRawAt(t, srv, "a", f[0].MemAddr())
		f[0].CutFromLeader()
		c.send(t, 1, rawzk.Sync("/"))
		c.send(t, 2, createOp("/x"))
		c.send(t, 3, rawzk.Exists("/x", false))
		c.receiveNothing(t, 4*time.Second)
		require.True(t, srv.Exists("/x"))
		require.NoError(t, srv.Create("/later", nil))
		f[0].Restore()
		require.Zero(t, c.receive(t, 1).Err)
		require.Equal(t, zxidOf(t, srv, "/x"), c.receive(t, 2).Zxid, "its own transaction, not the last")
		require.Zero(t, c.receive(t, 3).Err)
	})
}

// Requests that were sent to a frozen leader before a cut are in its sockets.
func TestFrozenLeaderHasWhatWasSentBeforeACut(t *testing.T) {
	ensemble(t, 1, func(t *testing.T, srv *zktest.Server, f []*zktest.Follower) {
		c := enterRawAt(t, srv, "a", f[0].MemAddr())
		srv.FreezeLeader()
		c.send(t, 1, rawzk.Sync("/"))
		synctest.Wait()
		f[0].CutToLeader()
		c.send(t, 2, rawzk.Sync("/"))
		c.receiveNothing(t, time.Second)
		srv.ThawLeader()
		require.Zero(t, c.receive(t, 1).Err)
		c.receiveNothing(t, time.Second)
		f[0].Restore()
		require.Zero(t, c.receive(t, 2).Err)
	})
}

func TestReconnectIsGrantedANewTimeout(t *testing.T) {
	const shorter, longer = 4 * time.Second, 20 * time.Second
	hosts := map[string]func(*zktest.Server, []*zktest.Follower) string{
		"leader":   func(srv *zktest.Server, _ []*zktest.Follower) string { return srv.MemAddr() },
		"follower": func(_ *zktest.Server, f []*zktest.Follower) string { return f[0].MemAddr() },
	}
	for name, host := range hosts {
		for _, bound := range []time.Duration{shorter, longer} {
			t.Run(name+" "+bound.String(), func(t *testing.T) {
				ensemble(t, 1, func(t *testing.T, srv *zktest.Server, f []*zktest.Follower) {
					began := time.Now()
					c := enterRawAt(t, srv, "a", host(srv, f))
					srv.SetSessionTimeouts(bound, bound)
					sleepUntil(began, time.Second)
					require.Equal(t, timeout, srv.Sessions()[0].Timeout, "until it connects again")
					back := c.reconnectTo(t, srv, "a", host(srv, f))
					require.Equal(t, bound, srv.Sessions()[0].Timeout)
					sleepUntil(began, 2900*time.Millisecond)
					back.send(t, 1, rawzk.Ping())
					back.receive(t, -2)
					want := map[string]time.Duration{"leader": 3 * time.Second, "follower": 4 * time.Second}[name]
					require.Equal(t, want+bound, expiry(t, srv, began))
				})
			})
		}
	}
}

func TestServersMayGrantOtherTimeouts(t *testing.T) {
	ensemble(t, 1, func(t *testing.T, srv *zktest.Server, f []*zktest.Follower) {
		f[0].SetSessionTimeouts(time.Second, 2*time.Second)
		c := enterRaw(t, srv, "a")
		require.Equal(t, timeout, srv.Sessions()[0].Timeout)
		c.reconnectTo(t, srv, "a", f[0].MemAddr())
		require.Equal(t, 2*time.Second, srv.Sessions()[0].Timeout)
		c.reconnectTo(t, srv, "a", srv.MemAddr())
		require.Equal(t, timeout, srv.Sessions()[0].Timeout)
		require.Panics(t, func() { f[0].SetSessionTimeouts(2*time.Second, time.Second) })
		require.Panics(t, func() { srv.SetSessionTimeouts(0, time.Second) })
	})
}
