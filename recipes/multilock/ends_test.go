package multilock_test

import (
	"context"
	"errors"
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
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// simulated calls test with clients in virtual time, and requires that they leave no node.
func simulated(t *testing.T, test func(t *testing.T, srv *zktest.Server, connect connector)) {
	t.Helper()
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		test(t, srv, func(name string, opts ...framework.Option) *framework.Client {
			dialer := framework.WithDialer(srv.Client(name).DialContext)
			return testzk.Connected(t, srv.MemAddr(), append(opts, dialer)...)
		})
		time.Sleep(10 * time.Minute) // a session lives for longer than it has nothing to do
		require.NotContains(t, srv.Tree(), "ephemeral")
	})
}

type connector func(name string, opts ...framework.Option) *framework.Client

// A lock of the program's may limit how long it is held, and so release a part.
func TestHoldEndsWhenAPartIsReleased(t *testing.T) {
	simulated(t, func(t *testing.T, _ *zktest.Server, connect connector) {
		c := connect("c")
		limited := &recordedLock{acquire: func(ctx context.Context) (*recipes.Hold, error) {
			hold, err := newMutex(t, c, "/a").Acquire(ctx)
			if err == nil {
				time.AfterFunc(10*time.Second, func() { _ = hold.Release() })
			}
			return hold, err
		}}
		hold := acquire(t, combined(t, limited, newMutex(t, c, "/b")))
		time.Sleep(9 * time.Second)
		require.NoError(t, hold.Err())
		time.Sleep(2 * time.Second)
		testzk.Closes(t, hold.Done(), "the hold of all goes on")
		require.ErrorIs(t, hold.Err(), recipes.ErrNotHeld)
		require.ErrorIs(t, hold.Release(), recipes.ErrNotHeld)
	})
}

// A program may keep a hold of a lock, and combine it with others several times.
func TestPartOfTwoHoldsEndsBoth(t *testing.T) {
	simulated(t, func(t *testing.T, srv *zktest.Server, connect connector) {
		c := connect("c")
		shared := acquire(t, newMutex(t, c, "/a"))
		first := acquire(t, combined(t, lent(shared), newMutex(t, c, "/b")))
		second := acquire(t, combined(t, lent(shared), newMutex(t, c, "/c")))
		require.NoError(t, srv.Delete(shared.Path()))
		time.Sleep(time.Second)
		for _, hold := range []*recipes.Hold{first, second} {
			testzk.Closes(t, hold.Done(), "the hold of all goes on")
			require.ErrorIs(t, hold.Err(), recipes.ErrNodeDeleted)
		}
	})
}

// The release of the whole does not take the loss from the program that has acquired the part.
func TestFirstReleaseOfALostPartTellsTheLoss(t *testing.T) {
	simulated(t, func(t *testing.T, srv *zktest.Server, connect connector) {
		c := connect("c")
		part := acquire(t, newMutex(t, c, "/a"))
		whole := acquire(t, combined(t, lent(part), newMutex(t, c, "/b")))
		require.NoError(t, srv.Delete(part.Path()))
		time.Sleep(time.Second)
		require.ErrorIs(t, whole.Release(), recipes.ErrNodeDeleted)
		require.ErrorIs(t, whole.Release(), recipes.ErrNotHeld)
		require.ErrorIs(t, part.Release(), recipes.ErrNodeDeleted)
		require.ErrorIs(t, part.Release(), recipes.ErrNotHeld)
	})
}

// lent returns a lock whose acquires return a hold that the program has.
func lent(hold *recipes.Hold) recipes.Locker {
	return &recordedLock{acquire: func(context.Context) (*recipes.Hold, error) { return hold, nil }}
}

// A part is in the whole, and in another part of it.
func TestPartOfTwoLevelsIsReleasedOnce(t *testing.T) {
	simulated(t, func(t *testing.T, srv *zktest.Server, connect connector) {
		c := connect("c")
		shared := acquire(t, newMutex(t, c, "/a"))
		whole := acquire(t, combined(t, combined(t, lent(shared), newMutex(t, c, "/b")), lent(shared)))
		srv.On(fault.Match{Client: "c", Op: fault.OpDelete, Times: fault.Always}, fault.Delay(time.Second))
		require.NoError(t, whole.Release())
		require.NotContains(t, srv.Tree(), "ephemeral")
	})
}

// The acquire would begin again for ever.
func TestLockThatReturnsALostHoldAgainIsRefused(t *testing.T) {
	simulated(t, func(t *testing.T, srv *zktest.Server, connect connector) {
		part := acquire(t, newMutex(t, connect("c"), "/a"))
		require.NoError(t, srv.Delete(part.Path()))
		time.Sleep(time.Second)
		_, err := combined(t, lent(part)).Acquire(t.Context())
		require.ErrorIs(t, err, recipes.ErrNodeDeleted)
		require.ErrorContains(t, err, "returned a hold that has ended")
	})
}

// An acquire that re-enters a hold of several locks, and then fails, releases what it has acquired only.
func TestFailedAcquireKeepsTheHoldThatItHasReentered(t *testing.T) {
	simulated(t, func(t *testing.T, _ *zktest.Server, connect connector) {
		c, other := connect("c"), connect("other")
		require.NoError(t, acquire(t, newMutex(t, other, "/x")).Release())
		busy := acquire(t, newMutex(t, other, "/x"))
		ordered := newMulti(t, c, []string{"/a", "/b"}, multilock.WithPathOrder())
		hold := acquire(t, ordered)
		_, err := combined(t, ordered, newMutex(t, c, "/x")).TryAcquire(hold.Context(t.Context()))
		require.ErrorIs(t, err, recipes.ErrNotAcquired)
		require.NoError(t, hold.Err())
		_, err = newMutex(t, other, "/a").TryAcquire(t.Context())
		require.ErrorIs(t, err, recipes.ErrNotAcquired, "two hold a lock")
		require.NoError(t, busy.Release())
		require.NoError(t, hold.Release())
	})
}

// The log or the metrics block for long at one loss, or end the goroutine. Meanwhile the session lives, and its
// other locks must be free.
func TestReportOfALossKeepsNoOtherLock(t *testing.T) {
	for name, end := range map[string]func(){
		"blocks":             func() { time.Sleep(5 * time.Minute) },
		"ends the goroutine": runtime.Goexit,
	} {
		for what, option := range reporting(end) {
			t.Run(what+" "+name, func(t *testing.T) {
				simulated(t, func(t *testing.T, srv *zktest.Server, connect connector) {
					reportKeepsNoOtherLock(t, srv, connect("c", framework.WithLossPolicy(framework.Strict), option))
				})
			})
		}
	}
}

func reportKeepsNoOtherLock(t *testing.T, srv *zktest.Server, c *framework.Client) {
	t.Helper()
	var given atomic.Int32
	until := time.Now().Add(24 * time.Hour)
	var holds []*recipes.Hold
	for _, path := range simPaths {
		service := foreign(func() recipes.ForeignHold {
			return recipes.ForeignHold{
				Until:   func() time.Time { return until },
				Release: func(context.Context) error { given.Add(1); return nil },
			}
		})
		holds = append(holds, acquire(t, combined(t, service, newMutex(t, c, path))))
	}
	srv.Client("c").Drop()
	time.Sleep(time.Minute)
	for _, hold := range holds {
		require.ErrorIs(t, hold.Err(), framework.ErrSuspended)
	}
	require.EqualValues(t, len(holds), given.Load(), "released locks of the service")
	require.NotContains(t, srv.Tree(), "ephemeral")
}

// A lock with hand-off waits for the end of its node in the client.
func TestReportOfALossKeepsNoHandoff(t *testing.T) {
	for what, option := range reporting(runtime.Goexit) {
		t.Run(what, func(t *testing.T) {
			simulated(t, func(t *testing.T, srv *zktest.Server, connect connector) {
				c := connect("c", option)
				var locks []*mutex.Mutex
				handoff := mutex.Handoff{Streak: 10, Span: time.Second}
				for _, path := range simPaths {
					lock, err := mutex.New(c, path, mutex.WithLocalHandoff(handoff))
					require.NoError(t, err)
					acquire(t, lock)
					locks = append(locks, lock)
				}
				expire(srv.Client("c"))
				time.Sleep(time.Minute)
				for _, lock := range locks {
					require.NoError(t, acquire(t, lock).Release())
				}
			})
		})
	}
}

// The code of a service ends the goroutine that watches its lock.
func TestForeignLockThatNothingWatchesIsReleased(t *testing.T) {
	simulated(t, func(t *testing.T, _ *zktest.Server, connect connector) {
		lost, until := make(chan struct{}), time.Now().Add(24*time.Hour)
		var asked, given atomic.Int32
		service := foreign(func() recipes.ForeignHold {
			return recipes.ForeignHold{
				Lost:  lost,
				Until: func() time.Time { return until },
				Reason: func() error {
					if asked.Add(1) == 1 {
						runtime.Goexit()
					}
					return errors.New("evicted")
				},
				Release: func(context.Context) error { given.Add(1); return nil },
			}
		})
		hold := acquire(t, combined(t, service, newMutex(t, connect("c"), "/lock")))
		close(lost)
		time.Sleep(time.Second)
		testzk.Closes(t, hold.Done(), "the hold goes on")
		require.ErrorIs(t, hold.Err(), recipes.ErrForeignLost)
		require.EqualValues(t, 1, given.Load(), "released locks of the service")
	})
}

// While the client reports the loss of a session, it does not keep the session alive on the servers.
func TestReportOfALossKeepsNoLostSession(t *testing.T) {
	for what, option := range reporting(func() { time.Sleep(5 * time.Minute) }) {
		t.Run(what, func(t *testing.T) {
			simulated(t, func(t *testing.T, srv *zktest.Server, connect connector) {
				c := connect("c", framework.WithSessionTimeout(10*time.Second), option)
				hold := acquire(t, newMutex(t, c, "/a"))
				srv.Client("c").Cut()
				<-hold.Done()
				srv.Client("c").Heal()
				requireFree(t, connect("other"), "/a")
			})
		})
	}
}

// requireFree acquires a lock within the time of a session timeout and more.
func requireFree(t *testing.T, c *framework.Client, path string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	next, err := newMutex(t, c, path).Acquire(ctx)
	require.NoError(t, err)
	require.NoError(t, next.Release())
}

// A failed acquire releases a hold of locks of two clients, one of which is cut off. The other one is closed.
func TestFailedAcquireOfOneClientKeepsNoOther(t *testing.T) {
	simulated(t, func(t *testing.T, srv *zktest.Server, connect connector) {
		near, far := connect("near"), connect("far", framework.WithSessionTimeout(time.Minute))
		fails := &recordedLock{acquire: func(context.Context) (*recipes.Hold, error) {
			srv.Client("far").Cut()
			return nil, recipes.ErrNotAcquired
		}}
		both := combined(t, newMutex(t, near, "/a"), newMutex(t, far, "/b"))
		_, err := combined(t, both, fails).Acquire(t.Context())
		require.ErrorIs(t, err, recipes.ErrNotAcquired)
		began := time.Now()
		require.NoError(t, near.Close())
		require.Less(t, time.Since(began), time.Second, "Close waits for another client")
		srv.Client("far").Heal()
	})
}

// The loss of one part ends the holds that it is a part of, and not another hold of the other parts.
func TestReenteredHoldOutlivesTheLossOfAnotherPart(t *testing.T) {
	simulated(t, func(t *testing.T, srv *zktest.Server, connect connector) {
		c := connect("c")
		ordered := newMulti(t, c, []string{"/a", "/b"}, multilock.WithPathOrder())
		outer := acquire(t, ordered)
		all, err := combined(t, ordered, newMutex(t, connect("other"), "/x")).Acquire(outer.Context(t.Context()))
		require.NoError(t, err)
		require.NoError(t, srv.Delete(all.Paths()[2]))
		time.Sleep(time.Second)
		require.ErrorIs(t, all.Err(), recipes.ErrNodeDeleted)
		require.NoError(t, outer.Err())
		require.NoError(t, outer.Release())
	})
}

// The code of a service ends the goroutine at any point of the release of what a failed acquire has acquired.
func TestServiceThatEndsAFailedAcquireKeepsNoLock(t *testing.T) {
	for call := range int32(6) {
		t.Run(fmt.Sprint(call), func(t *testing.T) {
			simulated(t, func(t *testing.T, _ *zktest.Server, connect connector) {
				var fails atomic.Bool
				var asked, given atomic.Int32
				until := time.Now().Add(24 * time.Hour)
				service := foreign(func() recipes.ForeignHold {
					return recipes.ForeignHold{
						Until: func() time.Time {
							if fails.Load() && asked.Add(1) == call+1 {
								runtime.Goexit()
							}
							return until
						},
						Release: func(context.Context) error { given.Add(1); return nil },
					}
				})
				last := &recordedLock{acquire: func(context.Context) (*recipes.Hold, error) {
					fails.Store(true)
					return nil, recipes.ErrNotAcquired
				}}
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					both := combined(t, service, newMutex(t, connect("c"), "/a"))
					_, _ = combined(t, both, last).Acquire(t.Context())
				}()
				testzk.Closes(t, ended, "the acquire goes on")
				time.Sleep(time.Minute)
				require.EqualValues(t, 1, given.Load(), "released locks of the service")
			})
		})
	}
}
