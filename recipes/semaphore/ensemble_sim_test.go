package semaphore_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// Faults between the servers of an ensemble and on the clients' connections leave the limit
// respected. Every contender gets permits, although it gives up at times. No node is left.
func TestSimulatedEnsemble(t *testing.T) {
	ensemble := testlock.Ensemble{
		Clients: contenders, Turns: 3 * turns, Faults: 4 * faultsInARun, Timeout: simTimeout,
	}
	for name, followers := range map[string]int{"two": 1, "three": 2} {
		t.Run(name, func(t *testing.T) {
			sim.Run(t, 200, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
				model := testlock.NewModel(t, srv)
				model.Permits = 2
				ensemble.Run(t, srv, random, followers, func(name, servers string, random *rand.Rand) (
					testlock.Acquire, func(*recipes.Hold, time.Duration),
				) {
					c, called := &contender{model: model, name: name, random: random}, int64(0)
					client := testlock.Client(t, srv.Client(name), servers, random, simTimeout)
					c.semaphore = newSemaphore(t, client, "/sem", 2)
					return func(ctx context.Context) (*recipes.Hold, error) {
						called = model.Now()
						return c.semaphore.AcquireN(ctx, 1+random.IntN(2))
					}, func(hold *recipes.Hold, d time.Duration) { c.useFor(hold, called, d) }
				})
				requireEmpty(t, srv, "/sem")
			})
		})
	}
}
