package mutex_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// The servers grant a shorter timeout on a reconnect, and the client does not hear the answer. That is against an
// assumption of the guarantees, and two holds are valid at a time.
func TestAShorterTimeoutThatIsNotHeardAdmitsTwoHolders(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		holder, waiter := asking(t, srv, "holder"), asking(t, srv, "waiter")
		hold := mustAcquire(t, newMutex(t, holder, "/lock"))
		srv.SetSessionTimeouts(time.Second, short)
		unheard := srv.On(fault.Match{Client: "holder", Op: fault.OpConnect}, fault.DropAfter())
		srv.Client("holder").Drop()
		require.NoError(t, unheard.Wait(testzk.Context(t)))
		srv.Client("holder").Refuse(true)
		next := mustAcquire(t, newMutex(t, waiter, "/lock"))
		require.NoError(t, next.Err())
		require.NoError(t, hold.Err(), "the client cannot know")
		<-hold.Done()
		require.ErrorIs(t, hold.Err(), framework.ErrSessionLost)
		require.NoError(t, next.Release())
		srv.Client("holder").Refuse(false)
	})
}
