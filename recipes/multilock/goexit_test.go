package multilock_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// ending is a lock with an acquire that does not return, before or after it has acquired the lock.
type ending struct {
	recipes.Locker
	end    func()
	before bool
}

func (e ending) Acquire(ctx context.Context) (*recipes.Hold, error) {
	if e.before {
		e.end()
	}
	hold, err := e.Locker.Acquire(ctx)
	if err == nil {
		err = hold.Release()
	}
	e.end()
	return nil, err
}

// Code of the program ends the goroutine at any point of an acquire of several locks, also after
// the last of them. No lock stays held.
func TestNoLockStaysHeldIfTheAcquireOfASequenceIsEnded(t *testing.T) {
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
						var locks []recipes.Locker
						for _, path := range paths {
							locks = append(locks, newMutex(t, c, path))
						}
						locks[i] = ending{locks[i], end, before}
						acquire := func() (*recipes.Hold, error) { return combined(t, locks...).Acquire(t.Context()) }
						require.Nil(t, run(t, srv, acquire))
					})
				})
			}
		}
		t.Run(name+" behind the last lock", func(t *testing.T) {
			sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
				c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client("c").DialContext))
				var ends atomic.Bool
				var given atomic.Int32
				begun := time.Now()
				service := foreign(func() recipes.ForeignHold {
					return recipes.ForeignHold{
						Until: func() time.Time {
							if ends.CompareAndSwap(true, false) {
								end()
							}
							return begun.Add(time.Hour)
						},
						Release: func(context.Context) error { given.Add(1); return nil },
					}
				})
				last := &recordedLock{acquire: func(ctx context.Context) (*recipes.Hold, error) {
					hold, err := newMutex(t, c, "/a").Acquire(ctx)
					synctest.Wait()  // what watches the service has asked
					ends.Store(true) // when the holds are checked
					return hold, err
				}}
				acquire := func() (*recipes.Hold, error) { return combined(t, service, last).Acquire(t.Context()) }
				require.Nil(t, run(t, srv, acquire))
				require.EqualValues(t, 1, given.Load())
			})
		})
	}
}
