package redislock_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/contrib/redislock"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/locktest"
)

const masters = 5

// redlockTTL leaves each real server more time to answer, of which it has a tenth: the machine may be
// busy. In the end it decides whether a holder can renew its lease.
const redlockTTL = 5 * ttl

// redlockPoll is the interval at which waiters of a Redlock ask in tests on real servers.
const redlockPoll = 100 * time.Millisecond

// redlockPeer is a client of a Redlock with one lock.
type redlockPeer struct {
	*redislock.Lock
	redlock *redislock.Redlock
	links   []*link
}

func newFakes() (servers []*fake) {
	for range masters {
		servers = append(servers, newFake())
	}
	return servers
}

func newRedlockPeer(t testing.TB, servers []*fake, fault func(context.Context, bool) error) *redlockPeer {
	t.Helper()
	p := &redlockPeer{}
	var all []redislock.Redis
	for _, srv := range servers {
		l := &link{fake: srv, fault: fault}
		p.links, all = append(p.links, l), append(all, l)
	}
	r, err := redislock.NewRedlockOf(all, redislock.WithTTL(ttl))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	p.redlock = r
	p.Lock, err = r.New("lock")
	require.NoError(t, err)
	return p
}

func (p *redlockPeer) setCut(cut bool) {
	for _, l := range p.links {
		l.setCut(cut)
	}
}

// bubbleRedlock runs a test in virtual time, with two clients.
func bubbleRedlock(t *testing.T, test func(t *testing.T, servers []*fake, a, b *redlockPeer)) {
	synctest.Test(t, func(t *testing.T) {
		servers := newFakes()
		test(t, servers, newRedlockPeer(t, servers, nil), newRedlockPeer(t, servers, nil))
	})
}

func TestRedlockInVirtualTime(t *testing.T) {
	var servers []*fake // of the test that runs
	locktest.Run(t, locktest.Service{
		Lease: ttl,
		Client: func(t testing.TB, _ string) locktest.Client {
			p := newRedlockPeer(t, servers, nil)
			return locktest.Client{
				Lock: p, Cut: p.setCut,
				Delete: func() {
					for _, srv := range servers {
						srv.delete(p.Key())
					}
				},
				Close: func() { require.NoError(t, p.redlock.Close()) },
			}
		},
		Around: func(t *testing.T, run func(t *testing.T)) {
			synctest.Test(t, func(t *testing.T) {
				servers = newFakes()
				run(t)
			})
		},
	})
}

// The suite and the loss of servers, on real ones.
func TestRedlock(t *testing.T) {
	t.Parallel()
	var servers []*server
	for range masters {
		servers = append(servers, startServer(t))
	}
	locktest.Run(t, locktest.Service{
		Lease: redlockTTL,
		Client: func(t testing.TB, _ string) locktest.Client {
			var proxies []*proxy
			r := newRedlock(t, servers, func(srv *server) *redis.Options {
				p := startProxy(t, srv.socket())
				proxies = append(proxies, p)
				return &redis.Options{Addr: p.addr(), ContextTimeoutEnabled: true}
			})
			lock, err := r.New(t.Name())
			require.NoError(t, err)
			return locktest.Client{
				Lock: lock,
				Cut: func(cut bool) {
					for _, p := range proxies {
						p.cut(cut)
					}
				},
				Delete: func() {
					for _, srv := range servers {
						require.NoError(t, srv.direct.Del(context.Background(), lock.Key()).Err())
					}
				},
				Close: func() { require.NoError(t, r.Close()) },
			}
		},
		Around: func(t *testing.T, run func(t *testing.T)) { t.Parallel(); run(t) },
	})
}

// newRedlock returns a Redlock that is closed with the test, before its clients.
func newRedlock(t testing.TB, servers []*server, options func(*server) *redis.Options) *redislock.Redlock {
	t.Helper()
	var clients []redis.UniversalClient
	for _, srv := range servers {
		rdb := redis.NewClient(options(srv))
		t.Cleanup(func() { require.NoError(t, rdb.Close()) })
		clients = append(clients, rdb)
	}
	r, err := redislock.NewRedlock(clients, redislock.WithTTL(redlockTTL), redislock.WithPollInterval(redlockPoll))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

func TestRedlockWithServersThatAreKilled(t *testing.T) {
	t.Parallel()
	var servers []*server
	for range masters {
		servers = append(servers, startServer(t))
	}
	newRedlock := func() *redislock.Lock {
		lock, err := newRedlock(t, servers, (*server).options).New("lock")
		require.NoError(t, err)
		return lock
	}
	a, b := newRedlock(), newRedlock()
	hold := acquire(t, a)
	require.Zero(t, hold.Token())
	for _, srv := range servers { // also those that are not needed for a majority
		require.Eventually(t, func() bool { return srv.direct.Exists(bounded(t), a.Key()).Val() == 1 },
			time.Minute, time.Millisecond)
	}

	servers[0].kill()
	servers[0].start() // without its keys
	require.True(t, renewed(hold))
	_, err := b.TryAcquire(bounded(t))
	require.ErrorIs(t, err, recipes.ErrNotAcquired)

	servers[3].kill()
	servers[4].kill()
	<-hold.Done() // two servers have the key
	require.ErrorIs(t, hold.Err(), recipes.ErrForeignLost)
	next := acquire(t, b)
	require.True(t, renewed(next), "three servers are a majority")
	require.NoError(t, next.Release())

	next = acquire(t, a)
	until := next.ValidUntil()
	servers[2].kill()
	<-next.Done()
	require.False(t, time.Now().Before(until), "it lasts to its deadline")
	ctx, cancel := context.WithTimeout(context.Background(), redlockTTL)
	defer cancel()
	_, err = b.Acquire(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Regexp(t, "[345] of 5 servers have not voted", err.Error()) // those that are left may be slow
	servers[2].start()
	require.NoError(t, acquire(t, b).Release())
}

// Clients that try at once each get some servers. None of them keeps what it got.
func TestRedlockSplit(t *testing.T) {
	bubbleRedlock(t, func(t *testing.T, servers []*fake, a, b *redlockPeer) {
		for _, i := range []int{3, 4} { // of two servers the answers come late
			a.links[i].setCut(true)
		}
		b.links[0].setCut(true)
		for _, srv := range servers[1:3] {
			require.NoError(t, srv.redis.Set(a.Key(), "other"))
		}
		for _, p := range []*redlockPeer{a, b} {
			ctx, cancel := context.WithTimeout(t.Context(), ttl)
			defer cancel()
			_, err := p.TryAcquire(ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded, "others may have the lock, or not")
		}
		a.setCut(false)
		b.setCut(false)
		time.Sleep(ttl / 2)
		for i, srv := range servers {
			require.Equal(t, i == 1 || i == 2, srv.owner(a.Key()) != "", i)
			srv.delete(a.Key())
		}
		require.NoError(t, acquire(t, a).Release())
	})
}

// The majority counts, and the servers that do not answer cost no time.
func TestRedlockWithSlowServers(t *testing.T) {
	bubbleRedlock(t, func(t *testing.T, servers []*fake, a, b *redlockPeer) {
		a.links[0].setCut(true)
		a.links[1].setCut(true)
		begun := time.Now()
		hold := acquire(t, a)
		require.Equal(t, begun.Add(ttl*9/10), hold.ValidUntil())
		time.Sleep(10 * ttl)
		require.NoError(t, hold.Err())
		_, err := b.TryAcquire(t.Context())
		require.ErrorIs(t, err, recipes.ErrNotAcquired)
		begun = time.Now()
		require.NoError(t, hold.Release())
		require.Equal(t, begun, time.Now())
		require.NoError(t, acquire(t, b).Release())
		a.setCut(false)
	})
}

// What the documentation warns of: a server that returns at once without its keys gives the lock away.
func TestRedlockWithAServerThatReturnsWithoutItsKeys(t *testing.T) {
	bubbleRedlock(t, func(t *testing.T, servers []*fake, a, b *redlockPeer) {
		a.links[0].setCut(true)
		a.links[1].setCut(true)
		first := acquire(t, a)
		servers[2].redis.FlushAll()
		second := acquire(t, b)
		require.NoError(t, first.Err(), "two holders")
		<-first.Done()
		require.ErrorIs(t, first.Err(), recipes.ErrForeignLost)
		require.NoError(t, second.Release())
		a.setCut(false)
	})
}

// The answers of the first try come too late, and its keys are still there for the second one.
func TestRedlockAfterATryOfItsOwn(t *testing.T) {
	bubbleRedlock(t, func(t *testing.T, servers []*fake, a, b *redlockPeer) {
		for _, l := range a.links {
			l.fault = firstAnswerAfter(ttl / 8) // a server has ttl / 10
		}
		hold, err := a.TryAcquire(t.Context())
		require.NoError(t, err)
		require.NoError(t, hold.Release())
	})
}

// The clients of Redis repeat a release whose answer was lost.
func TestRepeatedReleaseOfARedlock(t *testing.T) {
	bubbleRedlock(t, func(t *testing.T, servers []*fake, a, b *redlockPeer) {
		for _, l := range a.links {
			l.repeat = func() {}
		}
		hold := acquire(t, a)
		require.NoError(t, hold.Release())
		hold = acquire(t, a)
		synctest.Wait() // until all servers have answered: a majority is enough for the hold
		for _, srv := range servers[:3] {
			srv.delete(a.Key())
		}
		require.ErrorIs(t, hold.Release(), recipes.ErrForeignLost)
	})
}

// A request that a server executes after the release leaves no key.
func TestLateRequestOfARedlock(t *testing.T) {
	bubbleRedlock(t, func(t *testing.T, servers []*fake, a, b *redlockPeer) {
		var late []string
		a.links[0].sent = func(request []string) { late = request }
		hold := acquire(t, a)
		synctest.Wait()
		a.links[0].sent = nil
		require.NoError(t, hold.Release())
		synctest.Wait()
		_, err := servers[0].do(late...)
		require.NoError(t, err)
		require.Empty(t, servers[0].owner(a.Key()))
	})
}

func TestRedlockReenters(t *testing.T) {
	bubbleRedlock(t, func(t *testing.T, servers []*fake, a, b *redlockPeer) {
		outer := acquire(t, a)
		inner, err := a.Acquire(outer.Context(t.Context()))
		require.NoError(t, err)
		require.NoError(t, outer.Release())
		_, err = b.TryAcquire(t.Context())
		require.ErrorIs(t, err, recipes.ErrNotAcquired)
		require.NoError(t, inner.Release())
		require.NoError(t, acquire(t, b).Release())
	})
}

func TestSimulatedFaultsOfARedlock(t *testing.T) {
	wins := 0
	for seed := range seeds(t) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { wins += simulateRedlock(t, seed) })
		})
	}
	require.Positive(t, wins)
	t.Logf("%d holds", wins)
}

// simulateRedlock also cuts two servers off from all clients.
func simulateRedlock(t *testing.T, seed uint64) int {
	servers, m := newFakes(), &monitor{}
	trouble := &faults{random: rand.New(rand.NewPCG(seed, 1))}
	var peers []*redlockPeer
	var running sync.WaitGroup
	for i := range simClients {
		p := newRedlockPeer(t, servers, trouble.fault)
		peers = append(peers, p)
		random := rand.New(rand.NewPCG(seed, uint64(i)+2))
		running.Go(func() {
			for range 5 {
				cut := func(cut bool) {
					for _, l := range p.links[2:] {
						l.setCut(cut)
					}
				}
				if err := simulateOne(p.Lock, kinds["lock"], 0, cut, m, random); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	random := rand.New(rand.NewPCG(seed, 0))
	for range 5 {
		for _, p := range peers {
			p.links[0].setCut(true)
			p.links[1].setCut(random.IntN(2) == 0)
		}
		time.Sleep(time.Duration(random.Int64N(int64(2 * ttl))))
		for _, p := range peers {
			p.links[0].setCut(false)
			p.links[1].setCut(false)
		}
		time.Sleep(time.Duration(random.Int64N(int64(2 * ttl))))
	}
	running.Wait()
	trouble.stop()
	time.Sleep(3 * ttl)
	for _, srv := range servers {
		require.Empty(t, srv.owner(peers[0].Key()))
	}
	require.NoError(t, acquire(t, peers[0]).Release())
	return m.wins
}

func TestServersOfARedlock(t *testing.T) {
	var clients []redis.UniversalClient
	for range 3 {
		rdb := redis.NewClient(&redis.Options{Addr: "localhost:1"})
		defer rdb.Close()
		clients = append(clients, rdb)
	}
	cluster := redis.NewClusterClient(&redis.ClusterOptions{})
	defer cluster.Close()
	ring := redis.NewRing(&redis.RingOptions{})
	defer ring.Close()
	for want, servers := range map[string][]redis.UniversalClient{
		"three servers":   clients[:2],
		"nil":             {clients[0], clients[1], nil},
		"the same client": {clients[0], clients[1], clients[0]},
		"cluster":         {clients[0], clients[1], cluster},
		"Ring":            {clients[0], clients[1], ring},
	} {
		_, err := redislock.NewRedlock(servers)
		require.ErrorContains(t, err, want)
	}
	_, err := redislock.NewRedlock(clients, redislock.WithTTL(0))
	require.ErrorContains(t, err, "WithTTL")
	_, err = redislock.NewRedlockOf(make([]redislock.Redis, 3))
	require.ErrorContains(t, err, "nil")
	same := &link{}
	_, err = redislock.NewRedlockOf([]redislock.Redis{same, &link{}, same})
	require.ErrorContains(t, err, "the same client")
	_, err = redislock.NewRedlockOf([]redislock.Redis{incomparable{same}, incomparable{same}, incomparable{same}})
	require.NoError(t, err, "these cannot be compared")
	var zero redislock.Redlock
	_, err = zero.New("lock")
	require.ErrorIs(t, err, framework.ErrZeroValue)
	require.ErrorIs(t, zero.Close(), framework.ErrZeroValue)
	r, err := redislock.NewRedlock(clients)
	require.NoError(t, err)
	_, err = r.New("a}")
	require.ErrorContains(t, err, "brace")
	require.NoError(t, r.Close())
	lock, err := r.New("lock")
	require.NoError(t, err)
	_, err = lock.Acquire(t.Context())
	require.ErrorIs(t, err, redislock.ErrClosed)
}

// incomparable is a client of Redis that cannot be compared.
type incomparable []*link

func (incomparable) Eval(context.Context, string, []string, ...any) (any, error) { return nil, nil }

func (incomparable) EvalSha(context.Context, string, []string, ...any) (any, error) { return nil, nil }

func (incomparable) Subscribe(context.Context) (redislock.Subscription, error) { return nil, nil }
