package framework_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
