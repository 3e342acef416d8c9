package queue_test

import (
	"math/rand/v2"
	"testing"
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

// Two kinds of locks at one path do not exclude each other. An acquire that sees nodes of another kind
// warns, once a minute for each path, and does not wait for them.
func TestAnotherKindOfLockAtThePathIsWarnedOf(t *testing.T) {
	for node, warns := range map[string]bool{
		"_c_5b0e-__WRIT__0000000007": true,
		"_c_5b0e-__READ__0000000007": true,
		"5b0e__rlock__0000000007":    true,
		"_c_5b0e-latch-0000000007":   true,
		"leases":                     true,
		"locks":                      false,
		"config":                     false,
		"__WRIT__":                   false,
	} {
		t.Run(node, func(t *testing.T) {
			sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
				core, logs := observer.New(zapcore.WarnLevel)
				c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client("c").DialContext),
					framework.WithLogger(zap.New(core)))
				_, err := c.Create(t.Context(), "/lock/"+node, nil, framework.Parents())
				require.NoError(t, err)
				acquire := func() {
					hold, err := queue.Single(c, "test", "/lock", queue.Exclusive, nil).Acquire(t.Context(), waits)
					require.NoError(t, err)
					require.NoError(t, hold.Release())
				}
				var want []string
				for range 2 {
					for range 3 {
						acquire()
					}
					if warns {
						want = append(want, node)
					}
					time.Sleep(time.Minute)
				}
				var warned []string
				for _, e := range logs.FilterMessageSnippet("another kind of lock").All() {
					require.Equal(t, "docent.test", e.LoggerName)
					require.Equal(t, "/lock", e.ContextMap()["path"])
					warned = append(warned, e.ContextMap()["node"].(string))
				}
				require.Equal(t, want, warned)
			})
		})
	}
}
