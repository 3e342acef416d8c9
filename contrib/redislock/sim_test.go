package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
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
	var srv *fake // of the test that runs
	locktest.Run(t, locktest.Service{
		Lease: ttl, Tokens: true,
		Client: func(t testing.TB, _ string) locktest.Client {
			l := &link{fake: srv}
			c := simClient(t, l)
			lock := newLock(t, c, "lock")
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
	})
}

// monitor checks that at most one hold is valid at a time, and that tokens grow.
type monitor struct {
	mu    sync.Mutex
	holds []*recipes.Hold
	last  int64
	wins  int
}

func (m *monitor) enter(h *recipes.Hold) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, other := range m.holds {
		if other.Err() == nil && h.Err() == nil {
			return fmt.Errorf("holds %d and %d are valid at a time", other.Token(), h.Token())
		}
	}
	if h.Err() == nil && h.Token() <= m.last {
		return fmt.Errorf("token %d after %d", h.Token(), m.last)
	}
	m.last = max(m.last, h.Token())
	m.holds = append(m.holds, h)
	m.wins++
	return nil
}

// seeds returns how many seeds to run: ZKTEST_SEEDS, or 8.
func seeds(t testing.TB) uint64 {
	if s := os.Getenv("ZKTEST_SEEDS"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
		return n
	}
	return 8
}

// Clients acquire, hold and give up at random, while requests and answers are lost and late, and
// clients are cut off. In the end nothing is left.
func TestSimulatedFaults(t *testing.T) {
	wins := 0
	for seed := range seeds(t) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { wins += simulate(t, seed) })
		})
	}
	require.Positive(t, wins)
	t.Logf("%d holds", wins)
}

func simulate(t *testing.T, seed uint64) int {
	srv, m := newFake(), &monitor{}
	trouble := &faults{random: rand.New(rand.NewPCG(seed, 1))}
	var links []*link
	var running sync.WaitGroup
	for i := range 4 {
		l := &link{fake: srv, fault: trouble.fault}
		links = append(links, l)
		lock := newLock(t, simClient(t, l), "lock")
		random := rand.New(rand.NewPCG(seed, uint64(i)+2))
		running.Go(func() {
			for range 20 {
				if err := simulateOne(lock, l, m, random); err != nil {
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
	lock := newLock(t, simClient(t, links[0]), "lock")
	require.Empty(t, srv.owner(lock.Key()))
	hold, err := lock.TryAcquire(t.Context())
	require.NoError(t, err)
	require.NoError(t, m.enter(hold))
	require.NoError(t, hold.Release())
	return m.wins
}

func simulateOne(lock *redislock.Lock, l *link, m *monitor, random *rand.Rand) error {
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
	if err := m.enter(hold); err != nil {
		return err
	}
	if random.IntN(5) == 0 {
		l.setCut(true)
		defer l.setCut(false)
	}
	time.Sleep(time.Duration(random.Int64N(int64(2 * ttl))))
	err = hold.Release()
	if err != nil && !errors.Is(err, recipes.ErrForeignLost) && !errors.Is(err, recipes.ErrReleasePending) {
		return err
	}
	return nil
}
