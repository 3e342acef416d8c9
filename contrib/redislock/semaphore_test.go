package redislock_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/contrib/redislock"
	"github.com/docent-zk/docent/recipes"
)

func TestPermits(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, opts *redis.Options, direct *redis.Client) {
		opts.ReadTimeout = time.Minute // a script that is sent again takes another token
		const permits = 3
		var holds []*recipes.Hold
		var clients []*redislock.Lock
		for i := range permits {
			clients = append(clients, newSemaphore(t, newClient(t, opts), "exports", permits))
			holds = append(holds, acquire(t, clients[i]))
			require.Equal(t, int64(i+1), holds[i].Token())
		}
		for _, sem := range clients {
			_, err := sem.TryAcquire(bounded(t))
			require.ErrorIs(t, err, recipes.ErrNotAcquired)
		}
		won := make(chan *recipes.Hold)
		go func() { won <- acquire(t, clients[0]) }()
		for _, hold := range holds {
			require.True(t, renewed(hold))
		}
		require.NoError(t, holds[1].Release())
		holds[1] = <-won
		for _, hold := range holds {
			require.NoError(t, hold.Release())
		}
		keys, err := direct.Keys(bounded(t), "{docent:exports}:*").Result()
		require.NoError(t, err)
		for _, key := range keys {
			left, err := direct.PTTL(bounded(t), key).Result()
			require.NoError(t, err)
			require.Equal(t, key == "{docent:exports}:token", left < 0, "only the counter stays")
		}
		require.Zero(t, direct.Exists(bounded(t), "docent:exports").Val())
	})
}

// A semaphore does not re-enter: that would exceed its permits unnoticed.
func TestPermitUnderAPermit(t *testing.T) {
	bubble(t, func(t *testing.T, srv *fake, a, _ *peer) {
		sem := newSemaphore(t, a.client, "exports", 2)
		first := acquire(t, sem)
		ctx := first.Context(t.Context())
		second, err := sem.Acquire(ctx)
		require.NoError(t, err)
		require.NotEqual(t, first.Token(), second.Token())
		_, err = sem.TryAcquire(ctx)
		require.ErrorIs(t, err, recipes.ErrNotAcquired)
		require.NoError(t, first.Release())
		require.NoError(t, second.Release())
	})
}

func TestPermitOfACrashedHolder(t *testing.T) {
	bubble(t, func(t *testing.T, srv *fake, a, b *peer) {
		acquire(t, newSemaphore(t, a.client, "exports", 2))
		staying := acquire(t, newSemaphore(t, b.client, "exports", 2))
		a.setCut(true)
		begun := time.Now()
		next := acquire(t, newSemaphore(t, b.client, "exports", 2))
		require.LessOrEqual(t, time.Since(begun), ttl+ttl/10)
		require.NoError(t, staying.Release())
		require.NoError(t, next.Release())
		a.setCut(false)
	})
}

func TestProgramsWithOtherNumbersOfPermits(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, opts *redis.Options, direct *redis.Client) {
		c := newClient(t, opts)
		five, three := newSemaphore(t, c, "exports", 5), newSemaphore(t, c, "exports", 3)
		hold := acquire(t, five)
		_, err := three.Acquire(bounded(t))
		require.ErrorContains(t, err, "docent:exports has 5 permits for its present holders, and not 3")
		require.NotErrorIs(t, err, recipes.ErrNotAcquired)
		require.True(t, renewed(hold))
		_, err = three.TryAcquire(bounded(t))
		require.ErrorContains(t, err, "5 permits")
		require.NoError(t, hold.Release())
		hold = acquire(t, three)
		_, err = five.TryAcquire(bounded(t))
		require.ErrorContains(t, err, "3 permits")
		require.NoError(t, hold.Release())
	})
}

// The number is kept as long as there are holders.
func TestNumberOfPermitsIsRenewed(t *testing.T) {
	bubble(t, func(t *testing.T, srv *fake, a, b *peer) {
		hold := acquire(t, newSemaphore(t, a.client, "exports", 5))
		time.Sleep(3 * ttl)
		_, err := newSemaphore(t, b.client, "exports", 3).TryAcquire(t.Context())
		require.ErrorContains(t, err, "5 permits")
		require.NoError(t, hold.Release())
	})
}

// A program with a shorter time to live does not shorten that of the number.
func TestNumberOfPermitsOutlastsAShortTimeToLive(t *testing.T) {
	bubble(t, func(t *testing.T, srv *fake, a, b *peer) {
		c, err := redislock.NewClientOf(&link{fake: srv}, redislock.WithTTL(10*ttl))
		require.NoError(t, err)
		defer c.Close()
		first := acquire(t, newSemaphore(t, b.client, "exports", 2))
		long := acquire(t, newSemaphore(t, c, "exports", 2))
		require.NoError(t, first.Release())
		require.NoError(t, acquire(t, newSemaphore(t, b.client, "exports", 2)).Release())
		time.Sleep(2 * ttl)
		_, err = newSemaphore(t, a.client, "exports", 5).TryAcquire(t.Context())
		require.ErrorContains(t, err, "2 permits")
		require.NoError(t, long.Release())
	})
}

func TestPermitsOfASemaphore(t *testing.T) {
	c := newClient(t, &redis.Options{Addr: "localhost:1"})
	for _, permits := range []int{0, -1} {
		_, err := redislock.NewSemaphore(c, "exports", permits)
		require.ErrorContains(t, err, "permits")
	}
	_, err := redislock.NewSemaphore(nil, "exports", 1)
	require.ErrorContains(t, err, "nil")
	_, err = redislock.NewSemaphore(c, "", 1)
	require.ErrorContains(t, err, "name")
}
