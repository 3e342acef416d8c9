package mutex_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/mutex"
)

// The log has the ids of a hold in hexadecimal, as the servers' log and tools show them.
func TestLogOfAHold(t *testing.T) {
	core, logs := observer.New(zap.DebugLevel)
	c := testzk.Connected(t, testzk.Connect(), framework.WithLogger(zap.New(core)))
	ctx, observer := testzk.Context(t), testzk.Observer(t)
	mu, err := mutex.New(c, testzk.Path(t))
	require.NoError(t, err)
	deleted, err := mu.Acquire(ctx)
	require.NoError(t, err)
	_, stat, err := observer.Exists(deleted.Path())
	require.NoError(t, err)
	require.NoError(t, observer.Delete(deleted.Path(), -1))
	<-deleted.Done()
	logged := func(n int) {
		testzk.Eventually(t, func() bool { return logs.FilterMessage("hold ended").Len() == n },
			"the end of a hold is logged in the background")
	}
	logged(1)
	closed, err := mu.Acquire(ctx)
	require.NoError(t, err)
	require.NoError(t, c.Close())
	<-closed.Done()
	logged(2)

	session, token := fmt.Sprintf("%#x", uint64(stat.EphemeralOwner)), fmt.Sprintf("%#x", stat.Czxid)
	acquired, ended := logs.FilterMessage("acquired").All(), logs.FilterMessage("hold ended").All()
	require.Len(t, acquired, 2)
	require.Len(t, ended, 2)
	for _, entry := range append(acquired, ended...) {
		require.Equal(t, "docent.mutex", entry.LoggerName)
		require.Equal(t, session, entry.ContextMap()["session"])
	}
	require.Equal(t, token, acquired[0].ContextMap()["token"])
	require.Equal(t, token, ended[0].ContextMap()["token"])
	require.Equal(t, zap.WarnLevel, ended[0].Level, "it was lost")
	require.Equal(t, zap.InfoLevel, ended[1].Level, "the client was closed")
}
