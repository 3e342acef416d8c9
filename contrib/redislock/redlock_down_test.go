package redislock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/recipes"
)

// oneIsDown has the first server of a peer refuse connections at once. The others answer a little later.
func oneIsDown(p *redlockPeer) {
	for i, l := range p.links {
		l.fault = func(_ context.Context, answer bool) error {
			if i == 0 {
				return errReset
			}
			if !answer {
				time.Sleep(time.Millisecond) // in virtual time
			}
			return nil
		}
	}
}

// bubbleOneIsDown runs a test with two clients, without one of five servers.
func bubbleOneIsDown(t *testing.T, test func(t *testing.T, servers []*fake, a, b *redlockPeer)) {
	bubbleRedlock(t, func(t *testing.T, servers []*fake, a, b *redlockPeer) {
		oneIsDown(a)
		oneIsDown(b)
		test(t, servers, a, b)
	})
}

// An error that comes first does not hide that most servers have given the lock to another client.
func TestRedlockIsHeldThoughAServerIsDown(t *testing.T) {
	bubbleOneIsDown(t, func(t *testing.T, servers []*fake, a, b *redlockPeer) {
		hold := acquire(t, a)
		begun := time.Now()
		_, err := b.TryAcquire(t.Context())
		require.ErrorIs(t, err, recipes.ErrNotAcquired)
		require.Less(t, time.Since(begun), ttl)
		ctx, cancel := context.WithTimeout(t.Context(), 10*ttl)
		defer cancel()
		_, err = b.Acquire(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, recipes.ErrNotAcquired)
		require.NoError(t, hold.Release())
	})
}

func TestRedlockIsLostThoughAServerIsDown(t *testing.T) {
	deleted := func(t *testing.T, servers []*fake, a *redlockPeer) *recipes.Hold {
		hold := acquire(t, a)
		time.Sleep(ttl / 20)
		for _, srv := range servers {
			srv.delete(a.Key())
		}
		return hold
	}
	bubbleOneIsDown(t, func(t *testing.T, servers []*fake, a, _ *redlockPeer) {
		hold := deleted(t, servers, a)
		begun := time.Now()
		require.ErrorIs(t, hold.Release(), recipes.ErrForeignLost)
		require.Less(t, time.Since(begun), ttl/3)
	})
	bubbleOneIsDown(t, func(t *testing.T, servers []*fake, a, _ *redlockPeer) {
		hold := deleted(t, servers, a)
		begun := time.Now()
		<-hold.Done()
		require.LessOrEqual(t, time.Since(begun), ttl/3+ttl/10, "with the next renewal")
		require.ErrorContains(t, hold.Err(), "deleted")
	})
}
