package condition_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/condition"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// virtually runs a test in virtual time on a server of its own.
func virtually(t *testing.T, test func(t *testing.T, srv *zktest.Server)) {
	t.Helper()
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) { test(t, srv) })
}

// user is a client with a mutex and a condition of it.
type user struct {
	t      testing.TB
	client *framework.Client
	mutex  *mutex.Mutex
	cond   *condition.Condition
}

func newUser(t testing.TB, c *framework.Client, path string, opts ...mutex.Option) *user {
	t.Helper()
	mu, err := mutex.New(c, path+"/lock", opts...)
	require.NoError(t, err)
	cond, err := condition.New(mu, path+"/condition")
	require.NoError(t, err)
	return &user{t, c, mu, cond}
}

// named returns a user with a client of srv in virtual time.
func named(t testing.TB, srv *zktest.Server, name string, opts ...mutex.Option) *user {
	t.Helper()
	dialer := framework.WithDialer(srv.Client(name).DialContext)
	return newUser(t, testzk.Connected(t, srv.MemAddr(), dialer), "/p", opts...)
}

func (u *user) acquire() *recipes.Hold {
	u.t.Helper()
	hold, err := u.mutex.Acquire(testzk.Context(u.t))
	require.NoError(u.t, err)
	return hold
}

// wait acquires the lock and waits on another goroutine, and returns when the lock is released.
func (u *user) wait() *testlock.Attempt {
	u.t.Helper()
	hold := u.acquire()
	a := u.waitWith(hold)
	testzk.Closes(u.t, hold.Done(), "Wait does not release the lock")
	return a
}

func (u *user) waitWith(hold *recipes.Hold) *testlock.Attempt {
	u.t.Helper()
	return testlock.Start(u.t, func(ctx context.Context) (*recipes.Hold, error) { return u.cond.Wait(ctx, hold) })
}

// timed is a WaitWithin.
type timed struct {
	*testlock.Attempt
	signaled bool // once it has ended
}

// waitWithin is wait with a limit.
func (u *user) waitWithin(d time.Duration) *timed {
	u.t.Helper()
	hold, w := u.acquire(), &timed{}
	w.Attempt = testlock.Start(u.t, func(ctx context.Context) (next *recipes.Hold, err error) {
		next, w.signaled, err = u.cond.WaitWithin(ctx, hold, d)
		return next, err
	})
	testzk.Closes(u.t, hold.Done(), "WaitWithin does not release the lock")
	return w
}

// entersWithin is waitWithin that acquires the lock on the other goroutine. entered is closed when the lock
// is released.
func (u *user) entersWithin(d time.Duration) (w *timed, entered <-chan struct{}) {
	u.t.Helper()
	released := make(chan struct{})
	w = &timed{}
	w.Attempt = testlock.Start(u.t, func(ctx context.Context) (*recipes.Hold, error) {
		hold, err := u.mutex.Acquire(ctx)
		if err != nil {
			return nil, err
		}
		context.AfterFunc(hold.Context(context.Background()), func() { close(released) })
		hold, w.signaled, err = u.cond.WaitWithin(ctx, hold, d)
		return hold, err
	})
	return w, released
}

// ends waits for a valid hold, checks whether the waiter was signaled, and releases the hold.
func (w *timed) ends(t testing.TB, signaled bool) {
	t.Helper()
	hold := w.Won(t)
	require.NoError(t, hold.Err())
	require.Equal(t, signaled, w.signaled, "signaled")
	require.NoError(t, hold.Release())
}

// signal acquires the lock, signals and releases it.
func (u *user) signal() {
	u.t.Helper()
	hold := u.acquire()
	require.NoError(u.t, u.cond.Signal(testzk.Context(u.t), hold))
	require.NoError(u.t, hold.Release())
}

func (u *user) broadcast() {
	u.t.Helper()
	hold := u.acquire()
	require.NoError(u.t, u.cond.Broadcast(testzk.Context(u.t), hold))
	require.NoError(u.t, hold.Release())
}

// nodes returns how many waiters and signals there are.
func (u *user) nodes() (waiters, signals int) {
	u.t.Helper()
	names, _, err := u.client.Children(testzk.Context(u.t), u.cond.Path())
	require.NoError(u.t, err)
	for _, name := range names {
		if strings.Contains(name, "wait-") {
			waiters++
		} else {
			signals++
		}
	}
	return waiters, signals
}

func (u *user) has(waiters, signals int) {
	u.t.Helper()
	w, s := u.nodes()
	require.Equal(u.t, [2]int{waiters, signals}, [2]int{w, s}, "waiters and signals")
}

// settle waits for everything that happens without the end of a session.
func settle() {
	time.Sleep(2 * time.Second)
	synctest.Wait()
}

// outage waits for longer than the session timeout.
func outage() {
	time.Sleep(2 * testzk.SessionTimeout)
	synctest.Wait()
}

// expire expires the sessions of a client of srv.
func expire(t testing.TB, srv *zktest.Server, name string) {
	t.Helper()
	for _, s := range srv.Client(name).Sessions() {
		require.NoError(t, s.Expire())
	}
}
