package acceptance_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

// With the Strict policy each of 50 holds ends with ErrSuspended when the connection is
// interrupted, before there is a connection again. Their nodes are deleted, the session continues,
// and the locks can be acquired again.
func TestP13_StrictEndsEachHoldAtAnInterruption(t *testing.T) {
	t.Parallel()
	p := testzk.Proxy(t)
	c := testzk.Connected(t, p.Addr(), long(), framework.WithLossPolicy(framework.Strict))
	path, ctx := testzk.Path(t), testzk.Context(t)
	session, err := c.Session(ctx)
	require.NoError(t, err)
	holds := make([]*recipes.Hold, 50)
	for i := range holds {
		mu, err := mutex.New(c, fmt.Sprintf("%s/%d", path, i))
		require.NoError(t, err)
		holds[i], err = mu.Acquire(ctx)
		require.NoError(t, err)
	}
	require.NoError(t, p.Refuse(true))
	p.DropConnections()
	for _, hold := range holds {
		select {
		case <-hold.Done():
		case <-ctx.Done():
			require.FailNow(t, "a hold has not ended")
		}
		require.ErrorIs(t, hold.Err(), framework.ErrSuspended)
		require.NotErrorIs(t, hold.Err(), framework.ErrSessionLost)
	}
	require.NoError(t, p.Refuse(false))
	other := testzk.Connected(t, testzk.Connect(), long())
	for i, hold := range holds {
		mu, err := mutex.New(other, fmt.Sprintf("%s/%d", path, i))
		require.NoError(t, err)
		again, err := mu.Acquire(ctx)
		require.NoError(t, err)
		require.Greater(t, again.Token(), hold.Token())
		require.NoError(t, again.Release())
		require.ErrorIs(t, hold.Release(), framework.ErrSuspended)
	}
	require.NoError(t, session.Err(), "the session itself is not lost")
}

// With the Strict policy a waiter keeps its node through an interruption. The lock is not granted
// while there is no connection.
func TestP13_StrictWaiterKeepsItsNodeAndIsGrantedWhenConnected(t *testing.T) {
	onlyInProcess(t, "the moment between the deletion and the interruption is made in virtual time")
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		ctx := t.Context()
		holder := p13Strict(t, srv, "holder")
		hold, err := holder.Acquire(ctx)
		require.NoError(t, err)
		waiter := p13Strict(t, srv, "waiter")
		granted := make(chan *recipes.Hold, 1)
		go func() {
			hold, err := waiter.Acquire(ctx)
			require.NoError(t, err)
			granted <- hold
		}()
		synctest.Wait()
		queue, err := srv.Children("/lock")
		require.NoError(t, err)
		require.Len(t, queue, 2)

		client := srv.Client("waiter")
		client.Refuse(true)
		client.Reset()
		require.NoError(t, hold.Release())
		time.Sleep(time.Second)
		require.Empty(t, granted, "granted while suspended")
		client.Refuse(false)
		again := <-granted
		require.NoError(t, again.Err())
		require.Contains(t, queue, again.Path()[len("/lock/"):], "want the same node")
		require.NoError(t, again.Release())
	})
}

func p13Strict(t *testing.T, srv *zktest.Server, name string) *mutex.Mutex {
	c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client(name).DialContext),
		framework.WithLossPolicy(framework.Strict))
	mu, err := mutex.New(c, "/lock")
	require.NoError(t, err)
	return mu
}

// An interruption during an acquire does not end a Strict hold. The lifetime of a hold that is
// granted later is the new connection.
func TestP13_StrictHoldBeginsAfterTheInterruptionOfItsAcquire(t *testing.T) {
	t.Parallel()
	p := testzk.Proxy(t)
	path, ctx := testzk.Path(t), testzk.Context(t)
	c := testzk.Connected(t, p.Addr(), long(), framework.WithLossPolicy(framework.Strict))
	for range 10 {
		mu, err := mutex.New(c, path)
		require.NoError(t, err)
		interrupted := p.On(fault.Match{Op: fault.OpCreate, Path: path}, fault.DropAfter())
		hold, err := mu.Acquire(ctx)
		require.NoError(t, err)
		require.Equal(t, 1, interrupted.Hits())
		require.NoError(t, hold.Err())
		require.NoError(t, hold.Release())
	}
}
