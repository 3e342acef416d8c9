package semaphore_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/semaphore"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest/fault"
)

// The servers return with their data, or other servers without it take their place.
func TestPermitsAreAcquiredAgainAfterAllServersWereDown(t *testing.T) {
	t.Parallel()
	for name, wiped := range map[string]bool{"the same": false, "others": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own := testzk.Own(t, testzk.Seldom)
			var all []*semaphore.Semaphore
			for range 4 {
				c := testzk.Connected(t, own.Connect(), testzk.Mortal(),
					framework.WithRetry(retry.Forever(50*time.Millisecond)))
				all = append(all, newSemaphore(t, c, "/sem", 2, semaphore.WithSlots()))
			}
			holds := []*recipes.Hold{acquire(t, all[0], 1), acquire(t, all[1], 1)}
			long := context.Background() // the servers may take their time
			waiters := []*testlock.Attempt{startUnder(t, long, all[2], 1), startUnder(t, long, all[3], 2)}
			crowd(t, all[0], 2, 2)
			own.Kill(t)
			for _, h := range holds {
				testzk.Closes(t, h.Done(), "a hold is valid longer than its session")
				require.ErrorIs(t, h.Err(), framework.ErrSessionLost)
			}
			require.True(t, waiters[0].Waiting())
			require.True(t, waiters[1].Waiting())
			if wiped {
				own.Wipe(t)
			}
			own.Start(t)
			var served atomic.Int64
			for _, w := range waiters {
				go func() {
					if hold, err := w.Wait(); err == nil && hold.Release() == nil {
						served.Add(1)
					}
				}()
			}
			testzk.Eventually(t, func() bool { return served.Load() == 2 }, "a waiter gets no permit")
			release(t, acquire(t, all[0], 2))
			crowd(t, all[0], 0, 0)
		})
	}
}

// The session is lost together with the queue node and with a permit of which the client does not
// know yet.
func TestAcquireSurvivesTheLossOfTheSessionWithItsPermit(t *testing.T) {
	t.Parallel()
	p := testzk.Proxy(t)
	path := testzk.Path(t)
	c := testzk.Connected(t, p.Addr(), framework.WithSessionTimeout(24*time.Second),
		framework.WithLossDeadline(1.0/3), framework.WithRetry(retry.Forever(50*time.Millisecond)))
	s := newSemaphore(t, c, path, 1, semaphore.WithSlots())
	for range 3 {
		release(t, acquire(t, s, 1))
		session, err := c.Session(testzk.Context(t))
		require.NoError(t, err)
		taken := p.On(fault.Match{Op: fault.OpMulti, Path: path}, fault.DropAfter())
		a := start(t, s, 1)
		require.NoError(t, taken.Wait(testzk.Context(t)))
		require.NoError(t, p.Refuse(true))
		testzk.Closes(t, session.Done(), "the session is not lost")
		require.NoError(t, p.Refuse(false))
		hold := a.Won(t)
		require.NoError(t, hold.Err())
		_, err = hold.Guard(testzk.Context(t))
		require.NoError(t, err)
		release(t, hold)
	}
	empty(t, path)
}
