package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/semaphore"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// lag is how far the follower of these tests is behind.
const lag = 500 * time.Millisecond

// containers makes the server look for empty containers more often than servers do.
var containers = zktest.WithConfig("znode.container.checkIntervalMs", "300")

// reaped is how long it takes until an empty container and the one above it are deleted.
const reaped = time.Second

// clientOf is a client in virtual time of a server of the ensemble.
func clientOf(t *testing.T, srv *zktest.Server, name, addr string) *framework.Client {
	t.Helper()
	return client(t, srv, name, framework.WithDialer(func(ctx context.Context, network, _ string) (net.Conn, error) {
		return srv.Client(name).DialContext(ctx, network, addr)
	}))
}

// mover is a client in virtual time that connects to the leader, and from when away is set to the
// follower.
func mover(t *testing.T, srv *zktest.Server, f *zktest.Follower, name string) (c *framework.Client, away *atomic.Bool) {
	t.Helper()
	away = new(atomic.Bool)
	c, err := framework.New(srv.MemAddr()+","+f.MemAddr(),
		framework.WithSessionTimeout(20*time.Second),
		framework.WithRetry(retry.Forever(100*time.Millisecond)),
		framework.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			if (addr == f.MemAddr()) != away.Load() {
				return nil, errors.New("the test refuses this server")
			}
			return srv.Client(name).DialContext(ctx, network, addr)
		}))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	require.NoError(t, c.WaitConnected(t.Context()))
	return c, away
}

// The place comes to the front by an event. The connection is lost before the leases are read, and
// the next server does not know yet what the event told: it shows the leases of before the last
// acquire.
func TestPermitsAreNotCountedFromAServerThatIsBehindTheFront(t *testing.T) {
	for _, compat := range []zktest.Compat{zktest.V39, zktest.V38} {
		for name, opts := range map[string][]semaphore.Option{"plain": nil, "unwritable": nil, "slots": {semaphore.WithSlots()}} {
			sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
				f := srv.Follower(lag)
				moving, away := mover(t, srv, f, "second")
				holder := client(t, srv, "holder")
				hold := acquire(t, newSemaphore(t, holder, "/sem", 2, opts...), 2)
				if name == "unwritable" {
					_, err := holder.SetACL(t.Context(), "/sem/leases", zk.WorldACL(zk.PermAll&^zk.PermWrite), -1)
					require.NoError(t, err)
				}
				first := start(t, newSemaphore(t, client(t, srv, "first"), "/sem", 2, opts...), 2)
				time.Sleep(time.Second)
				second := start(t, newSemaphore(t, moving, "/sem", 2, opts...), 1)
				time.Sleep(2 * time.Second)
				srv.On(zktest.Match{Client: "first", Op: zktest.OpMulti}, zktest.Delay(time.Second))
				lost := srv.On(zktest.Match{Client: "second", Op: zktest.OpGetChildren2, Path: "/sem/leases"}, zktest.DropBefore())
				away.Store(true)
				release(t, hold)
				both := first.won(t)
				time.Sleep(3 * time.Second)
				require.Equal(t, 1, lost.Hits(), "the second read the leases as it came to the front")
				require.NoError(t, both.Err())
				require.True(t, second.waiting(), "%v %s: 2 permits of 2 are held, and one more", compat, name)
				release(t, both)
				release(t, second.won(t))
				nobody(t, srv, "/sem")
			}, zktest.WithCompat(compat))
		}
	}
}

// Curator adds a lease without writing to the directory, so its version does not tell.
func TestPermitsOfCuratorAreNotCountedFromAServerThatIsBehindTheFront(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		f := srv.Follower(lag)
		moving, away := mover(t, srv, f, "second")
		hold := acquire(t, newSemaphore(t, client(t, srv, "holder"), "/sem", 1), 1)
		curator := client(t, srv, "curator")
		own := []framework.CreateOption{framework.Ephemeral(), framework.Sequential(), framework.Protected()}
		place, err := curator.Create(t.Context(), "/sem/locks/lock-", nil, own...)
		require.NoError(t, err)
		second := start(t, newSemaphore(t, moving, "/sem", 1), 1)
		time.Sleep(time.Second)
		release(t, hold)
		time.Sleep(time.Second)
		lease, err := curator.Create(t.Context(), "/sem/leases/lease-", nil, own...)
		require.NoError(t, err)
		lost := srv.On(zktest.Match{Client: "second", Op: zktest.OpGetChildren2, Path: "/sem/leases"}, zktest.DropBefore())
		away.Store(true)
		require.NoError(t, curator.Delete(t.Context(), place, -1))
		time.Sleep(3 * time.Second)
		require.Equal(t, 1, lost.Hits(), "the second read the leases as it came to the front")
		require.True(t, second.waiting(), "the only permit is Curator's")
		require.NoError(t, curator.Delete(t.Context(), lease, -1))
		release(t, second.won(t))
		nobody(t, srv, "/sem")
	})
}

func TestMutexHasOneHolderThoughAServerIsBehindTheFront(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		f := srv.Follower(lag)
		moving, away := mover(t, srv, f, "second")
		on := func(c *framework.Client) *semaphore.Mutex {
			m, err := semaphore.NewMutex(c, "/mutex")
			require.NoError(t, err)
			return m
		}
		hold, err := on(client(t, srv, "holder")).Acquire(t.Context())
		require.NoError(t, err)
		got := make(chan *recipes.Hold, 2)
		wait := func(c *framework.Client) {
			m := on(c)
			go func() {
				h, err := m.Acquire(context.WithoutCancel(t.Context()))
				if err != nil {
					t.Error(err)
				}
				got <- h
			}()
			time.Sleep(time.Second)
		}
		wait(client(t, srv, "first"))
		wait(moving)
		srv.On(zktest.Match{Client: "first", Op: zktest.OpMulti}, zktest.Delay(time.Second))
		srv.On(zktest.Match{Client: "second", Op: zktest.OpGetChildren2, Path: "/mutex/leases"}, zktest.DropBefore())
		away.Store(true)
		require.NoError(t, hold.Release())
		first := <-got
		time.Sleep(3 * time.Second)
		require.NoError(t, first.Err())
		require.Empty(t, got, "a second holder beside %d", first.Token())
		require.NoError(t, first.Release())
		require.NoError(t, (<-got).Release())
		nobody(t, srv, "/mutex")
	})
}

// The directory of the leases is deleted and made again between the list and the transaction, and
// has the same version as before.
func TestSlotIsNotTakenByAListOfADirectoryThatWasMadeAgain(t *testing.T) {
	for name, fault := range map[string]func() zktest.Action{"answered": nil, "answer lost": zktest.DropAfter} {
		sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
			opts := []semaphore.Option{semaphore.WithSlots(), semaphore.WithSharedLimit("/limit")}
			slow := newSemaphore(t, client(t, srv, "slow"), "/sem", 3, opts...)
			other := newSemaphore(t, client(t, srv, "other"), "/sem", 3, opts...)
			release(t, acquire(t, slow, 1)) // the version is 1
			held := srv.On(zktest.Match{Client: "slow", Op: zktest.OpMulti, Path: "/limit"}, zktest.Hold())
			if fault != nil {
				srv.On(zktest.Match{Client: "slow", Op: zktest.OpMulti, Path: "/limit"}, fault())
			}
			waiter := start(t, slow, 1)
			require.NoError(t, held.Wait(t.Context()))
			time.Sleep(reaped)
			require.False(t, srv.Exists("/sem/leases"))
			taken := acquire(t, other, 1) // the version is 1
			held.Release()
			hold := waiter.won(t)
			require.NoError(t, hold.Err())
			require.NoError(t, taken.Err())
			require.NotEqual(t, semaphore.Slots(taken), semaphore.Slots(hold), name)
			release(t, taken, hold)
			nobody(t, srv, "/sem")
		}, containers)
	}
}

// The first in the queue lists the leases of a directory that is deleted and made again before its
// transaction, with the same version. The transaction's answer is lost, so that does not tell.
func TestPermitWhoseAnswerIsLostIsNotTakenByAListOfADirectoryThatWasMadeAgain(t *testing.T) {
	for name, fault := range map[string]zktest.Action{"answered": zktest.Pass(), "answer lost": zktest.DropAfter()} {
		sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
			f := srv.Follower(0)
			moving, away := mover(t, srv, f, "second")
			queued := []*semaphore.Semaphore{
				newSemaphore(t, client(t, srv, "first"), "/sem", 1),
				newSemaphore(t, moving, "/sem", 1),
			}
			holder := newSemaphore(t, client(t, srv, "holder"), "/sem", 1)
			hold := acquire(t, holder, 1)
			for _, s := range queued { // from now on they stand in line at once, so only those who take a permit write the leases
				a := start(t, s, 1)
				time.Sleep(time.Second)
				a.cancel()
				_, err := a.wait()
				require.ErrorIs(t, err, recipes.ErrNotAcquired)
			}
			release(t, hold)
			time.Sleep(reaped)
			require.False(t, srv.Exists("/sem/leases"))

			hold = acquire(t, holder, 1) // the version is 1
			first := start(t, queued[0], 1)
			time.Sleep(time.Second)
			second := start(t, queued[1], 1)
			time.Sleep(time.Second)
			exchange := srv.On(zktest.Match{Client: "first", Op: zktest.OpMulti}, zktest.Hold())
			release(t, hold)
			require.NoError(t, exchange.Wait(t.Context()))
			require.True(t, srv.Exists("/sem/leases"))
			f.Freeze() // it shows the leases of now, which are none
			time.Sleep(reaped)
			require.False(t, srv.Exists("/sem/leases"))
			srv.On(zktest.Match{Client: "second", Op: zktest.OpGetChildren2, Path: "/sem/leases"}, zktest.DropBefore())
			srv.On(zktest.Match{Client: "second", Op: zktest.OpMulti}, fault)
			away.Store(true)
			exchange.Release()
			hold = first.won(t)         // the version is 1
			time.Sleep(2 * time.Second) // unless a new connection begins with a sync, the second has tried by now
			f.Thaw()
			time.Sleep(3 * time.Second)
			require.NoError(t, hold.Err())
			require.True(t, second.waiting(), "%s: a second holder", name)
			release(t, hold)
			release(t, second.won(t))
			nobody(t, srv, "/sem")
		}, containers)
	}
}

// The same with nothing but a follower that is behind.
func TestSimulatedSlotsOfAFollowerThatIsBehind(t *testing.T) {
	sim.Run(t, 20, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		require.NoError(t, srv.Create("/limit", number(3)))
		f := srv.Follower(200 * time.Millisecond)
		opts := []semaphore.Option{semaphore.WithSharedLimit("/limit"), semaphore.WithSlots()}
		var mu sync.Mutex
		var running sync.WaitGroup
		holds := map[int]*recipes.Hold{} // by slot
		for i, addr := range []string{srv.MemAddr(), f.MemAddr()} {
			s := newSemaphore(t, clientOf(t, srv, fmt.Sprintf("c%d", i), addr), "/sem", 3, opts...)
			r := rand.New(rand.NewPCG(random.Uint64(), 0))
			running.Go(func() {
				for range 100 {
					hold, err := s.Acquire(context.WithoutCancel(t.Context()))
					if err != nil {
						continue // a container above was deleted too often
					}
					slot := semaphore.Slots(hold)[0]
					mu.Lock()
					if other := holds[slot]; other != nil && other.Err() == nil && hold.Err() == nil {
						t.Errorf("tokens %d and %d have slot %d", other.Token(), hold.Token(), slot)
					}
					holds[slot] = hold
					mu.Unlock()
					time.Sleep(time.Duration(r.Int64N(int64(300 * time.Millisecond))))
					_ = hold.Release()
					time.Sleep(time.Duration(r.Int64N(int64(600 * time.Millisecond))))
				}
			})
		}
		running.Wait()
	}, containers)
}

// All nodes are deleted and made again between the look at who uses the semaphore and the
// transaction that notes another limit, and have the same versions as before.
func TestFixedLimitIsNotNotedOverOneThatHasComeIntoUse(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		four := newSemaphore(t, client(t, srv, "four"), "/sem", 4)
		two := newSemaphore(t, client(t, srv, "two"), "/sem", 2)
		release(t, acquire(t, four, 1))
		noting := srv.On(zktest.Match{Client: "two", Op: zktest.OpMulti}, zktest.Hold())
		late := start(t, two, 1)
		require.NoError(t, noting.Wait(t.Context()))
		time.Sleep(reaped)
		hold := acquire(t, four, 1)
		noting.Release()
		_, err := late.wait()
		require.ErrorIs(t, err, semaphore.ErrLimit)
		require.ErrorContains(t, err, "2 here, 4 for those who use it")
		release(t, acquire(t, four, 3))
		release(t, hold)
		release(t, acquire(t, two, 2))
		nobody(t, srv, "/sem")
	}, containers)
}

// Permits that were taken before are in use, whatever the next server knows.
func TestFixedLimitOfAUsedSemaphoreIsRefusedByAServerThatIsBehind(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		f := srv.Follower(lag)
		release(t, acquire(t, newSemaphore(t, client(t, srv, "four"), "/sem", 4), 1))
		time.Sleep(lag)
		hold := acquire(t, newSemaphore(t, client(t, srv, "other"), "/sem", 4), 1)
		late := newSemaphore(t, clientOf(t, srv, "two", f.MemAddr()), "/sem", 2)
		_, err := late.Acquire(t.Context())
		require.ErrorIs(t, err, semaphore.ErrLimit)
		release(t, hold)
		release(t, acquire(t, late, 2)) // and nobody uses it, though the server may not know
		nobody(t, srv, "/sem")
	})
}

// A server that is behind, and directories that come and go: nobody has a permit by one limit while
// somebody has one by another.
func TestSimulatedFixedLimits(t *testing.T) {
	sim.Run(t, 25, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
		f := srv.Follower(time.Duration(random.Int64N(int64(300 * time.Millisecond))))
		var mu sync.Mutex
		var running sync.WaitGroup
		held := map[int][]*recipes.Hold{} // by limit
		for i := range 4 {
			addr := []string{srv.MemAddr(), f.MemAddr()}[i%2]
			limit := 2 + 2*(i/2)
			s := newSemaphore(t, clientOf(t, srv, fmt.Sprintf("c%d", i), addr), "/sem", limit)
			r := rand.New(rand.NewPCG(random.Uint64(), 0))
			running.Go(func() {
				for range 40 {
					ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*time.Second)
					hold, err := s.AcquireN(ctx, 1+r.IntN(limit))
					cancel()
					if err != nil {
						time.Sleep(time.Duration(r.Int64N(int64(100 * time.Millisecond))))
						continue
					}
					mu.Lock()
					held[limit] = append(held[limit], hold)
					for _, other := range held[6-limit] {
						if other.Err() == nil && hold.Err() == nil {
							t.Errorf("token %d by limit %d, and %d by limit %d", hold.Token(), limit, other.Token(), 6-limit)
						}
					}
					mu.Unlock()
					time.Sleep(time.Duration(r.Int64N(int64(200 * time.Millisecond))))
					_ = hold.Release()
					time.Sleep(time.Duration(r.Int64N(int64(500 * time.Millisecond))))
				}
			})
		}
		running.Wait()
	}, zktest.WithConfig("znode.container.checkIntervalMs", "100"))
}

// Servers count no more children then.
func TestPermitsAreTakenInTheQueueAtTheEndOfTheSequenceCounter(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		holder := newSemaphore(t, client(t, srv, "holder"), "/sem", 3)
		waiter := newSemaphore(t, client(t, srv, "waiter"), "/sem", 3)
		release(t, acquire(t, holder, 1))
		require.NoError(t, srv.SetSequence("/sem/leases", 1<<31-4))
		for range 5 {
			hold := acquire(t, holder, 2)
			a := start(t, waiter, 2)
			time.Sleep(time.Second)
			release(t, hold)
			time.Sleep(time.Second)
			require.False(t, a.waiting())
			release(t, a.won(t))
		}
		nobody(t, srv, "/sem")
	})
}
