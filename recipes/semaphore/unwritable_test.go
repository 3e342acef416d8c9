package semaphore_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// If leases or locks are read-only, or leases has other children, a direct acquire cannot succeed.
// The semaphore remembers that. It does not try again each time with a lease that all waiters see.
func TestImpossibleDirectAcquireIsNotTriedEachTime(t *testing.T) {
	for _, how := range []string{"leases", "locks", "stray"} {
		sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
			c := client(t, srv, "s")
			s := newSemaphore(t, c, "/sem", 1)
			release(t, acquire(t, s, 1))
			if how == "stray" {
				require.NoError(t, srv.Create("/sem/leases/stray", nil))
			} else {
				_, err := c.SetACL(t.Context(), "/sem/"+how, zk.WorldACL(zk.PermAll&^zk.PermWrite), -1)
				require.NoError(t, err)
			}
			for range 3 {
				release(t, acquire(t, s, 1))
			}
			time.Sleep(time.Second)
			before := srv.Requests()
			const turns = 5
			for range turns {
				release(t, acquire(t, s, 1))
			}
			after := srv.Requests()
			t.Logf("%s: %d multi, %d deletes in %d turns", how, after[fault.OpMulti]-before[fault.OpMulti],
				after[fault.OpDelete]-before[fault.OpDelete], turns)
			if n := after[fault.OpDelete] - before[fault.OpDelete]; n > turns {
				t.Errorf("%s: %d leases deleted for %d holds", how, n, turns)
			}
		})
	}
}

// The refusal of the lease itself is no refusal of the write that counts the leases.
func TestLeaseThatMustNotBeCreatedIsAnError(t *testing.T) {
	path := testzk.Path(t)
	c := testzk.Connected(t, testzk.Connect())
	s := newSemaphore(t, c, path, 1)
	release(t, acquire(t, s, 1))
	testzk.Permit(t, path+"/leases", zk.PermAll&^zk.PermCreate)
	_, err := s.TryAcquire(testzk.Context(t))
	require.ErrorIs(t, err, zk.ErrNoAuth)
	_, err = s.Acquire(testzk.Context(t))
	require.ErrorIs(t, err, zk.ErrNoAuth)
	testzk.Permit(t, path+"/leases", zk.PermAll)
	release(t, acquire(t, s, 1))
}
