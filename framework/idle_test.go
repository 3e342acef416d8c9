package framework_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// The load of idle sessions is proportional to their number: a heartbeat of each in each sixth of its
// timeout, and no pings.
func TestIdleSessionsSendOneRequestInEachSixthOfTheirTimeout(t *testing.T) {
	const (
		timeout  = 30 * time.Second
		timeouts = 20
	)
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		for _, sessions := range []int{1, 100} {
			for i := range sessions {
				c, err := framework.New(srv.MemAddr(), framework.WithSessionTimeout(timeout),
					framework.WithDialer(srv.Client(fmt.Sprint(sessions, " ", i)).DialContext))
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, c.Close()) })
				require.NoError(t, c.WaitConnected(t.Context()))
			}
			time.Sleep(timeout) // by then replies come in an even stream
			srv.ResetCounts()
			time.Sleep(timeouts * timeout)
			sent := srv.Requests()
			each := float64(sent.Total()) / float64(len(srv.Sessions()))
			require.InDelta(t, 6*timeouts, each, 2, "%v", sent)
			require.Zero(t, sent[fault.OpPing])
		}
	})
}
