package sim_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// nodesEnd is a scenario: the ephemeral node of a client is deleted when its connection is cut for longer
// than the session timeout, whenever that happens.
func nodesEnd(t *testing.T, srv *zktest.Server, random *rand.Rand) {
	worker := connect(t, srv, "worker")
	_, err := worker.Create("/worker", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	time.Sleep(time.Duration(random.Int64N(int64(time.Minute)))) // of the bubble: it takes no time
	srv.Client("worker").Cut()
	time.Sleep(time.Minute)
	require.False(t, srv.Exists("/worker"))
	srv.Client("worker").Heal()
}

// The function is what a test contains: func TestNodesEnd(t *testing.T). It runs 100 seeds.
func Example() {
	_ = func(t *testing.T) {
		sim.Run(t, 100, nodesEnd)
	}
}
