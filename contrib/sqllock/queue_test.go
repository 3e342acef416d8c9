package sqllock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/contrib/sqllock"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/locktest"
)

// fairClient returns a client with a fair queue.
func (s *site) fairClient(t testing.TB, opts ...sqllock.Option) (*sqllock.Client, *cable) {
	t.Helper()
	c, wire := s.client(t, append([]sqllock.Option{sqllock.WithFairQueue()}, opts...)...)
	require.NoError(t, c.CreateTable(t.Context()))
	return c, wire
}

// waiters counts the waiters in the queue.
func (s *site) waiters(t testing.TB) (n int) {
	t.Helper()
	require.NoError(t, s.db.QueryRow("SELECT COUNT(*) FROM docent_locks_queue").Scan(&n))
	return n
}

func fairContract(s *server, opts ...sqllock.Option) locktest.Service {
	service := contract(s, leases, append([]sqllock.Option{sqllock.WithFairQueue()}, opts...)...)
	service.Tokens = true
	service.Waiters = func(t testing.TB) int { return s.site(t).waiters(t) }
	client := service.Client
	service.Client = func(t testing.TB, name string) locktest.Client {
		text, err := s.dialect.CreateQueue(sqllock.DefaultTable)
		require.NoError(t, err)
		s.site(t).exec(t, text)
		return client(t, name)
	}
	return service
}

func TestFairQueue(t *testing.T) {
	each(t, func(t *testing.T, s *server) { locktest.Run(t, fairContract(s)) })
}

func TestFairQueueWithNotifications(t *testing.T) {
	t.Parallel()
	s := serverOf(t, sqllock.PostgreSQL)
	with := fairContract(s)
	with.Client = func(t testing.TB, name string) locktest.Client {
		db := s.connect(t, s.addr, s.site(t).name)
		notify := []sqllock.Option{sqllock.WithNotify("locks", listenBy(db)), sqllock.WithPoll(lease)}
		return fairContract(s, notify...).Client(t, name)
	}
	locktest.Run(t, with)
}

// enqueue starts an acquire, and returns when it is in the queue as the last of n.
func (s *site) enqueue(t *testing.T, c *sqllock.Client, n int) <-chan *recipes.Hold {
	t.Helper()
	lock, won := lockOf(t, c, "lock"), make(chan *recipes.Hold, 1)
	go func() {
		hold, _ := lock.Acquire(t.Context())
		won <- hold // nil if it has failed
	}()
	for s.waiters(t) != n {
		time.Sleep(time.Millisecond)
	}
	return won
}

// Goroutines of several clients acquire in the order in which they came.
func TestFairQueueOfGoroutines(t *testing.T) {
	each(t, func(t *testing.T, s *server) {
		one := s.site(t)
		a, _ := one.fairClient(t)
		b, _ := one.fairClient(t)
		hold := mustAcquire(t, lockOf(t, a, "lock"))
		var all []<-chan *recipes.Hold
		for i := range 6 {
			c := []*sqllock.Client{a, a, b}[i%3]
			all = append(all, one.enqueue(t, c, i+1))
		}
		for i, won := range all {
			require.NoError(t, hold.Release())
			hold = <-won
			require.NotNil(t, hold)
			for _, later := range all[i+1:] {
				require.Empty(t, later)
			}
		}
		require.NoError(t, hold.Release())
	})
}

// A waiter that has crashed keeps its place for a lease, and then delays the others no more.
func TestFairQueueWithADeadWaiter(t *testing.T) {
	each(t, func(t *testing.T, s *server) {
		one := s.site(t)
		a, _ := one.fairClient(t)
		b, wire := one.fairClient(t, sqllock.WithLease(time.Hour))
		c, _ := one.fairClient(t)
		hold := mustAcquire(t, lockOf(t, a, "lock"))
		one.enqueue(t, b, 1)
		next := one.enqueue(t, c, 2)
		wire.cut(true)
		require.NoError(t, hold.Release())
		_, err := lockOf(t, a, "lock").TryAcquire(t.Context())
		require.ErrorIs(t, err, recipes.ErrNotAcquired, "others wait")
		one.exec(t, "UPDATE docent_locks_queue SET valid_until = '2000-01-01' WHERE ticket = 1") // an hour later
		hold = <-next
		require.NotNil(t, hold)
		require.NoError(t, hold.Release())
		for one.waiters(t) > 0 { // those that have crashed are deleted, too
			time.Sleep(time.Millisecond)
		}
		require.NoError(t, b.Close()) // ends its wait
	})
}
