package multilock_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

func simClient(t *testing.T, srv *zktest.Server, name string, timeout time.Duration) *framework.Client {
	t.Helper()
	c, err := framework.New(srv.MemAddr(),
		framework.WithDialer(srv.Client(name).DialContext), framework.WithSessionTimeout(timeout),
		framework.WithLogger(testlock.Log(t)))
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.WaitConnected(t.Context()))
	return c
}

// A failed attempt on locks of two clients is undone while one of the clients cannot reach its
// servers.
func TestCloseOfOneClientDoesNotWaitForTheServersOfAnother(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		one, two := simClient(t, srv, "one", 4*time.Second), simClient(t, srv, "two", 40*time.Second)
		other := simClient(t, srv, "other", 4*time.Second)
		inTheWay := acquire(t, newMutex(t, other, "/c"))
		m := combined(t, newMutex(t, one, "/a"), newMutex(t, two, "/b"), newMutex(t, one, "/c"))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, err := m.Acquire(ctx)
			t.Log(err)
		}()
		time.Sleep(time.Second)
		srv.Client("two").Cut()
		cancel()
		<-done
		began := time.Now()
		require.NoError(t, one.Close())
		t.Log("closed after ", time.Since(began))
		require.Less(t, time.Since(began), 5*time.Second)
		require.NoError(t, inTheWay.Release())
		srv.Client("two").Heal()
	}, zktest.WithSessionTimeouts(time.Second, time.Minute))
}

// The same with a lost hold: its parts are released in the background.
func TestCloseDoesNotWaitForThePartsOfALostHold(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		one, two := simClient(t, srv, "one", 4*time.Second), simClient(t, srv, "two", 40*time.Second)
		pair := combined(t, newMutex(t, one, "/a"), newMutex(t, two, "/b"))
		hold := acquire(t, combined(t, pair, newMutex(t, one, "/c")))
		time.Sleep(time.Second)
		srv.Client("two").Cut()
		require.NoError(t, srv.Delete(hold.Paths()[2]))
		<-hold.Done()
		time.Sleep(time.Second)
		began := time.Now()
		require.NoError(t, one.Close())
		t.Log("closed after ", time.Since(began))
		require.Less(t, time.Since(began), 5*time.Second)
		srv.Client("two").Heal()
	}, zktest.WithSessionTimeouts(time.Second, time.Minute))
}
