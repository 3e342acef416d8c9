package redislock_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/contrib/redislock"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
)

// bubble runs a test in virtual time, with two clients that never poll.
func bubble(t *testing.T, test func(t *testing.T, srv *fake, a, b *peer)) {
	synctest.Test(t, func(t *testing.T) {
		srv := newFake()
		test(t, srv, newPeer(t, srv), newPeer(t, srv))
	})
}

// peer is a client with one lock.
type peer struct {
	*redislock.Lock
	*link
	client *redislock.Client
}

const never = 1000 * time.Hour

func newPeer(t testing.TB, srv *fake) *peer {
	t.Helper()
	l := &link{fake: srv}
	c, err := redislock.NewClientOf(l, redislock.WithTTL(ttl), redislock.WithPollInterval(never))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return &peer{newLock(t, c, "lock"), l, c}
}

// failOnce makes the next request fail, before it arrives or instead of its answer.
func (p *peer) failOnce(answer bool) *atomic.Bool {
	failed := new(atomic.Bool)
	p.fault = func(_ context.Context, isAnswer bool) error {
		if isAnswer == answer && failed.CompareAndSwap(false, true) {
			return errReset
		}
		return nil
	}
	return failed
}

func TestAcquireAndReleaseAreOneRequestEach(t *testing.T) {
	bubble(t, func(t *testing.T, srv *fake, a, _ *peer) {
		require.NoError(t, acquire(t, a).Release())
		srv.requests.Store(0)
		hold := acquire(t, a)
		require.Equal(t, int64(1), srv.requests.Load())
		require.NoError(t, hold.Release())
		require.Equal(t, int64(2), srv.requests.Load())
	})
}

func TestLostRequestsAndAnswersOfAnAcquire(t *testing.T) {
	for _, answer := range []bool{false, true} {
		bubble(t, func(t *testing.T, srv *fake, a, _ *peer) {
			failed := a.failOnce(answer)
			hold := acquire(t, a)
			require.True(t, failed.Load())
			require.Equal(t, int64(1), hold.Token(), "it is acquired once")
			require.NoError(t, hold.Release())
			require.Empty(t, srv.owner(a.Key()))
		})
	}
}

func TestLostRequestsAndAnswersOfARelease(t *testing.T) {
	for _, answer := range []bool{false, true} {
		bubble(t, func(t *testing.T, srv *fake, a, b *peer) {
			hold := acquire(t, a)
			failed := a.failOnce(answer)
			require.NoError(t, hold.Release())
			require.True(t, failed.Load())
			require.Empty(t, srv.owner(a.Key()))
		})
	}
}

// The client of Redis sends a request again by itself when the answer was lost. Meanwhile the lock may
// be another client's.
func TestRepeatedReleaseWasNoLoss(t *testing.T) {
	for _, taken := range []bool{false, true} {
		bubble(t, func(t *testing.T, srv *fake, a, b *peer) {
			hold := acquire(t, a)
			a.repeat = func() {
				if taken {
					acquire(t, b)
				}
			}
			require.NoError(t, hold.Release())
			a.repeat = nil
		})
	}
}

// Without a disk the tokens begin again, and other programs count none.
func TestReleaseFindsAnotherOwnerWithItsToken(t *testing.T) {
	bubble(t, func(t *testing.T, srv *fake, a, b *peer) {
		hold := acquire(t, a)
		srv.redis.FlushAll()
		other := acquire(t, b)
		require.Equal(t, hold.Token(), other.Token())
		require.ErrorIs(t, hold.Release(), recipes.ErrForeignLost)
		require.NoError(t, other.Release())

		hold = acquire(t, a)
		srv.delete(a.Key())
		require.ErrorIs(t, hold.Release(), recipes.ErrForeignLost, "it was not the holder's to the end")

		hold = acquire(t, a)
		srv.delete(a.Key())
		srv.redis.HSet(a.Key(), "a", "b")
		require.ErrorIs(t, hold.Release(), recipes.ErrForeignLost, "another program has it as another kind of lock")
	})
}

// A request that the server executes after the release of its owner has no effect.
func TestLateAcquireIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, srv *fake, a, b *peer) {
		var late []string
		a.sent = func(request []string) { late = request }
		hold := acquire(t, a)
		a.sent = nil
		require.NoError(t, hold.Release())
		answer, err := srv.do(late...)
		require.NoError(t, err)
		require.Equal(t, []any{"", int64(-1)}, answer)
		require.Empty(t, srv.owner(a.Key()))
	})
}

func TestReleaseFindsThatAnotherClientHadTheLock(t *testing.T) {
	bubble(t, func(t *testing.T, srv *fake, a, b *peer) {
		hold := acquire(t, a)
		srv.delete(a.Key())
		other := acquire(t, b)
		err := hold.Release()
		require.ErrorIs(t, err, recipes.ErrForeignLost)
		require.NotErrorIs(t, err, recipes.ErrReleasePending)
		require.NoError(t, other.Err())
		require.NoError(t, other.Release())
	})
}

func TestReleaseThatGetsNoAnswerIsPending(t *testing.T) {
	bubble(t, func(t *testing.T, srv *fake, a, b *peer) {
		hold := acquire(t, a)
		a.setCut(true)
		begun := time.Now()
		require.ErrorIs(t, hold.Release(), recipes.ErrReleasePending)
		require.LessOrEqual(t, time.Since(begun), ttl)
		require.NoError(t, acquire(t, b).Release())
		a.setCut(false)
	})
}

// The context ends while the acquire pauses after an error. The key was set.
func TestAcquireWithoutAnswersIsUndone(t *testing.T) {
	bubble(t, func(t *testing.T, srv *fake, a, b *peer) {
		var deaf atomic.Bool
		deaf.Store(true)
		a.fault = func(_ context.Context, isAnswer bool) error {
			if isAnswer && deaf.Load() {
				return errReset
			}
			return nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), ttl/4)
		defer cancel()
		_, err := a.Acquire(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, errReset)
		deaf.Store(false)
		time.Sleep(ttl / 4)
		require.Empty(t, srv.owner(a.Key()))
	})
}

// The context ends at each point of an acquire. What the server has of it is deleted.
func TestAcquireThatIsGivenUpIsUndone(t *testing.T) {
	for _, answer := range []bool{false, true} {
		bubble(t, func(t *testing.T, srv *fake, a, b *peer) {
			require.NoError(t, acquire(t, a).Release()) // the server knows the scripts
			var slow atomic.Bool
			slow.Store(true)
			a.fault = func(_ context.Context, isAnswer bool) error {
				if isAnswer == answer && slow.CompareAndSwap(true, false) {
					time.Sleep(ttl / 2)
				}
				return nil
			}
			ctx, cancel := context.WithTimeout(t.Context(), ttl/4)
			defer cancel()
			begun := time.Now()
			_, err := a.Acquire(ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.NotErrorIs(t, err, recipes.ErrNotAcquired, "no other holder was seen")
			require.Equal(t, ttl/4, time.Since(begun), "it does not wait for the answer")
			time.Sleep(ttl/4 + time.Millisecond)
			require.Empty(t, srv.owner(a.Key()), "it was deleted long before it expires")
			hold, err := b.TryAcquire(t.Context())
			require.NoError(t, err)
			require.NoError(t, hold.Release())
		})
	}
}

func TestAnswerThatComesTooLateIsNoHold(t *testing.T) {
	bubble(t, func(t *testing.T, srv *fake, a, b *peer) {
		var slow atomic.Bool
		slow.Store(true)
		a.fault = func(_ context.Context, isAnswer bool) error {
			if isAnswer && slow.CompareAndSwap(true, false) {
				time.Sleep(2 * ttl)
			}
			return nil
		}
		hold := acquire(t, a)
		require.Equal(t, int64(2), hold.Token(), "the first grant had expired")
		require.Greater(t, time.Until(hold.ValidUntil()), ttl/2)
		require.NoError(t, hold.Release())
	})
}

func TestDeadlineIsReckonedFromBeforeTheRequest(t *testing.T) {
	bubble(t, func(t *testing.T, srv *fake, a, _ *peer) {
		require.NoError(t, acquire(t, a).Release())
		a.fault = func(_ context.Context, isAnswer bool) error {
			if isAnswer {
				time.Sleep(ttl / 5)
			}
			return nil
		}
		begun := time.Now()
		hold := acquire(t, a)
		require.Equal(t, begun.Add(ttl*9/10), hold.ValidUntil())
		sent := begun.Add(ttl / 3)
		require.True(t, renewed(hold))
		require.Equal(t, sent.Add(ttl*9/10), hold.ValidUntil())
		require.NoError(t, hold.Release())
	})
}

// Without polls the message of the release is all that wakes the waiter.
func TestReleaseWakesWaiters(t *testing.T) {
	bubble(t, func(t *testing.T, srv *fake, a, b *peer) {
		hold := acquire(t, a)
		won := make(chan *recipes.Hold)
		go func() { won <- acquire(t, b) }()
		synctest.Wait()
		time.Sleep(ttl / 10)
		released := time.Now()
		require.NoError(t, hold.Release())
		next := <-won
		require.Equal(t, released, time.Now())
		require.NoError(t, next.Release())
		synctest.Wait()
	})
}

// The goroutines of one client acquire in the order in which they came, and do not all ask at each
// release.
func TestGoroutinesOfOneClientQueue(t *testing.T) {
	bubble(t, func(t *testing.T, srv *fake, a, b *peer) {
		const waiters = 30
		hold := acquire(t, a)
		order := make(chan int, waiters)
		var running sync.WaitGroup
		for i := range waiters {
			running.Go(func() {
				hold := acquire(t, b)
				order <- i
				time.Sleep(time.Millisecond)
				if err := hold.Release(); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		srv.requests.Store(0)
		require.NoError(t, hold.Release())
		running.Wait()
		for i := range waiters {
			require.Equal(t, i, <-order)
		}
		require.LessOrEqual(t, srv.requests.Load(), int64(4*waiters))
	})
}

func TestOnlyTheFirstWaiterPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newFake()
		hold := acquire(t, newPeer(t, srv))
		b := newLock(t, simClient(t, &link{fake: srv}), "lock") // it polls each second at the latest
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		for range 20 {
			running.Go(func() { _, _ = b.Acquire(ctx) })
		}
		synctest.Wait()
		srv.requests.Store(0)
		time.Sleep(time.Minute)
		require.GreaterOrEqual(t, srv.requests.Load(), int64(60))
		require.LessOrEqual(t, srv.requests.Load(), int64(2*60+60), "two polls and a renewal a second")
		cancel()
		running.Wait()
		require.NoError(t, hold.Release())
	})
}

// The first waiter leaves with the message that was for all.
func TestFirstWaiterThatGivesUpWakesTheNext(t *testing.T) {
	bubble(t, func(t *testing.T, srv *fake, a, b *peer) {
		hold := acquire(t, a)
		ctx, giveUp := context.WithCancel(t.Context())
		first := make(chan error)
		go func() { _, err := b.Acquire(ctx); first <- err }()
		synctest.Wait()
		won := make(chan *recipes.Hold)
		go func() { won <- acquire(t, b) }()
		synctest.Wait()
		var answers atomic.Int64
		b.fault = func(_ context.Context, isAnswer bool) error {
			if answers.Add(1) == 1 { // the request of the first waiter, which does not arrive
				giveUp()
				return errReset
			}
			return nil
		}
		released := time.Now()
		require.NoError(t, hold.Release())
		require.ErrorIs(t, <-first, context.Canceled)
		require.NoError(t, (<-won).Release())
		require.Equal(t, released, time.Now())
	})
}

// secondWaiter returns how long a second waiter of b waits for the lock after a, whose release comes between the first
// answer to that waiter and its wait. The third request or answer from then on is a request of the first waiter, which
// hears the release. Those that are lost fail.
func secondWaiter(t *testing.T, a, b *peer, lost ...int64) time.Duration {
	hold := acquire(t, a)
	won := make(chan *recipes.Hold, 2)
	go func() { won <- acquire(t, b) }()
	synctest.Wait()
	var passes atomic.Int64
	b.fault = func(context.Context, bool) error {
		pass := passes.Add(1)
		if pass == 2 { // the answer to the second waiter
			if err := hold.Release(); err != nil {
				return err
			}
			synctest.Wait()
		}
		if slices.Contains(lost, pass) {
			return errReset
		}
		return nil
	}
	released := time.Now()
	second := acquire(t, b)
	took := time.Since(released)
	require.NoError(t, second.Release())
	require.NoError(t, (<-won).Release())
	return took
}

// Another waiter of the client has the subscription, so none begins that would wake the second one. The
// first one hears the release and has trouble.
func TestReleaseBetweenTheAnswerAndTheWait(t *testing.T) {
	bubble(t, func(t *testing.T, _ *fake, a, b *peer) { require.Zero(t, secondWaiter(t, a, b, 3)) })
}

// The next request of the second waiter gets the lock, and the answer is lost. The second waiter asks again, although
// the first one is there to ask for both.
func TestSecondWaiterHasTheLockWithoutAnAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, _ *fake, a, b *peer) { require.Less(t, secondWaiter(t, a, b, 3, 5), ttl/10) })
}

// A holder that crashed publishes nothing, and the key expires.
func TestWaiterAsksWhenTheKeyExpires(t *testing.T) {
	bubble(t, func(t *testing.T, srv *fake, a, b *peer) {
		begun := time.Now()
		hold := acquire(t, a)
		a.setCut(true)
		next := acquire(t, b)
		require.ErrorIs(t, hold.Err(), recipes.ErrForeignLost)
		require.GreaterOrEqual(t, time.Since(begun), ttl)
		require.Less(t, time.Since(begun), ttl+ttl/10)
		require.NoError(t, next.Release())
		a.setCut(false)
	})
}

// A release that is not heard, because the subscription was lost, costs one poll.
func TestWaiterPollsWithoutMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newFake()
		a := newPeer(t, srv)
		c, err := redislock.NewClientOf(deaf{&link{fake: srv}}, redislock.WithTTL(ttl))
		require.NoError(t, err)
		defer c.Close()
		b := newLock(t, c, "lock")
		hold := acquire(t, a)
		won := make(chan *recipes.Hold)
		go func() { won <- acquire(t, b) }()
		synctest.Wait()
		released := time.Now()
		require.NoError(t, hold.Release())
		next := <-won
		require.LessOrEqual(t, time.Since(released), time.Second)
		require.NoError(t, next.Release())
	})
}

// deaf is a Redis whose subscriptions fail.
type deaf struct{ *link }

func (deaf) Subscribe(context.Context) (redislock.Subscription, error) { return nil, errReset }

func TestSubscriptionIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newFake()
		a := newPeer(t, srv)
		l := &link{fake: srv}
		c := simClient(t, l)
		hold := acquire(t, a)
		won := make(chan *recipes.Hold)
		go func() { won <- acquire(t, newLock(t, c, "lock")) }()
		synctest.Wait()
		srv.mu.Lock()
		for s := range srv.subs {
			s.close() // the connection is lost
		}
		srv.mu.Unlock()
		time.Sleep(5 * time.Second)
		srv.mu.Lock()
		require.Len(t, srv.subs, 1)
		srv.mu.Unlock()
		require.NoError(t, hold.Release())
		require.NoError(t, (<-won).Release())
	})
}

func TestHoldOutlastsAShortPartition(t *testing.T) {
	bubble(t, func(t *testing.T, srv *fake, a, b *peer) {
		hold := acquire(t, a)
		time.Sleep(ttl / 4)
		a.setCut(true)
		time.Sleep(ttl / 2)
		require.NoError(t, hold.Err())
		a.setCut(false)
		time.Sleep(10 * ttl)
		require.NoError(t, hold.Err())
		require.NotEmpty(t, srv.owner(a.Key()))
		require.NoError(t, hold.Release())
	})
}

func TestLossHasAReason(t *testing.T) {
	for want, then := range map[string]func(t *testing.T, srv *fake, a, b *peer){
		"was deleted": func(_ *testing.T, srv *fake, a, _ *peer) { srv.delete(a.Key()) },
		"another kind": func(t *testing.T, srv *fake, a, _ *peer) {
			srv.delete(a.Key())
			srv.redis.HSet(a.Key(), "a", "b")
		},
		"belongs to": func(t *testing.T, srv *fake, a, b *peer) {
			srv.delete(a.Key())
			acquire(t, b)
		},
	} {
		bubble(t, func(t *testing.T, srv *fake, a, b *peer) {
			begun := time.Now()
			hold := acquire(t, a)
			then(t, srv, a, b)
			<-hold.Done()
			require.LessOrEqual(t, time.Since(begun), ttl/3)
			require.ErrorIs(t, hold.Err(), recipes.ErrForeignLost)
			require.ErrorContains(t, hold.Err(), want)
			require.ErrorContains(t, hold.Err(), a.Key())
		})
	}
}

func TestCloseReleases(t *testing.T) {
	bubble(t, func(t *testing.T, srv *fake, a, b *peer) {
		hold := acquire(t, a)
		waiting := make(chan error)
		go func() { _, err := b.Acquire(context.Background()); waiting <- err }()
		synctest.Wait()
		begun := time.Now()
		require.NoError(t, b.client.Close())
		require.ErrorIs(t, <-waiting, redislock.ErrClosed)
		require.NoError(t, a.client.Close())
		require.Equal(t, begun, time.Now())
		require.ErrorIs(t, hold.Err(), redislock.ErrClosed)
		require.ErrorIs(t, hold.Err(), recipes.ErrForeignLost)
		require.ErrorIs(t, hold.Release(), redislock.ErrClosed)
		require.Empty(t, srv.owner(a.Key()))
		_, err := a.TryAcquire(t.Context())
		require.ErrorIs(t, err, redislock.ErrClosed)
		require.NoError(t, a.client.Close())
	})
}

// Cut off, Close gives each request one try.
func TestCloseIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T, srv *fake, a, b *peer) {
		hold := acquire(t, a)
		a.setCut(true)
		waiting := make(chan error)
		go func() { _, err := a.Acquire(context.Background()); waiting <- err }()
		synctest.Wait()
		begun := time.Now()
		require.NoError(t, a.client.Close())
		require.ErrorIs(t, hold.Err(), redislock.ErrClosed)
		require.ErrorIs(t, <-waiting, redislock.ErrClosed)
		require.LessOrEqual(t, time.Since(begun), ttl)
	})
}

func TestAnswersThatEndAnAcquire(t *testing.T) {
	for text, ends := range map[string]bool{
		"NOPERM this user has no permissions":                                               true,
		"WRONGTYPE Operation against a key":                                                 true,
		"LOADING Redis is loading the dataset in memory":                                    false,
		"READONLY You can't write against a read only replica.":                             false,
		"ERR Error running script (call to f_1): @user_script:4: -READONLY You can't write": false,
		"ERR Error running script (call to f_1): @user_script:4: WRONGTYPE Operation":       true,
	} {
		bubble(t, func(t *testing.T, srv *fake, a, b *peer) {
			a.fault = func(_ context.Context, isAnswer bool) error { return answerError(text) }
			for _, try := range []func(context.Context) (*recipes.Hold, error){a.Acquire, a.TryAcquire} {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				begun := time.Now()
				_, err := try(ctx)
				require.ErrorIs(t, err, answerError(text), "the last error is always there")
				require.Equal(t, ends, ctx.Err() == nil)
				if ends {
					require.Equal(t, begun, time.Now())
				}
			}
		})
	}
}

func TestContextThatEndsInTheWait(t *testing.T) {
	bubble(t, func(t *testing.T, srv *fake, a, b *peer) {
		hold := acquire(t, a)
		reason := errors.New("reason")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(reason) })
		_, err := b.Acquire(ctx)
		for _, want := range []error{recipes.ErrNotAcquired, context.Canceled, reason} {
			require.ErrorIs(t, err, want)
		}
		_, err = b.AcquireWithin(t.Context(), time.Second)
		require.ErrorIs(t, err, recipes.ErrNotAcquired)
		require.ErrorContains(t, err, a.Key())
		require.NoError(t, hold.Release())
		require.NoError(t, b.Do(t.Context(), func(context.Context, *recipes.Hold) error { return nil }))
	})
}

func TestMeasurements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, m := newFake(), &testzk.Metrics{}
		a := newPeer(t, srv)
		c, err := redislock.NewClientOf(&link{fake: srv}, redislock.WithTTL(ttl), redislock.WithMetrics(m))
		require.NoError(t, err)
		defer c.Close()
		b := newLock(t, c, "lock")
		hold := acquire(t, a)
		_, err = b.TryAcquire(t.Context())
		require.ErrorIs(t, err, recipes.ErrNotAcquired)
		time.AfterFunc(10*time.Second, func() { _ = hold.Release() }) // the next acquire sees it
		next := acquire(t, b)
		srv.delete(b.Key())
		<-next.Done()
		synctest.Wait() // the end is measured after it is told
		require.ElementsMatch(t, []string{
			"docent.lock.hold{foreign docent:lock foreign_lost} 1s",
			"docent.lock.losses{foreign docent:lock foreign_lost} 1",
			"docent.lock.wait{foreign docent:lock acquired} 10s",
			"docent.lock.wait{foreign docent:lock not_acquired} 0s",
			"docent.lock.waiters{foreign docent:lock} 0",
		}, m.Lines(time.Second))
	})
}

func TestNilAndZeroValues(t *testing.T) {
	_, err := redislock.NewClient(nil)
	require.ErrorContains(t, err, "nil")
	_, err = redislock.NewClientOf(nil)
	require.ErrorContains(t, err, "nil")
	_, err = redislock.New(nil, "lock")
	require.ErrorContains(t, err, "nil")
	_, err = redislock.New(&redislock.Client{}, "lock")
	require.ErrorIs(t, err, framework.ErrZeroValue)
	require.ErrorIs(t, new(redislock.Client).Close(), framework.ErrZeroValue)
	var zero redislock.Lock
	_, err = zero.Acquire(t.Context())
	require.ErrorIs(t, err, framework.ErrZeroValue)
	_, err = zero.TryAcquire(t.Context())
	require.ErrorIs(t, err, framework.ErrZeroValue)
	require.Empty(t, zero.Key())
	bubble(t, func(t *testing.T, srv *fake, a, _ *peer) {
		var none context.Context
		_, err := a.Acquire(none)
		require.ErrorIs(t, err, framework.ErrNilContext)
	})
}

func TestReentry(t *testing.T) {
	bubble(t, func(t *testing.T, srv *fake, a, b *peer) {
		outer := acquire(t, a)
		ctx := outer.Context(t.Context())
		srv.requests.Store(0)
		again := newLock(t, a.client, "lock") // another value of the same lock
		inner, err := again.Acquire(ctx)
		require.NoError(t, err)
		third, err := a.TryAcquire(inner.Context(ctx))
		require.NoError(t, err)
		require.Zero(t, srv.requests.Load())
		require.Equal(t, outer.Token(), inner.Token())

		for _, other := range []recipes.Locker{b, newLock(t, newPeer(t, srv).client, "lock")} {
			_, err = other.TryAcquire(ctx)
			require.ErrorIs(t, err, recipes.ErrNotAcquired, "of another client")
		}
		elsewhere, err := newLock(t, a.client, "elsewhere").TryAcquire(ctx)
		require.NoError(t, err)
		require.NoError(t, elsewhere.Release())
		_, err = a.TryAcquire(t.Context())
		require.ErrorIs(t, err, recipes.ErrNotAcquired, "without the hold's context")

		require.NoError(t, outer.Release())
		require.NoError(t, third.Release())
		require.ErrorIs(t, third.Release(), recipes.ErrNotHeld)
		require.NotEmpty(t, srv.owner(a.Key()))
		time.Sleep(2 * ttl)
		require.NoError(t, inner.Err(), "the last hold is renewed")
		require.NoError(t, inner.Release())
		require.Empty(t, srv.owner(a.Key()))
	})
}

// A release without an answer goes on in the background, and does not wait for a long time to live.
func TestReleaseWithoutAnswerGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const long = time.Hour
		l := &link{fake: newFake()}
		c, err := redislock.NewClientOf(l, redislock.WithTTL(long))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, c.Close()) })
		lock := newLock(t, c, "lock")
		hold := acquire(t, lock)
		l.setCut(true)
		require.ErrorIs(t, hold.Release(), recipes.ErrReleasePending)
		l.setCut(false)
		time.Sleep(long / 10)
		require.Empty(t, l.owner(lock.Key()))
	})
}

// Close does not make the request of a release again that was under way.
func TestCloseDuringARelease(t *testing.T) {
	bubble(t, func(t *testing.T, srv *fake, a, _ *peer) {
		hold := acquire(t, a)
		var requests atomic.Int32
		a.fault = func(ctx context.Context, answer bool) error {
			if !answer {
				requests.Add(1)
			}
			<-ctx.Done()
			return ctx.Err()
		}
		released := make(chan error, 1)
		go func() { released <- hold.Release() }()
		synctest.Wait()
		begun := time.Now()
		require.NoError(t, a.client.Close())
		require.ErrorIs(t, <-released, recipes.ErrReleasePending)
		require.LessOrEqual(t, time.Since(begun), ttl/3)
		require.EqualValues(t, 1, requests.Load())
	})
}

// The deadline of a request that got no answer is not that of the caller.
func TestCancelledAcquireMatchesNoDeadline(t *testing.T) {
	bubble(t, func(t *testing.T, srv *fake, a, _ *peer) {
		a.setCut(true)
		defer a.setCut(false)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(ttl, cancel)
		_, err := a.AcquireWithin(ctx, time.Hour)
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, context.DeadlineExceeded.Error())
	})
}

// The first renewal comes a third of the time to live after the request, however late the answer was.
func TestRenewalAfterALateAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, srv *fake, a, _ *peer) {
		a.fault = firstAnswerAfter(ttl * 6 / 10) // a client of Redis that disregards contexts waits for it
		hold := acquire(t, a)
		time.Sleep(3 * ttl)
		require.NoError(t, hold.Err())
		require.NoError(t, hold.Release())
	})
}

// A request that failed does not hide that another client has the lock.
func TestRepeatedReleaseOfALostLock(t *testing.T) {
	bubble(t, func(t *testing.T, srv *fake, a, b *peer) {
		hold := acquire(t, a)
		srv.delete(a.Key())
		other := acquire(t, b)
		a.failOnce(false)
		require.ErrorIs(t, hold.Release(), recipes.ErrForeignLost)
		require.NoError(t, other.Release())
	})
}

func TestServerWithTooManyClientsIsAskedAgain(t *testing.T) {
	bubble(t, func(t *testing.T, srv *fake, a, _ *peer) {
		hold := acquire(t, a)
		var once atomic.Bool
		a.fault = func(context.Context, bool) error {
			if once.CompareAndSwap(false, true) {
				return answerError("ERR max number of clients reached")
			}
			return nil
		}
		require.NoError(t, hold.Release())
		require.Empty(t, srv.owner(a.Key()))
	})
}
