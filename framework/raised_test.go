package framework_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// asking returns a connected client that asks for the given session timeout.
func asking(t *testing.T, srv *zktest.Server, timeout time.Duration, opts ...framework.Option) *framework.Client {
	opts = append(opts, framework.WithDialer(srv.Client("a").DialContext), framework.WithSessionTimeout(timeout),
		framework.WithRetry(retry.Forever(100*time.Millisecond)))
	c, err := framework.New(srv.MemAddr(), opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	require.NoError(t, c.WaitConnected(t.Context()))
	return c
}

// requireGranted checks the shortest timeout that the client's session was granted.
func requireGranted(t *testing.T, c *framework.Client, timeout time.Duration) {
	t.Helper()
	s, err := c.Session(t.Context())
	require.NoError(t, err)
	require.Equal(t, timeout, s.Timeout())
}

// A connection that is made again asks for what the program asked for, whatever was granted before. The client
// keeps to the shortest timeout: the servers may go back to it.
func TestConnectionThatIsMadeAgainAsksForTheTimeoutOfTheProgram(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		c := asking(t, srv, 30*time.Second)
		hold := acquire(t, c)
		requireGranted(t, c, 6*time.Second)
		srv.SetSessionTimeouts(time.Second, time.Hour)
		srv.Client("a").Drop()
		time.Sleep(30 * time.Second)
		require.Equal(t, 30*time.Second, srv.Sessions()[0].Timeout)
		requireGranted(t, c, 6*time.Second)
		require.NoError(t, hold.Err())
	}, zktest.WithSessionTimeouts(time.Second, 6*time.Second))
}

// A server that grants more than was asked for has told its shortest timeout, also on a connection
// that is made again. Answers never come evenly enough then, and heartbeats come four times as
// often.
func TestTimeoutThatIsRaisedCountsAsTheShortestOfTheServerAfterAReconnect(t *testing.T) {
	const raised = 12 * time.Second
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		c := asking(t, srv, 2*time.Second)
		hold := acquire(t, c)
		for range 2 {
			time.Sleep(2 * raised)
			requireGranted(t, c, raised)
			before := srv.Client("a").Requests()[fault.OpSync]
			time.Sleep(5 * raised)
			syncs := srv.Client("a").Requests()[fault.OpSync] - before
			require.InDelta(t, 5*4*6, syncs, 5, "heartbeats within five timeouts")
			require.NoError(t, hold.Err())
			srv.Client("a").Drop()
		}
	}, zktest.WithSessionTimeouts(raised, time.Hour))
}

// The answers that a session with a raised timeout can rely on are a third of it old. Where the
// deadline is nearer than two fifths of the timeout, only frequent heartbeats keep the session.
func TestSessionWithARaisedTimeoutOutlivesANearDeadline(t *testing.T) {
	const raised = 12 * time.Second
	for _, fraction := range []float64{1.0 / 3, 0.36, 0.4} {
		t.Run(fmt.Sprintf("%.2f", fraction), func(t *testing.T) {
			sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
				srv.On(fault.Match{Op: fault.OpSync, Times: fault.Always}, fault.Delay(200*time.Millisecond))
				c := asking(t, srv, 2*time.Second, framework.WithLossDeadline(fraction))
				requireGranted(t, c, raised)
				hold := acquire(t, c)
				time.Sleep(20 * raised)
				require.NoError(t, hold.Err())
			}, zktest.WithSessionTimeouts(raised, time.Hour))
		})
	}
}

// A server that grants more than the client asks for may have long ticks. Its reports may take longer than the
// holds of a session that was granted less could last. So the session ends at once, and the next one has the longer
// timeout.
func TestSessionBelowTheMinimumOfALaterServerEnds(t *testing.T) {
	for _, raised := range []time.Duration{5 * time.Second, 30 * time.Second} {
		t.Run(raised.String(), func(t *testing.T) {
			sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
				c := asking(t, srv, 4*time.Second)
				first, hold := session(t, c), acquire(t, c)
				srv.SetSessionTimeouts(raised, time.Hour)
				srv.Client("a").Drop()
				<-hold.Done()
				require.ErrorIs(t, hold.Err(), framework.ErrSessionLost)
				require.ErrorContains(t, hold.Err(), "its timeout of 4s is below the minimum of a server, which is")
				require.ErrorContains(t, hold.Err(), raised.String())
				next := acquire(t, c)
				require.NotEqual(t, first.ID(), session(t, c).ID())
				requireGranted(t, c, raised)
				require.Len(t, srv.Sessions(), 1, "the first one is closed")
				time.Sleep(20 * raised)
				require.NoError(t, next.Err())
			}, zktest.WithSessionTimeouts(time.Second, time.Hour))
		})
	}
}

// The session was granted more than the client asks for, and then less by another server. The first one may be the
// ZooKeeper leader, with long ticks.
func TestSessionBelowTheMinimumOfAnEarlierServerEnds(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		c := asking(t, srv, 4*time.Second)
		requireGranted(t, c, 14*time.Second)
		hold := acquire(t, c)
		srv.SetSessionTimeouts(time.Second, time.Hour)
		srv.Client("a").Drop()
		<-hold.Done()
		require.ErrorContains(t, hold.Err(), "its timeout of 4s is below the minimum of a server, which is 14s")
		next := acquire(t, c)
		requireGranted(t, c, 4*time.Second)
		time.Sleep(time.Minute)
		require.NoError(t, next.Err())
	}, zktest.WithSessionTimeouts(14*time.Second, time.Hour))
}

// A connection was granted the same timeout as before, and was not confirmed. The next one is granted a shorter
// timeout. That counts from the next one on.
func TestUnconfirmedConnectionCountsWithItsOwnTimeout(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		c := asking(t, srv, 30*time.Second)
		hold := acquire(t, c)
		time.Sleep(60 * time.Second)
		rule := srv.On(fault.Match{Op: fault.OpMulti, Times: fault.Always}, fault.Delay(9*time.Second))
		srv.Client("a").Drop()
		time.Sleep(8 * time.Second)
		rule.Remove()
		require.NoError(t, hold.Err())
		srv.SetSessionTimeouts(time.Second, 6*time.Second)
		srv.Client("a").Drop()
		time.Sleep(20 * time.Second)
		require.NoError(t, hold.Err())
	}, zktest.WithSessionTimeouts(time.Second, time.Hour))
}

// A suspension before an unconfirmed connection makes the deadline earlier that counts from before it.
func TestSuspensionBeforeAnUnconfirmedConnectionCounts(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		c := asking(t, srv, 30*time.Second)
		hold := acquire(t, c)
		time.Sleep(time.Minute)
		srv.Client("a").Refuse(true)
		srv.Client("a").Drop()
		framework.PretendSuspension(8 * time.Second)
		before := hold.ValidUntil()
		srv.SetSessionTimeouts(time.Second, 24*time.Second)
		srv.On(fault.Match{Op: fault.OpMulti, Times: fault.Always}, fault.Hold())
		srv.Client("a").Refuse(false)
		time.Sleep(2 * time.Second)
		requireGranted(t, c, 24*time.Second)
		require.NoError(t, hold.Err())
		require.False(t, hold.ValidUntil().After(before), "the connection is not confirmed")
	}, zktest.WithSessionTimeouts(time.Second, time.Hour))
}

// As TestNodeOfASessionThatCannotBeClosedIsDeleted, but the session was first granted 5 s, and then the 20 s that
// the client asks for. The servers keep it for that long.
func TestNodeOfASessionWithALongerTimeoutIsDeleted(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		d, cut := &detour{t: t, srv: srv, follower: srv.Follower(0)}, &routes{}
		logged, logs := observer.New(zap.InfoLevel)
		d.connectBy(cut, framework.WithLogger(zap.New(logged)))
		require.Equal(t, 5*time.Second, srv.Sessions()[0].Timeout)
		for _, f := range srv.Members() {
			f.SetSessionTimeouts(time.Second, time.Hour)
		}
		for range 2 { // to the leader, and back to the follower
			srv.Client("a").Drop()
			time.Sleep(time.Second)
		}
		require.Equal(t, 20*time.Second, srv.Sessions()[0].Timeout)
		d.createLate(cut, logs)
		time.Sleep(10 * time.Minute)
		d.empty()
	}, zktest.WithSessionTimeouts(time.Second, 5*time.Second))
}

// The client cannot close a lost session for 8 s. It tries for longer than the timeout that it relied on, because
// the servers would keep the session for the one that they granted last.
func TestSessionIsClosedAsLongAsTheServersMayKeepIt(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		c := asking(t, srv, 30*time.Second)
		srv.SetSessionTimeouts(time.Second, time.Hour)
		srv.Client("a").Drop()
		time.Sleep(time.Second)
		first := session(t, c)
		hold := acquire(t, c)
		srv.Client("a").Cut()
		<-hold.Done()
		rule := srv.On(fault.Match{Op: fault.OpCloseSession, Client: "a", Times: 1000}, fault.DropBefore())
		srv.Client("a").Heal()
		start := time.Now()
		awaitSessionAfter(t, c, first.ID())
		time.Sleep(8 * time.Second)
		rule.Remove()
		next := acquire(t, c)
		require.NoError(t, next.Err())
		require.Less(t, time.Since(start), 12*time.Second)
	}, zktest.WithSessionTimeouts(time.Second, 4*time.Second))
}
