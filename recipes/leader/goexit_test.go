package leader_test

import (
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/leader"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// A logger of the program ends the goroutine that calls it, as testing.T.FailNow does.
func TestLatchWithAnEndedGoroutineCanBeClosed(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		var ended atomic.Bool
		core, _ := observer.New(zap.DebugLevel)
		log := zap.New(core, zap.Hooks(func(e zapcore.Entry) error {
			if e.Message == "acquired" && ended.CompareAndSwap(false, true) {
				runtime.Goexit()
			}
			return nil
		}))
		c := testzk.Connected(t, srv.MemAddr(),
			framework.WithLogger(log), framework.WithDialer(srv.Client("c").DialContext))
		l, err := leader.NewLatch(c, "/latch")
		require.NoError(t, err)
		require.NoError(t, l.Start(t.Context()))
		_, err = l.Await(t.Context())
		require.ErrorContains(t, err, "ended the goroutine")
		require.True(t, ended.Load())
		_ = l.Close() // it must return
	})
}
