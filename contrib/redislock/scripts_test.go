package redislock_test

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/contrib/redislock"
	"github.com/docent-zk/docent/recipes"
)

// onServers runs a test on the real server and on miniredis.
func onServers(t *testing.T, test func(t *testing.T, opts *redis.Options, direct *redis.Client)) {
	t.Run("redis", func(t *testing.T) {
		srv := startServer(t)
		test(t, srv.options(), srv.direct)
	})
	t.Run("miniredis", func(t *testing.T) {
		opts := &redis.Options{Addr: miniredis.RunT(t).Addr(), ContextTimeoutEnabled: true}
		direct := redis.NewClient(opts)
		t.Cleanup(func() { require.NoError(t, direct.Close()) })
		test(t, opts, direct)
	})
}

func TestKeys(t *testing.T) {
	onServers(t, func(t *testing.T, opts *redis.Options, direct *redis.Client) {
		lock := newLock(t, newClient(t, opts, redislock.WithPrefix("app:")), "orders")
		require.Equal(t, "app:orders", lock.Key())
		hold := acquire(t, lock)
		ctx := bounded(t)
		keys, err := direct.Keys(ctx, "*").Result()
		require.NoError(t, err)
		require.ElementsMatch(t, []string{"app:orders", "{app:orders}:token"}, keys)
		left, err := direct.PTTL(ctx, lock.Key()).Result()
		require.NoError(t, err)
		require.Positive(t, left)
		require.LessOrEqual(t, left, calm)
		require.NoError(t, hold.Release())
		keys, err = direct.Keys(ctx, "*").Result()
		require.NoError(t, err)
		require.ElementsMatch(t, []string{"{app:orders}:token", "{app:orders}:done"}, keys)
		left, err = direct.PTTL(ctx, "{app:orders}:done").Result()
		require.NoError(t, err)
		require.Positive(t, left)
		require.LessOrEqual(t, left, calm)
	})
}

// A program that moves to Redis sets the counter above the tokens that its resources have seen.
func TestTokensAreExact(t *testing.T) {
	onServers(t, func(t *testing.T, opts *redis.Options, direct *redis.Client) {
		lock := newLock(t, newClient(t, opts), "lock")
		const counter = 1<<62 + 1 // no number of Lua
		require.NoError(t, direct.Set(bounded(t), "{"+lock.Key()+"}:token", counter, 0).Err())
		for i := range 3 {
			hold := acquire(t, lock)
			require.Equal(t, int64(counter+1+i), hold.Token())
			require.NoError(t, hold.Release())
		}
	})
}

func TestCounterThatIsNone(t *testing.T) {
	for _, value := range []any{"text", math.MaxInt64, -5} {
		onServers(t, func(t *testing.T, opts *redis.Options, direct *redis.Client) {
			lock := newLock(t, newClient(t, opts), "lock")
			require.NoError(t, direct.Set(bounded(t), "{"+lock.Key()+"}:token", value, 0).Err())
			_, err := lock.Acquire(bounded(t))
			require.ErrorContains(t, err, lock.Key())
			require.NoError(t, bounded(t).Err())
			require.Zero(t, direct.Exists(bounded(t), lock.Key()).Val(), "no key is left")
		})
	}
}

func TestKeyOfAnotherProgram(t *testing.T) {
	onServers(t, func(t *testing.T, opts *redis.Options, direct *redis.Client) {
		lock := newLock(t, newClient(t, opts), "lock")
		require.NoError(t, direct.Set(bounded(t), lock.Key(), "other", 0).Err())
		_, err := lock.TryAcquire(bounded(t))
		require.ErrorIs(t, err, recipes.ErrNotAcquired)
		require.Equal(t, "other", direct.Get(bounded(t), lock.Key()).Val())
		require.NoError(t, direct.Del(bounded(t), lock.Key()).Err())
		require.NoError(t, direct.HSet(bounded(t), lock.Key(), "a", "b").Err())
		_, err = lock.Acquire(bounded(t))
		require.ErrorContains(t, err, "WRONGTYPE")
	})
}

// Without its scripts, as after a restart or a failover, the server gets their text.
func TestServerForgetsTheScripts(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, opts *redis.Options, direct *redis.Client) {
		lock := newLock(t, newClient(t, opts), "lock")
		forget := func() { require.NoError(t, direct.ScriptFlush(bounded(t)).Err()) }
		forget()
		hold := acquire(t, lock)
		forget()
		require.True(t, renewed(hold))
		forget()
		require.NoError(t, hold.Release())
	})
}

// renewed waits until a hold is renewed. It reports false if the hold is lost instead.
func renewed(hold *recipes.Hold) bool {
	for first := hold.ValidUntil(); !hold.ValidUntil().After(first); {
		select {
		case <-hold.Done():
			return false
		case <-time.After(10 * time.Millisecond):
		}
	}
	return true
}

// A server that keeps nothing takes the lock away, and its tokens begin again.
func TestRestartWithoutDisk(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	lock := newLock(t, newClient(t, srv.options()), "lock")
	hold := acquire(t, lock)
	require.NoError(t, hold.Release())
	hold = acquire(t, lock)
	require.Equal(t, int64(2), hold.Token())
	srv.kill()
	srv.start()
	<-hold.Done()
	require.ErrorIs(t, hold.Err(), recipes.ErrForeignLost)
	next := acquire(t, lock)
	require.Equal(t, int64(1), next.Token(), "this is what the documentation warns of")
	require.NoError(t, next.Release())
}

// A server that writes each command to its disk before it answers keeps the lock.
func TestRestartWithDisk(t *testing.T) {
	t.Parallel()
	srv := startServer(t, "--appendonly", "yes", "--appendfsync", "always")
	a, b := newLock(t, newClient(t, srv.options()), "lock"), newLock(t, newClient(t, srv.options()), "lock")
	hold := acquire(t, a)
	waiting := make(chan *recipes.Hold, 1)
	go func() {
		next, err := b.Acquire(context.Background())
		if err != nil {
			t.Error(err)
		}
		waiting <- next
	}()
	srv.kill()
	srv.start()
	kept := renewed(hold) // unless the restart took longer than the time to live
	if err := hold.Release(); kept {
		require.NoError(t, err)
	}
	next := <-waiting
	require.Greater(t, next.Token(), hold.Token())
	require.NoError(t, next.Release())
}

// Other programs use a key as a lock with SET NX and a deletion that compares the value.
func TestLocksOfOtherProgramsExclude(t *testing.T) {
	onServers(t, func(t *testing.T, opts *redis.Options, direct *redis.Client) {
		lock := newLock(t, newClient(t, opts, redislock.WithPrefix("")), "orders")
		ctx := bounded(t)
		take := func() bool {
			_, err := direct.SetArgs(ctx, "orders", "theirs", redis.SetArgs{Mode: "NX", TTL: time.Minute}).Result()
			if err != nil {
				require.ErrorIs(t, err, redis.Nil)
			}
			return err == nil
		}
		hold := acquire(t, lock)
		require.False(t, take())
		require.NoError(t, hold.Release())
		require.True(t, take())
		_, err := lock.TryAcquire(ctx)
		require.ErrorIs(t, err, recipes.ErrNotAcquired)
		require.NoError(t, direct.Del(ctx, "orders").Err()) // publishes nothing
		require.NoError(t, acquire(t, lock).Release())
	})
}

// The documentation lists the commands that a user needs.
func TestCommandsOfARestrictedUser(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	user := []any{"ACL", "SETUSER", "limited", "on", ">secret", "~docent:*", "~{docent:*", "&{docent:*"}
	for _, cmd := range strings.Fields(`eval evalsha time get set incr del exists pexpire pttl zadd zcard zrange zrem
		zremrangebyscore zrevrange zscore publish subscribe unsubscribe ping`) {
		user = append(user, "+"+cmd)
	}
	require.NoError(t, srv.direct.Do(bounded(t), user...).Err())
	opts := srv.options()
	opts.Username, opts.Password = "limited", "secret"
	for name, k := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			connect := func() *redislock.Client { return newClient(t, opts) }
			a, b := k.locks(t, connect(), name), k.exclusive(t, connect(), name+" alone")
			for _, lock := range append(a, b) {
				hold := acquire(t, lock)
				won := make(chan *recipes.Hold, 1)
				go func() { won <- acquire(t, lock) }()
				require.True(t, renewed(hold))
				require.NoError(t, hold.Release())
				require.NoError(t, (<-won).Release())
			}
		})
	}
}

func TestOptions(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: filepath.Join(t.TempDir(), "none")})
	defer rdb.Close()
	for want, opt := range map[string]redislock.Option{
		"WithTTL: 999ms":              redislock.WithTTL(999e6),
		"WithPollInterval: 9ms":       redislock.WithPollInterval(9e6),
		`WithPrefix: "a{" contains a`: redislock.WithPrefix("a{"),
		"WithLogger: nil":             redislock.WithLogger(nil),
		"WithMetrics: nil":            redislock.WithMetrics(nil),
		"option 0 is nil":             nil,
	} {
		_, err := redislock.NewClient(rdb, opt)
		require.ErrorContains(t, err, want)
	}
	for _, none := range []redis.UniversalClient{nil, (*redis.Client)(nil), (*redis.ClusterClient)(nil)} {
		_, err := redislock.NewClient(none)
		require.ErrorContains(t, err, "nil")
	}
	ring := redis.NewRing(&redis.RingOptions{})
	defer ring.Close()
	_, err := redislock.NewClient(ring)
	require.ErrorContains(t, err, "Ring")
	c := newClient(t, &redis.Options{Addr: "localhost:1"})
	for _, name := range []string{"", "a}", "{"} {
		_, err := redislock.New(c, name)
		require.ErrorContains(t, err, "name", fmt.Sprintf("%q", name))
	}
}
