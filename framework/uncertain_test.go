package framework_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

// The outcome of a create is unknown. The server may still create the node while the session of the
// request lives. So the client does not search for a persistent node before the servers have ended
// that session.
func TestUncertainNodeIsSearchedAfterItsSessionHasEndedOnTheServers(t *testing.T) {
	const timeout = 30 * time.Second
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.WithSessionTimeouts(time.Second, timeout))
		client := srv.Client("a")
		c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(client.DialContext),
			framework.WithSessionTimeout(timeout), framework.WithRetry(retry.Forever(time.Second)))
		srv.On(fault.Match{Op: fault.OpCreate}, fault.DropAfter())
		client.Refuse(true)
		created := make(chan error, 1)
		go func() {
			_, err := c.Create(t.Context(), "/a", nil, framework.Protected())
			created <- err
		}()
		time.Sleep(timeout * 5 / 6) // the client has lost the session, the server has not expired it
		require.Len(t, srv.Sessions(), 1)
		slow := srv.On(fault.Match{Op: fault.OpCloseSession, Client: "a"}, fault.Delay(time.Second))
		client.Refuse(false)
		require.NoError(t, <-created)
		require.Equal(t, 1, slow.Hits())

		at := func(what, session string) int {
			return slices.IndexFunc(srv.Trace().Entries, func(e zktest.Entry) bool {
				return e.What == what && e.Session == session
			})
		}
		require.Positive(t, at("closeSession", "s1"))
		require.Greater(t, at("getChildren2", "s2"), at("closeSession", "s1"))
		nodes, err := srv.Children("/")
		require.NoError(t, err)
		nodes = slices.DeleteFunc(nodes, func(name string) bool { return name == "zookeeper" })
		require.Len(t, nodes, 1)
	})
}
