package queue_test

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/internal/queue"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// Each acquire may use a lock value of its own, and there may be thousands in a second.
func TestWarningOfTheSequenceCounterComesOnceAMinuteForEachLock(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		core, logs := observer.New(zapcore.WarnLevel)
		c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client("c").DialContext),
			framework.WithLogger(zap.New(core)))
		acquire := func(path string, times int) {
			for range times {
				hold, err := queue.Single(c, "test", path, queue.Exclusive, nil).Acquire(t.Context(), waits)
				require.NoError(t, err)
				require.NoError(t, hold.Release())
			}
		}
		warnings := func() int {
			synctest.Wait() // the log is written
			return logs.FilterMessageSnippet("running out").Len()
		}
		runOut := func(path string) {
			acquire(path, 1) // creates the parent if it is missing
			require.NoError(t, srv.SetSequence(path, 1<<30))
		}
		runOut("/a")
		runOut("/b")
		require.Zero(t, warnings())
		acquire("/a", 100)
		require.Equal(t, 1, warnings(), "of one lock")
		acquire("/b", 100)
		require.Equal(t, 2, warnings(), "of two locks")
		time.Sleep(time.Minute)
		runOut("/a")
		acquire("/a", 100)
		require.Equal(t, 3, warnings(), "a minute later")
		require.Equal(t, "docent.test", logs.All()[0].LoggerName)
	})
}
