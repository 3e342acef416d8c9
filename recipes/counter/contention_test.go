package counter_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/counter"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

// Curator: testSimulation of DistributedAtomicLong.
func TestContendingClientsWaitInTheQueueOfTheLock(t *testing.T) {
	for name, lock := range map[string]string{"default": path + "-lock", "WithLock": "/locks/orders"} {
		t.Run(name, func(t *testing.T) {
			virtually(t, func(t *testing.T, srv *zktest.Server) {
				var opts []counter.Option
				if name == "WithLock" {
					opts = append(opts, counter.WithLock(lock))
				}
				const clients, adds = 20, 50
				results := make([][]int64, clients)
				var all sync.WaitGroup
				for i := range clients {
					a := newAtomic(t, client(t, srv, fmt.Sprint("c", i)), path, opts...)
					all.Go(func() {
						for range adds {
							sum, err := a.Add(background(), 1)
							if err != nil {
								t.Error(err)
							}
							results[i] = append(results[i], sum)
						}
					})
				}
				all.Wait()
				for _, sums := range results {
					require.True(t, slices.IsSorted(sums))
				}
				sums := slices.Concat(results...)
				slices.Sort(sums)
				require.Len(t, slices.Compact(sums), clients*adds)
				require.Equal(t, int64(clients*adds), stored(t, srv, path))
				queued := 0
				for _, e := range srv.Trace().Entries {
					if strings.HasPrefix(e.What, "create") && strings.HasPrefix(e.Path, lock+"/") {
						queued++
					}
				}
				require.Greater(t, queued, clients, "the lock is not used")
			})
		})
	}
}

// beaten makes another client write whenever c wants to, until stop is called.
func beaten(t *testing.T, srv *zktest.Server, c string, other *counter.Atomic) (stop func()) {
	writes := fault.Match{Client: c, Op: fault.OpMulti, Path: path, Times: fault.Always}
	rule := srv.On(writes, fault.Delay(20*time.Millisecond))
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-time.After(5 * time.Millisecond):
			}
			if _, err := other.Add(background(), 1000); err != nil {
				t.Error(err)
			}
		}
	}()
	return func() {
		rule.Remove()
		close(done)
		<-ended
	}
}

// queued waits until there is a waiter behind the holder of the lock.
func queued(t *testing.T, lock *mutex.Mutex) {
	t.Helper()
	for {
		waiting, err := lock.Participants(testzk.Context(t))
		require.NoError(t, err)
		if len(waiting) == 2 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestUpdateThatIsBeatenWaitsForTheHolderOfTheLock(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		ctx := testzk.Context(t)
		b := client(t, srv, "b")
		lock, err := mutex.New(b, "/curator")
		require.NoError(t, err)
		hold, err := lock.Acquire(ctx)
		require.NoError(t, err)
		a := newAtomic(t, client(t, srv, "a"), path, counter.WithLock("/curator"))
		stop := beaten(t, srv, "a", newAtomic(t, b, path))
		done := make(chan error)
		go func() {
			_, err := a.Add(background(), 1)
			done <- err
		}()
		queued(t, lock)
		short, cancel := testzk.Deadline(ctx)
		failing := make(chan error)
		go func() {
			_, err := a.Add(short, 5)
			failing <- err
		}()
		time.Sleep(time.Second)
		cancel()
		err = <-failing
		require.Equal(t, framework.NotApplied, framework.OutcomeOf(err), "%v", err)
		stop()
		require.NoError(t, hold.Release())
		require.NoError(t, <-done)
		require.Equal(t, int64(1), stored(t, srv, path)%1000)
	})
}

// A program updates a counter while it holds the counter's lock. Another goroutine of the program waits
// for that lock with an update of its own.
func TestUpdateUnderTheLockDoesNotWaitForTheOnesInItsQueue(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		c := client(t, srv, "a")
		lock, err := mutex.New(c, path+"-lock")
		require.NoError(t, err)
		hold, err := lock.Acquire(testzk.Context(t))
		require.NoError(t, err)
		a := newAtomic(t, c, path)
		stop := beaten(t, srv, "a", newAtomic(t, client(t, srv, "b"), path))
		done := make(chan error)
		go func() {
			_, err := a.Add(background(), 1)
			done <- err
		}()
		queued(t, lock)
		work, cancel := context.WithTimeout(hold.Context(background()), time.Minute)
		defer cancel()
		time.AfterFunc(time.Second, stop)
		_, err = a.Add(work, 10)
		require.NoError(t, err)
		require.NoError(t, hold.Release())
		require.NoError(t, <-done)
		require.Equal(t, int64(11), stored(t, srv, path)%1000)
	})
}

func TestContextBoundsTheWaitInTheQueue(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		b := client(t, srv, "b")
		lock, err := mutex.New(b, path+"-lock")
		require.NoError(t, err)
		hold, err := lock.Acquire(testzk.Context(t))
		require.NoError(t, err)
		defer func() { require.NoError(t, hold.Release()) }()
		a := newAtomic(t, client(t, srv, "a"), path)
		stop := beaten(t, srv, "a", newAtomic(t, b, path))
		defer stop()
		ctx, pass := testzk.Deadline(testzk.Context(t))
		time.AfterFunc(time.Second, pass)
		_, err = a.Add(ctx, 1)
		require.ErrorIs(t, err, recipes.ErrNotAcquired)
		require.Equal(t, framework.NotApplied, framework.OutcomeOf(err), "%v", err)
	})
}

// When the others have stopped, an update is one request again.
func TestUpdatesAreOptimisticAgainAfterContention(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		a := newAtomic(t, client(t, srv, "a"), path)
		stop := beaten(t, srv, "a", newAtomic(t, client(t, srv, "b"), path))
		ctx := testzk.Context(t)
		time.AfterFunc(time.Second, stop)
		for range 3 {
			_, err := a.Add(ctx, 1)
			require.NoError(t, err)
		}
		time.Sleep(time.Second)
		for range 2 { // the first finds what the other has written, the second that it has not written since
			_, err := a.Add(ctx, 1)
			require.NoError(t, err)
		}
		requests := testlock.RequestsOn(srv)
		_, err := a.Add(ctx, 1)
		require.NoError(t, err)
		require.Equal(t, "multi", requests.Of("a"))
	})
}

// Curator: testForceSet.
func TestSetsAndAddsAtTheSameTime(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		var all sync.WaitGroup
		for i := range 6 {
			a := newAtomic(t, client(t, srv, fmt.Sprint("c", i)), path)
			all.Go(func() {
				for range 20 {
					var err error
					if i%2 == 0 {
						_, err = a.Add(background(), 1)
					} else {
						err = a.Set(background(), 0)
					}
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		require.LessOrEqual(t, stored(t, srv, path), int64(60))
	})
}
