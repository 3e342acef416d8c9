package semaphore_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/semaphore"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// The first waiter learns only from the transaction that takes its permits that the directory of
// the leases is read-only.
func TestFirstWaiterStaysFirstIfLeasesAreReadOnly(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		of := func(name string) (*framework.Client, *semaphore.Semaphore) {
			c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client(name).DialContext))
			s, err := semaphore.New(c, "/s", 1, semaphore.WithSharedLimit("/s-limit"))
			require.NoError(t, err)
			return c, s
		}
		client, a := of("a")
		_, b := of("b")
		hold, err := b.Acquire(t.Context())
		require.NoError(t, err)
		_, err = client.SetACL(t.Context(), "/s/leases", zk.WorldACL(zk.PermAll&^zk.PermWrite), -1)
		require.NoError(t, err)
		require.NoError(t, hold.Release())
		hold, err = b.Acquire(t.Context()) // it learns of the ACL
		require.NoError(t, err)
		require.NoError(t, hold.Release())
		order := make(chan string, 2)
		enter := func(name string, s *semaphore.Semaphore) {
			go func() {
				hold, err := s.AcquireN(t.Context(), 2) // waits for a higher limit
				if err != nil {
					name = err.Error()
				}
				order <- name
				time.Sleep(time.Second)
				_ = hold.Release()
			}()
			time.Sleep(time.Second)
		}
		enter("first", a)
		enter("second", b)
		require.NoError(t, b.SetLimit(t.Context(), 2))
		require.Equal(t, "first", <-order)
		require.Equal(t, "second", <-order)
		time.Sleep(2 * time.Second)
	})
}
