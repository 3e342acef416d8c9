package multilock_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// The transaction is sent again for each missing path. Only queues whose paths exist are listed behind
// it.
func TestFirstAcquireOfSeveralPathsIsOneTransaction(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client("c").DialContext))
		require.NoError(t, srv.Create("/locks/1", nil))
		var paths []string
		for i := range 3 {
			paths = append(paths, fmt.Sprintf("/locks/%d", i))
		}
		sent := testlock.RequestsOn(srv)
		hold := acquire(t, newMulti(t, c, paths))
		list := strings.Repeat(" getChildren2", 3)
		require.Equal(t, "multi"+list+" multi"+list[:len(list)*2/3]+" multi"+list[:len(list)/3], sent.Of("c"))
		for _, path := range []string{"/locks/0", "/locks/2"} {
			stat, err := c.Exists(t.Context(), path)
			require.NoError(t, err)
			node, err := c.Exists(t.Context(), queued(t, c, "/locks/1", 1)[0].Node)
			require.NoError(t, err)
			require.Equal(t, node.Czxid, stat.Czxid, "created with the nodes: %s", path)
		}
		require.NoError(t, hold.Release())
		require.Equal(t, "/locks\n/locks/0 container\n/locks/1\n/locks/2 container\n", srv.Tree())
	})
}
