package multilock_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/multilock"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// Each lock is waited for on a goroutine of its own. One of them is ended by a logger, while
// another holds that lock.
func TestMultiLockIsNotHeldIfAGoroutineThatWaitsIsEnded(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		others := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client("other").DialContext))
		require.NoError(t, acquire(t, newMutex(t, others, "/b")).Release())
		other := acquire(t, newMutex(t, others, "/a"))
		c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client("c").DialContext),
			logging("attempt failed", runtime.Goexit))
		// The watch on the node ahead is lost, and once more as it is asked for again.
		dropped := srv.On(zktest.Match{Client: "c", Op: zktest.OpGetData, Times: 2}, zktest.DropAfter())
		_, err := newMulti(t, c, []string{"/a", "/b"}).Acquire(testzk.Context(t))
		require.ErrorContains(t, err, "ended the goroutine")
		require.Equal(t, 2, dropped.Hits())
		require.NoError(t, other.Err())
		require.NoError(t, other.Release())
		time.Sleep(time.Second)
		require.NotContains(t, srv.Tree(), "ephemeral")
	})
}

// ending is a lock whose acquire ends in another way than by returning, once it has the lock or
// before.
type ending struct {
	multilock.Lock
	end    func()
	before bool
}

func (e ending) Acquire(ctx context.Context) (*recipes.Hold, error) {
	if e.before {
		e.end()
	}
	hold, err := e.Lock.Acquire(ctx)
	if err == nil {
		err = hold.Release()
	}
	e.end()
	return nil, err
}

// Code of the program's ends the goroutine anywhere in the acquire of several locks one after
// another, also when all of them are acquired. Nothing stays locked.
func TestNothingStaysLockedIfTheAcquireOfASequenceIsEnded(t *testing.T) {
	ends := map[string]func(){"panic": func() { panic("end") }, "goexit": runtime.Goexit}
	paths := []string{"/a", "/b", "/c"}
	run := func(t *testing.T, srv *zktest.Server, acquire func() (*recipes.Hold, error)) (hold *recipes.Hold) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer func() { _ = recover() }()
			hold, _ = acquire()
		}()
		<-done
		if hold != nil {
			require.NoError(t, hold.Release())
		}
		time.Sleep(2 * time.Second)
		require.NotContains(t, srv.Tree(), "ephemeral")
		return hold
	}
	for name, end := range ends {
		for i := range paths {
			for _, before := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s in lock %d before=%v", name, i, before), func(t *testing.T) {
					sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
						c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client("c").DialContext))
						var locks []multilock.Lock
						for _, path := range paths {
							locks = append(locks, newMutex(t, c, path))
						}
						locks[i] = ending{locks[i], end, before}
						require.Nil(t, run(t, srv, func() (*recipes.Hold, error) { return of(t, locks...).Acquire(t.Context()) }))
					})
				})
			}
		}
		t.Run(name+" behind the last lock", func(t *testing.T) {
			sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
				c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client("c").DialContext),
					logging("hold ended", end))
				var over atomic.Bool
				var given atomic.Int32
				begun := time.Now()
				service := foreign(t, c, func() multilock.Grip {
					return multilock.Grip{
						Until: func() time.Time {
							if over.Load() {
								return begun
							}
							return begun.Add(time.Hour)
						},
						Release: func(context.Context) error { given.Add(1); return nil },
					}
				})
				last := &recordedLock{acquire: func(ctx context.Context) (*recipes.Hold, error) {
					hold, err := newMutex(t, c, "/a").Acquire(ctx)
					over.Store(true) // of which the logger is told as the holds are looked at
					return hold, err
				}}
				require.Nil(t, run(t, srv, func() (*recipes.Hold, error) { return of(t, service, last).Acquire(t.Context()) }))
				require.EqualValues(t, 1, given.Load())
			})
		})
	}
}
