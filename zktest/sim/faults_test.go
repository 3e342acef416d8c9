package sim_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// disturbed returns a scenario of plain clients that use all servers of an ensemble under faults.
func disturbed(followers int) sim.Scenario {
	return func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		connect := sim.Ensemble(srv, random, followers)
		busyAt(connect, writing, times(12, time.Second, func(srv *zktest.Server, random *rand.Rand) {
			if random.IntN(3) == 0 {
				drop(srv, random)
				return
			}
			sim.Disturb(srv, random, 2*time.Second)
		}))(t, srv, random)
		sim.Calm(srv)
		time.Sleep(3 * time.Second)
		requireWell(t, srv, connect)
	}
}

// requireWell requires that all servers serve new clients and have the same nodes.
func requireWell(t *testing.T, srv *zktest.Server, connect string) {
	t.Helper()
	require.NotNil(t, srv.Leader())
	for i, addr := range strings.Split(connect, ",") {
		conn := connectTo(t, srv, []string{"x", "y", "z", "u", "v"}[i], addr)
		_, err := conn.Sync("/")
		require.NoError(t, err)
		_, _, err = conn.Children("/own")
		require.NoError(t, err)
		_, err = conn.Set("/shared", []byte(addr), -1)
		require.NoError(t, err)
		conn.Close()
	}
}

func TestSimulatedEnsemblesAreReproducible(t *testing.T) {
	for name, followers := range map[string]int{"two": 1, "three": 2, "five": 4} {
		t.Run(name, func(t *testing.T) { sim.Repeat(t, seeds, disturbed(followers)) })
	}
}

func TestDisturbReachesElections(t *testing.T) {
	elections := 0
	for seed := range int64(20) {
		for _, e := range sim.Once(t, seed+1, disturbed(2)).Entries {
			if strings.HasSuffix(e.What, " leads") {
				elections++
			}
		}
	}
	require.Greater(t, elections, 10)
}
