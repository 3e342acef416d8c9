package semaphore_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/semaphore"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// A lease of Curator is created between the list and the transaction that takes the permit. The
// version of the directory does not show it. The reply to the transaction, which does, is lost.
func TestPermitWithALostReplyIsNotTakenBesideALeaseOfCurator(t *testing.T) {
	for name, opts := range map[string][]semaphore.Option{"plain": nil, "slots": {semaphore.WithSlots()}} {
		t.Run(name, func(t *testing.T) {
			sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
				hold := acquire(t, newSemaphore(t, client(t, srv, "holder"), "/sem", 1, opts...), 1)
				second := start(t, newSemaphore(t, client(t, srv, "second"), "/sem", 1, opts...), 1)
				time.Sleep(time.Second)
				exchange := srv.On(fault.Match{Client: "second", Op: fault.OpMulti}, fault.Hold())
				release(t, hold)
				require.NoError(t, exchange.Wait(t.Context()))
				srv.Client("second").Refuse(true)
				srv.Client("second").Drop()
				lease, err := client(t, srv, "curator").Create(t.Context(), "/sem/leases/lease-", nil,
					framework.Ephemeral(), framework.Sequential(), framework.Protected())
				require.NoError(t, err)
				exchange.Release()
				time.Sleep(500 * time.Millisecond)
				leases, err := srv.Children("/sem/leases")
				require.NoError(t, err)
				require.Len(t, leases, 2, "the transaction was applied")
				srv.Client("second").Refuse(false)
				time.Sleep(3 * time.Second)
				require.True(t, second.Waiting(), "Curator has the only permit")
				require.NoError(t, srv.Delete(lease))
				release(t, second.Won(t))
				requireEmpty(t, srv, "/sem")
			})
		})
	}
}
