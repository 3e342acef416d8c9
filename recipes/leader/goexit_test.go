package leader_test

import (
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/leader"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// The metrics of the program end the goroutine that calls them, as testing.T.FailNow does.
func TestLatchWithAnEndedGoroutineCanBeClosed(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		var ended atomic.Bool
		c := testzk.Connected(t, srv.MemAddr(), framework.WithMetrics(measuring(&ended, runtime.Goexit)),
			framework.WithDialer(srv.Client("c").DialContext))
		l, err := leader.NewLatch(c, "/latch")
		require.NoError(t, err)
		require.NoError(t, l.Start(t.Context()))
		_, err = l.Await(t.Context())
		require.ErrorContains(t, err, "ended the goroutine")
		require.True(t, ended.Load())
		_ = l.Close() // it must return
	})
}
