package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
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
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// lag is how long a server of these tests is behind.
const lag = 500 * time.Millisecond

// containers makes the server look for empty containers more often than by default.
var containers = zktest.WithConfig("znode.container.checkIntervalMs", "300")

// reaped is the time after which an empty container and its parent are deleted.
const reaped = time.Second

// clientOf returns a client in virtual time, connected to one server of the ensemble.
func clientOf(t *testing.T, srv *zktest.Server, name, addr string) *framework.Client {
	t.Helper()
	return client(t, srv, name, framework.WithDialer(func(ctx context.Context, network, _ string) (net.Conn, error) {
		return srv.Client(name).DialContext(ctx, network, addr)
	}))
}

// mover returns a client in virtual time that connects to a server other than late. After away is
// set it connects to late.
func mover(
	t *testing.T, srv *zktest.Server, late *zktest.Follower, name string,
) (c *framework.Client, away *atomic.Bool) {
	t.Helper()
	away = new(atomic.Bool)
	var all []string
	for _, member := range srv.Members() {
		all = append(all, member.MemAddr())
	}
	c, err := framework.New(strings.Join(all, ","),
		framework.WithSessionTimeout(20*time.Second),
		framework.WithRetry(retry.Forever(100*time.Millisecond)),
		framework.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			if (addr == late.MemAddr()) != away.Load() {
				return nil, errors.New("the test refuses this server")
			}
			return srv.Client(name).DialContext(ctx, network, addr)
		}))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	require.NoError(t, c.WaitConnected(t.Context()))
	return c, away
}

// behind adds a server to srv. It returns the server that lags, which may be the ZooKeeper leader, and
// the address of the other.
func behind(srv *zktest.Server, leader bool) (late *zktest.Follower, inTime string) {
	if !leader {
		return srv.Follower(lag), srv.MemAddr()
	}
	f := srv.Follower(0)
	srv.Leader().SetLag(lag)
	return srv.Leader(), f.MemAddr()
}

// The waiter comes to the front by an event. The connection is lost before it reads the leases. The
// next server does not yet know of the event and shows the leases of before the last acquire.
func TestPermitsAreNotCountedOnALaggingServer(t *testing.T) {
	for _, leader := range []bool{false, true} {
		for _, compat := range []zktest.Compat{zktest.V39, zktest.V38} {
			permitsAreNotCountedOnALaggingServer(t, leader, compat)
		}
	}
}

func permitsAreNotCountedOnALaggingServer(t *testing.T, leader bool, compat zktest.Compat) {
	variants := map[string][]semaphore.Option{"plain": nil, "unwritable": nil, "slots": {semaphore.WithSlots()}}
	for name, opts := range variants {
		sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
			late, inTime := behind(srv, leader)
			moving, away := mover(t, srv, late, "second")
			holder := clientOf(t, srv, "holder", inTime)
			hold := acquire(t, newSemaphore(t, holder, "/sem", 2, opts...), 2)
			if name == "unwritable" {
				_, err := holder.SetACL(t.Context(), "/sem/leases", zk.WorldACL(zk.PermAll&^zk.PermWrite), -1)
				require.NoError(t, err)
			}
			first := start(t, newSemaphore(t, clientOf(t, srv, "first", inTime), "/sem", 2, opts...), 2)
			time.Sleep(time.Second)
			second := start(t, newSemaphore(t, moving, "/sem", 2, opts...), 1)
			time.Sleep(2 * time.Second)
			srv.On(fault.Match{Client: "first", Op: fault.OpMulti}, fault.Delay(time.Second))
			leases := fault.Match{Client: "second", Op: fault.OpGetChildren2, Path: "/sem/leases"}
			lost := srv.On(leases, fault.DropBefore())
			away.Store(true)
			release(t, hold)
			both := first.Won(t)
			time.Sleep(3 * time.Second)
			require.Equal(t, 1, lost.Hits(), "the second client read the leases when it came to the front")
			require.NoError(t, both.Err())
			require.True(t, second.Waiting(), "%v %s, the leader lags: %t: another permit is held besides 2 of 2",
				compat, name, leader)
			release(t, both)
			release(t, second.Won(t))
			requireEmpty(t, srv, "/sem")
		}, zktest.WithCompat(compat))
	}
}

// Curator adds a lease without writing the directory, so the version of the directory does not
// change.
func TestPermitsOfCuratorAreNotCountedOnALaggingServer(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		f := srv.Follower(lag)
		moving, away := mover(t, srv, f, "second")
		hold := acquire(t, newSemaphore(t, client(t, srv, "holder"), "/sem", 1), 1)
		curator := client(t, srv, "curator")
		own := []framework.CreateOption{framework.Ephemeral(), framework.Sequential(), framework.Protected()}
		queued, err := curator.Create(t.Context(), "/sem/locks/lock-", nil, own...)
		require.NoError(t, err)
		second := start(t, newSemaphore(t, moving, "/sem", 1), 1)
		time.Sleep(time.Second)
		release(t, hold)
		time.Sleep(time.Second)
		lease, err := curator.Create(t.Context(), "/sem/leases/lease-", nil, own...)
		require.NoError(t, err)
		leases := fault.Match{Client: "second", Op: fault.OpGetChildren2, Path: "/sem/leases"}
		lost := srv.On(leases, fault.DropBefore())
		away.Store(true)
		require.NoError(t, curator.Delete(t.Context(), queued, -1))
		time.Sleep(3 * time.Second)
		require.Equal(t, 1, lost.Hits(), "the second client read the leases when it came to the front")
		require.True(t, second.Waiting(), "Curator has the only permit")
		require.NoError(t, curator.Delete(t.Context(), lease, -1))
		release(t, second.Won(t))
		requireEmpty(t, srv, "/sem")
	})
}

func TestMutexHasOneHolderAlthoughAServerLags(t *testing.T) {
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
		srv.On(fault.Match{Client: "first", Op: fault.OpMulti}, fault.Delay(time.Second))
		srv.On(fault.Match{Client: "second", Op: fault.OpGetChildren2, Path: "/mutex/leases"}, fault.DropBefore())
		away.Store(true)
		require.NoError(t, hold.Release())
		first := <-got
		time.Sleep(3 * time.Second)
		require.NoError(t, first.Err())
		require.Empty(t, got, "a second holder besides %d", first.Token())
		require.NoError(t, first.Release())
		require.NoError(t, (<-got).Release())
		requireEmpty(t, srv, "/mutex")
	})
}

// The directory of the leases is deleted and created again between the list and the transaction. It
// has the same version as before.
func TestSlotIsNotTakenByTheListOfADeletedDirectory(t *testing.T) {
	for name, action := range map[string]func() fault.Action{"answered": nil, "answer lost": fault.DropAfter} {
		sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
			opts := []semaphore.Option{semaphore.WithSlots(), semaphore.WithSharedLimit("/limit")}
			slow := newSemaphore(t, client(t, srv, "slow"), "/sem", 3, opts...)
			other := newSemaphore(t, client(t, srv, "other"), "/sem", 3, opts...)
			release(t, acquire(t, slow, 1)) // the version is 1
			held := srv.On(fault.Match{Client: "slow", Op: fault.OpMulti, Path: "/limit"}, fault.Hold())
			if action != nil {
				srv.On(fault.Match{Client: "slow", Op: fault.OpMulti, Path: "/limit"}, action())
			}
			waiter := start(t, slow, 1)
			require.NoError(t, held.Wait(t.Context()))
			time.Sleep(reaped)
			require.False(t, srv.Exists("/sem/leases"))
			taken := acquire(t, other, 1) // the version is 1
			held.Release()
			hold := waiter.Won(t)
			require.NoError(t, hold.Err())
			require.NoError(t, taken.Err())
			require.NotEqual(t, semaphore.Slots(taken), semaphore.Slots(hold), name)
			release(t, taken, hold)
			requireEmpty(t, srv, "/sem")
		}, containers)
	}
}

// The first waiter lists the leases. Before its transaction their directory is deleted and created
// again, with the same version. The reply to the transaction is lost, so the waiter does not learn
// its result.
func TestPermitWithALostReplyIsNotTakenByTheListOfADeletedDirectory(t *testing.T) {
	for name, action := range map[string]fault.Action{"answered": fault.Pass(), "answer lost": fault.DropAfter()} {
		sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
			f := srv.Follower(0)
			moving, away := mover(t, srv, f, "second")
			queued := []*semaphore.Semaphore{
				newSemaphore(t, client(t, srv, "first"), "/sem", 1),
				newSemaphore(t, moving, "/sem", 1),
			}
			holder := newSemaphore(t, client(t, srv, "holder"), "/sem", 1)
			hold := acquire(t, holder, 1)
			// After this they enqueue at once, so only the transactions that take permits write the leases.
			for _, s := range queued {
				a := start(t, s, 1)
				time.Sleep(time.Second)
				a.Cancel()
				_, err := a.Wait()
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
			exchange := srv.On(fault.Match{Client: "first", Op: fault.OpMulti}, fault.Hold())
			release(t, hold)
			require.NoError(t, exchange.Wait(t.Context()))
			require.True(t, srv.Exists("/sem/leases"))
			f.Freeze() // it shows the current leases: none
			time.Sleep(reaped)
			require.False(t, srv.Exists("/sem/leases"))
			srv.On(fault.Match{Client: "second", Op: fault.OpGetChildren2, Path: "/sem/leases"}, fault.DropBefore())
			srv.On(fault.Match{Client: "second", Op: fault.OpMulti}, action)
			away.Store(true)
			exchange.Release()
			hold = first.Won(t) // the version is 1
			// Without a sync at the begin of a connection the second client would try in this time.
			time.Sleep(2 * time.Second)
			f.Thaw()
			time.Sleep(3 * time.Second)
			require.NoError(t, hold.Err())
			require.True(t, second.Waiting(), "%s: a second holder", name)
			release(t, hold)
			release(t, second.Won(t))
			requireEmpty(t, srv, "/sem")
		}, containers)
	}
}

// The same with the lag of a follower alone.
func TestSimulatedSlotsOfALaggingFollower(t *testing.T) {
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
						t.Errorf("tokens %d and %d both have slot %d", other.Token(), hold.Token(), slot)
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

// A client checks that the semaphore is unused. Before its transaction that records another limit,
// all nodes are deleted and created again. They have the same versions as before.
func TestFixedLimitDoesNotReplaceALimitInUse(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		four := newSemaphore(t, client(t, srv, "four"), "/sem", 4)
		two := newSemaphore(t, client(t, srv, "two"), "/sem", 2)
		release(t, acquire(t, four, 1))
		recording := srv.On(fault.Match{Client: "two", Op: fault.OpMulti}, fault.Hold())
		late := start(t, two, 1)
		require.NoError(t, recording.Wait(t.Context()))
		time.Sleep(reaped)
		hold := acquire(t, four, 1)
		recording.Release()
		_, err := late.Wait()
		require.ErrorIs(t, err, semaphore.ErrLimit)
		require.ErrorContains(t, err, "2 here, the clients that use it have 4")
		release(t, acquire(t, four, 3))
		release(t, hold)
		release(t, acquire(t, two, 2))
		requireEmpty(t, srv, "/sem")
	}, containers)
}

// Permits that were acquired before count as used, even if the next server does not know them.
func TestFixedLimitOfAUsedSemaphoreIsRefusedOnALaggingServer(t *testing.T) {
	for _, leader := range []bool{false, true} {
		sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
			behind, inTime := behind(srv, leader)
			release(t, acquire(t, newSemaphore(t, clientOf(t, srv, "four", inTime), "/sem", 4), 1))
			time.Sleep(lag)
			late := newSemaphore(t, clientOf(t, srv, "two", behind.MemAddr()), "/sem", 2)
			hold := acquire(t, newSemaphore(t, clientOf(t, srv, "other", inTime), "/sem", 4), 1)
			_, err := late.Acquire(t.Context())
			require.ErrorIs(t, err, semaphore.ErrLimit)
			release(t, hold)
			release(t, acquire(t, late, 2)) // the semaphore is unused, although the server may not know it
			requireEmpty(t, srv, "/sem")
		})
	}
}

// With a lagging server, and directories that are deleted and created again, permits of two limits
// are never held at once.
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
							t.Errorf("token %d by limit %d, and %d by limit %d",
								hold.Token(), limit, other.Token(), 6-limit)
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

// The servers do not count more children than 2^31-1.
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
			require.False(t, a.Waiting())
			release(t, a.Won(t))
		}
		requireEmpty(t, srv, "/sem")
	})
}
