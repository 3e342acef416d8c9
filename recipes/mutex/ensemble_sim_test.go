package mutex_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// Faults between the servers of an ensemble and on the clients' connections leave one holder at a
// time and growing tokens. Every contender gets the lock, although it gives up at times. No node is
// left.
func TestSimulatedEnsemble(t *testing.T) {
	ensemble := testlock.Ensemble{
		Clients: contenders, Turns: 3 * turns, Faults: 4 * faultsInARun, Timeout: simTimeout,
	}
	for name, followers := range map[string]int{"two": 1, "three": 2} {
		t.Run(name, func(t *testing.T) {
			sim.Run(t, 200, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
				model := testlock.NewModel(t, srv)
				ensemble.Run(t, srv, random, followers, func(name, servers string, random *rand.Rand) (
					testlock.Acquire, func(*recipes.Hold, time.Duration),
				) {
					c := &contender{t: t, model: model, name: name, random: random}
					c.connect(srv, servers, simTimeout)
					return newMutex(t, c.client, "/lock").Acquire, c.useFor
				})
				require.Equal(t, "/lock container\n", srv.Tree())
			})
		})
	}
}
