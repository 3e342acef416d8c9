package cache_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/cache"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// A cache whose watch was set after several attempts is told of the connections of the earlier ones
// last. They do not count.
func TestConnectionsBeforeTheWatchAreForgotten(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		client := simClient(t, srv, random, "c0", srv.MemAddr(), framework.WithRetry(retry.Once(time.Second)))
		create(t, client, "/a/b")
		srv.On(fault.Match{Op: fault.OpAddWatch}, fault.DropBefore())
		srv.On(fault.Match{Op: fault.OpSetWatches2, Skip: 1}, fault.DropBefore())
		c, err := cache.New(client, "/a")
		require.NoError(t, err)
		t.Cleanup(c.Close)
		time.Sleep(time.Second / 2) // it is set on the second connection, and the attempt pauses
		link := srv.Client("c0")
		link.Refuse(true)
		link.Drop()
		time.Sleep(time.Second) // the attempt goes on, and fails with the third one
		link.Refuse(false)
		becomesReady(t, c)
		require.Equal(t, []string{"", "/b"}, paths(c, "/a"))
	})
}
