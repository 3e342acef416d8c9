package multilock_test

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

func expire(c *zktest.Client) {
	for _, s := range c.Sessions() {
		_ = s.Expire()
	}
}

// One or several events end a hold at the same instant. Both locks end, and the foreign lock is
// released once, also if the client of the mutex is closed.
func TestSimulatedEndsOfAForeignLock(t *testing.T) {
	sim.Run(t, 100, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		c, path := simClient(t, srv, "c", 4*time.Second), "/lock"
		lost, given, until := make(chan struct{}), atomic.Int64{}, atomic.Pointer[time.Time]{}
		renew := func(d time.Duration) { at := time.Now().Add(d); until.Store(&at) }
		renew(time.Minute)
		slow := time.Duration(random.Int64N(int64(time.Second)))
		service := foreign(func() recipes.ForeignHold {
			return recipes.ForeignHold{Lost: lost, Logger: c.Logger(), Until: func() time.Time { return *until.Load() },
				Release: func(ctx context.Context) error {
					given.Add(1)
					select {
					case <-time.After(slow):
					case <-ctx.Done():
					}
					return ctx.Err()
				}}
		})
		hold := acquire(t, combined(t, combined(t, service), newMutex(t, c, path)))
		node, work := hold.Path(), hold.Context(t.Context())
		for _, i := range random.Perm(7)[:1+random.IntN(3)] {
			[]func(){
				func() { close(lost) },
				func() { renew(-time.Second) },
				func() { renew(time.Millisecond) },
				func() { expire(srv.Client("c")) },
				func() { _ = srv.Delete(node) },
				func() { go func() { _ = hold.Release() }() },
				func() { go func() { require.NoError(t, c.Close()) }() },
			}[i]()
			_ = hold.Err()
			time.Sleep(time.Duration(random.Int64N(3)) * 10 * time.Millisecond)
		}
		_ = hold.Release()
		require.ErrorIs(t, hold.Release(), recipes.ErrNotHeld)
		require.Error(t, work.Err())
		synctest.Wait()
		time.Sleep(10 * time.Second)
		require.EqualValues(t, 1, given.Load())
		left, err := srv.Children(path)
		require.NoError(t, err)
		require.Empty(t, left)
	}, zktest.WithSessionTimeouts(time.Second, time.Minute))
}
