package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/contrib/redislock"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/locktest"
)

// simClients is how many clients a simulation has.
const simClients = 4

// simClient returns a client of a fake. It is closed with the test.
func simClient(t testing.TB, l *link) *redislock.Client {
	t.Helper()
	c, err := redislock.NewClientOf(l, redislock.WithTTL(ttl))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// The suite for any lock, in virtual time.
func TestLockInVirtualTime(t *testing.T) {
	for name, k := range kinds {
		t.Run(name, func(t *testing.T) {
			var srv *fake // of the test that runs
			service := locktest.Service{
				Lease: ttl, Tokens: true,
				Client: func(t testing.TB, _ string) locktest.Client {
					l := &link{fake: srv}
					c := simClient(t, l)
					lock := k.exclusive(t, c, "lock")
					return locktest.Client{
						Lock: lock, Cut: l.setCut,
						Delete: func() { l.delete(lock.Key()) },
						Close:  func() { require.NoError(t, c.Close()) },
					}
				},
				Around: func(t *testing.T, run func(t *testing.T)) {
					synctest.Test(t, func(t *testing.T) {
						srv = newFake()
						run(t)
					})
				},
			}
			if k.waiters != nil {
				service.Waiters = func(t testing.TB) int { return srv.count(k.waiters("docent:lock")) }
			}
			locktest.Run(t, service)
		})
	}
}

// monitor checks that no more holds are valid at a time than a lock may have, and that tokens grow.
type monitor struct {
	mu    sync.Mutex
	holds []simHold
	last  int64
	wins  int
}

// simHold is a hold of a number of places: all of them are a writer's, and a reader has one.
type simHold struct {
	*recipes.Hold
	places int
}

func (m *monitor) enter(h simHold, places int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.holds = slices.DeleteFunc(m.holds, func(other simHold) bool { return other.Err() != nil })
	if m.holds = append(m.holds, h); h.Err() == nil {
		taken, tokens := 0, []int64{}
		for _, other := range m.holds {
			taken, tokens = taken+other.places, append(tokens, other.Token())
		}
		if taken > places {
			return fmt.Errorf("holds %v are valid at a time: %d of %d places", tokens, taken, places)
		}
		// Holders at the same time may be told so in any order.
		if places == h.places && h.Token() <= m.last && m.last != 0 {
			return fmt.Errorf("token %d after %d", h.Token(), m.last)
		}
	}
	m.last = max(m.last, h.Token())
	m.wins++
	return nil
}

// seeds returns how many seeds to run: ZKTEST_SEEDS, or 4.
func seeds(t testing.TB) uint64 {
	if s := os.Getenv("ZKTEST_SEEDS"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
		return n
	}
	return 4
}

// Clients acquire, hold and give up at random, while requests and answers are lost and late, and
// clients are cut off. In the end nothing is left.
func TestSimulatedFaults(t *testing.T) {
	for name, k := range kinds {
		t.Run(name, func(t *testing.T) {
			wins := 0
			for seed := range seeds(t) {
				t.Run(fmt.Sprint(seed), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { wins += simulate(t, k, seed) })
				})
			}
			require.Positive(t, wins)
			t.Logf("%d holds", wins)
		})
	}
}

func simulate(t *testing.T, k kind, seed uint64) int {
	srv, m := newFake(), &monitor{}
	trouble := &faults{random: rand.New(rand.NewPCG(seed, 1))}
	var links []*link
	var running sync.WaitGroup
	for i := range simClients {
		l := &link{fake: srv, fault: trouble.fault}
		links = append(links, l)
		locks := k.locks(t, simClient(t, l), "lock")
		random := rand.New(rand.NewPCG(seed, uint64(i)+2))
		running.Go(func() {
			for range 10 {
				lock := random.IntN(len(locks))
				if err := simulateOne(locks[lock], k, lock, l.setCut, m, random); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	running.Wait()
	trouble.stop()
	for _, l := range links {
		l.setCut(false)
	}
	time.Sleep(3 * ttl) // what was late has arrived, and has expired if nothing deletes it
	lock := k.exclusive(t, simClient(t, links[0]), "lock")
	require.False(t, srv.redis.Exists(lock.Key()))
	hold, err := lock.TryAcquire(t.Context())
	require.NoError(t, err)
	require.NoError(t, hold.Release())
	return m.wins
}

// A client that is alone finds the lock free, whatever became of its own requests before.
func TestSimulatedFaultsOfALoneClient(t *testing.T) {
	alone := map[string]func(*testing.T, func(context.Context, bool) error) *redislock.Lock{
		"redlock": func(t *testing.T, fault func(context.Context, bool) error) *redislock.Lock {
			return newRedlockPeer(t, newFakes(), fault).Lock
		},
	}
	for name, k := range kinds {
		alone[name] = func(t *testing.T, fault func(context.Context, bool) error) *redislock.Lock {
			return k.exclusive(t, simClient(t, &link{fake: newFake(), fault: fault}), "lock")
		}
	}
	for name, newLock := range alone {
		for seed := range seeds(t) {
			t.Run(fmt.Sprintf("%s %d", name, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					trouble := &faults{random: rand.New(rand.NewPCG(seed, 1))}
					simulateAlone(t, newLock(t, trouble.fault))
					trouble.stop()
				})
			})
		}
	}
}

func simulateAlone(t *testing.T, lock *redislock.Lock) {
	const tries = 50
	for range tries {
		hold, err := lock.TryAcquire(t.Context())
		require.NoError(t, err)
		err = hold.Release()
		if err != nil && !errors.Is(err, recipes.ErrForeignLost) {
			require.ErrorIs(t, err, recipes.ErrReleasePending)
		}
		time.Sleep(3 * ttl) // what was late has arrived, and has expired if nothing deletes it
	}
}

func simulateOne(lock *redislock.Lock, k kind, i int, cut func(bool), m *monitor, random *rand.Rand) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(random.Int64N(int64(4*ttl))))
	defer cancel()
	try := lock.Acquire
	if random.IntN(4) == 0 {
		try = lock.TryAcquire
	}
	hold, err := try(ctx)
	switch {
	case errors.Is(err, recipes.ErrNotAcquired), ctx.Err() != nil && err != nil:
		return nil
	case err != nil:
		return err
	}
	if err := m.enter(simHold{hold, k.takes[i]}, k.places); err != nil {
		return err
	}
	if random.IntN(5) == 0 {
		cut(true)
		defer cut(false)
	}
	time.Sleep(time.Duration(random.Int64N(int64(2 * ttl))))
	err = hold.Release()
	if err != nil && !errors.Is(err, recipes.ErrForeignLost) && !errors.Is(err, recipes.ErrReleasePending) {
		return err
	}
	return nil
}
