package redislock_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-zk/docent/contrib/redislock"
	"github.com/docent-zk/docent/internal/port"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/locktest"
)

const (
	// ttl is the time to live in virtual time.
	ttl = 3 * time.Second
	// calm is the time to live in real time, where a busy machine must not lose a lock.
	calm = 4 * ttl
)

// newClient returns a client of a real server that is closed with the test, before rdb.
func newClient(t testing.TB, opts *redis.Options, more ...redislock.Option) *redislock.Client {
	t.Helper()
	rdb := redis.NewClient(opts)
	t.Cleanup(func() { require.NoError(t, rdb.Close()) })
	c, err := redislock.NewClient(rdb, append([]redislock.Option{redislock.WithTTL(calm)}, more...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func newLock(t testing.TB, c *redislock.Client, name string) *redislock.Lock {
	t.Helper()
	lock, err := redislock.New(c, name)
	require.NoError(t, err)
	return lock
}

func bounded(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func acquire(t testing.TB, l recipes.Locker) *recipes.Hold {
	t.Helper()
	hold, err := l.Acquire(bounded(t))
	require.NoError(t, err)
	return hold
}

// The suite for any lock, on a real server, each client behind a proxy of its own. By default go-redis
// does not regard the deadlines of contexts.
func TestLock(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	for name, k := range kinds {
		for options, regards := range map[string]bool{"deadlines of contexts": true, "defaults": false} {
			if !regards && name != "lock" {
				continue // it is the same for all kinds
			}
			t.Run(name+" "+options, func(t *testing.T) {
				t.Parallel()
				service := locktest.Service{
					Lease: calm, Tokens: true,
					Client: func(t testing.TB, _ string) locktest.Client { return proxied(t, srv, k, regards) },
					// The tests that wait for leases wait at the same time.
					Around: func(t *testing.T, run func(t *testing.T)) { t.Parallel(); run(t) },
				}
				if k.waiters != nil {
					service.Waiters = func(t testing.TB) int {
						return int(srv.direct.ZCard(context.Background(), k.waiters("docent:"+t.Name())).Val())
					}
				}
				locktest.Run(t, service)
			})
		}
	}
}

func proxied(t testing.TB, srv *server, k kind, regards bool) locktest.Client {
	p := startProxy(t, srv.socket())
	c := newClient(t, &redis.Options{Addr: p.addr(), ContextTimeoutEnabled: regards})
	lock := k.exclusive(t, c, t.Name())
	return locktest.Client{
		Lock: lock, Cut: p.cut,
		Delete: func() { require.NoError(t, srv.direct.Del(context.Background(), lock.Key()).Err()) },
		Close:  func() { require.NoError(t, c.Close()) },
	}
}

// A subscription stays while nothing is released, and is noticed to be lost when its server does not
// answer.
func TestSilentSubscription(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	p := startProxy(t, srv.socket())
	core, logs := observer.New(zap.WarnLevel)
	waiter := newLock(t, newClient(t, &redis.Options{Addr: p.addr()}, redislock.WithLogger(zap.New(core)),
		redislock.WithTTL(time.Minute)), "lock")
	hold := acquire(t, newLock(t, newClient(t, srv.options(), redislock.WithTTL(time.Minute)), "lock"))
	won := make(chan error, 1)
	go func() {
		hold, err := waiter.Acquire(t.Context())
		if err == nil {
			err = hold.Release()
		}
		won <- err
	}()
	channel := "{" + waiter.Key() + "}:released"
	subscribed := func() bool { return srv.direct.PubSubNumSub(bounded(t), channel).Val()[channel] == 1 }
	require.Eventually(t, subscribed, time.Minute, time.Millisecond)
	before := logs.Len()
	for end := bounded(t); ; before = logs.Len() {
		<-time.After(3 * aliveWithin) // pings
		if logs.Len() == before {
			break
		}
		require.NoError(t, end.Err(), "a silent subscription does not stay") // a busy machine may lose some
	}
	require.True(t, subscribed())

	p.cut(true)
	require.Eventually(t, func() bool { return logs.Len() > before }, time.Minute, time.Millisecond)
	require.Equal(t, "waiters poll: the subscription to releases was lost", logs.All()[before].Message)
	p.cut(false)
	require.NoError(t, hold.Release())
	select {
	case err := <-won:
		require.NoError(t, err)
	case <-bounded(t).Done():
		require.FailNow(t, "the waiter does not get the lock")
	}
}

// What the documentation warns of: a replica that is promoted while the old master goes on grants the
// lock again, with the same token. The first holder learns that when the old master follows.
func TestFailover(t *testing.T) {
	t.Parallel()
	ports := freePorts(t, 2)
	master := startServer(t, "--port", ports[0])
	replica := startServer(t, "--port", ports[1], "--replicaof", "127.0.0.1", ports[0])
	ctx := bounded(t)
	old := newLock(t, newClient(t, master.options()), "lock")
	require.NoError(t, acquire(t, old).Release())
	require.Eventually(t, func() bool {
		return replica.direct.Get(ctx, "{"+old.Key()+"}:token").Val() == "1"
	}, time.Minute, 10*time.Millisecond)

	require.NoError(t, replica.direct.ReplicaOf(ctx, "NO", "ONE").Err())
	first := acquire(t, old)
	next := newLock(t, newClient(t, replica.options(), redislock.WithTTL(time.Minute)), "lock")
	second := acquire(t, next)
	require.Equal(t, first.Token(), second.Token())
	require.NoError(t, master.direct.ReplicaOf(ctx, "127.0.0.1", ports[1]).Err())
	<-first.Done()
	require.ErrorIs(t, first.Err(), recipes.ErrForeignLost)
	require.NoError(t, second.Release())
}

// What the documentation warns of: a server whose maxmemory-policy is volatile-* evicts locks, and keeps the counter.
func TestEviction(t *testing.T) {
	t.Parallel()
	srv := startServer(t, "--maxmemory-policy", "volatile-ttl")
	ctx := bounded(t)
	first := acquire(t, newLock(t, newClient(t, srv.options(), redislock.WithTTL(time.Minute)), "lock"))
	require.NoError(t, srv.direct.ConfigSet(ctx, "maxmemory", "1").Err())
	require.ErrorContains(t, srv.direct.Set(ctx, "other", "", 0).Err(), "OOM")
	require.NoError(t, srv.direct.ConfigSet(ctx, "maxmemory", "0").Err())
	second := acquire(t, newLock(t, newClient(t, srv.options()), "lock"))
	require.NoError(t, first.Err(), "it has not renewed yet")
	require.Greater(t, second.Token(), first.Token())
	require.NoError(t, second.Release())
}

// A cluster of one server refuses scripts with keys of several slots.
func TestCluster(t *testing.T) {
	t.Parallel()
	ports := freePorts(t, 2)
	srv := startServer(t, "--port", ports[0], "--cluster-enabled", "yes", "--cluster-port", ports[1])
	ctx := bounded(t)
	require.NoError(t, srv.direct.ClusterAddSlotsRange(ctx, 0, 1<<14-1).Err())
	rdb := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: []string{"127.0.0.1:" + ports[0]}, ContextTimeoutEnabled: true,
	})
	t.Cleanup(func() { require.NoError(t, rdb.Close()) })
	for i := range 2 {
		c, err := redislock.NewClient(rdb, redislock.WithTTL(calm), redislock.WithPollInterval(never))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, c.Close()) })
		lock := newLock(t, c, "lock")
		hold := acquire(t, lock)
		require.Equal(t, int64(1+3*i), hold.Token())
		won := make(chan *recipes.Hold)
		go func() { won <- acquire(t, lock) }()
		require.Eventually(t, func() bool {
			return srv.direct.PubSubNumSub(ctx, "{"+lock.Key()+"}:released").Val()["{"+lock.Key()+"}:released"] > 0
		}, time.Minute, time.Millisecond)
		require.NoError(t, hold.Release())
		require.NoError(t, (<-won).Release())
		require.NoError(t, acquire(t, lock).Release())
	}
}

// freePorts returns ports that only servers of the test get.
func freePorts(t testing.TB, n int) (ports []string) {
	t.Helper()
	for range n {
		kept, err := port.New()
		require.NoError(t, err)
		t.Cleanup(kept.Close)
		ports = append(ports, strconv.Itoa(kept.Number()))
	}
	return ports
}
