package etcdlock_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.etcd.io/etcd/client/v3/namespace"

	"github.com/docent-zk/docent/contrib/etcdlock"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
)

func TestConstructorsNameWhatIsBad(t *testing.T) {
	c := connect(t, etcd.addr)
	for want, opt := range map[string]etcdlock.Option{
		"etcdlock: WithTTL: 1s":      etcdlock.WithTTL(time.Second),
		"etcdlock: WithTTL: 2.5s":    etcdlock.WithTTL(2500 * time.Millisecond),
		"etcdlock: WithTTL: 25h":     etcdlock.WithTTL(25 * time.Hour),
		"etcdlock: WithLogger: nil":  etcdlock.WithLogger(nil),
		"etcdlock: WithMetrics: nil": etcdlock.WithMetrics(nil),
		"etcdlock: option 0 is nil":  nil,
	} {
		_, err := etcdlock.NewClient(c, opt)
		require.ErrorContains(t, err, want)
	}
	_, err := etcdlock.NewClient(nil)
	require.ErrorContains(t, err, "client of etcd is nil")
	_, err = etcdlock.NewClient(clientv3.NewCtxClient(t.Context()))
	require.ErrorContains(t, err, "no connection")

	locks := newClient(t, c)
	for _, name := range []string{"", "a/", "/", "\xff"} {
		_, err := etcdlock.New(locks, name)
		require.ErrorContains(t, err, "name", "%q", name)
	}
	_, err = etcdlock.New(nil, "a")
	require.ErrorContains(t, err, "nil client")
	_, err = etcdlock.New(&etcdlock.Client{}, "a")
	require.ErrorIs(t, err, framework.ErrZeroValue)
}

func TestZeroValues(t *testing.T) {
	require.ErrorIs(t, (&etcdlock.Client{}).Close(), framework.ErrZeroValue)
	_, err := (&etcdlock.Lock{}).Acquire(t.Context())
	require.ErrorIs(t, err, framework.ErrZeroValue)
	_, err = (&etcdlock.Lock{}).TryAcquire(t.Context())
	require.ErrorIs(t, err, framework.ErrZeroValue)
	lock := newLock(t, newClient(t, connect(t, etcd.addr)), t.Name())
	var none context.Context
	_, err = lock.Acquire(none)
	require.ErrorIs(t, err, framework.ErrNilContext)
	_, err = (&etcdlock.Client{}).Cmp(&recipes.Hold{})
	require.ErrorIs(t, err, recipes.ErrNotHeld)
}

// Tokens of all locks of a cluster grow.
func TestTokensOfAllLocks(t *testing.T) {
	c := newClient(t, connect(t, etcd.addr))
	last := int64(0)
	for _, name := range []string{"/a", "/b", "/a", "/c"} {
		hold := acquire(t, newLock(t, c, t.Name()+name))
		require.Greater(t, hold.Token(), last)
		last = hold.Token()
		require.NoError(t, hold.Release())
	}
}

func TestNamesBelowAnotherName(t *testing.T) {
	observer := connect(t, etcd.addr)
	c := newClient(t, connect(t, etcd.addr))
	outer, inner := newLock(t, c, t.Name()), newLock(t, c, t.Name()+"/inner")
	for name, acquire := range map[string]func(*etcdlock.Lock, context.Context) (*recipes.Hold, error){
		"Acquire": (*etcdlock.Lock).Acquire, "TryAcquire": (*etcdlock.Lock).TryAcquire,
	} {
		t.Run(name, func(t *testing.T) {
			below, err := acquire(inner, bounded(t))
			require.NoError(t, err)
			hold, err := acquire(outer, bounded(t))
			require.NoError(t, err)
			require.NoError(t, below.Release())
			below, err = acquire(inner, bounded(t)) // its key is now the last one
			require.NoError(t, err)
			_, err = outer.TryAcquire(bounded(t))
			require.ErrorIs(t, err, recipes.ErrNotAcquired)

			won := make(chan *recipes.Hold, 1)
			go func() {
				hold, _ := outer.Acquire(bounded(t))
				won <- hold
			}()
			awaitKeys(t, observer, outerName(t), 3)
			require.NoError(t, hold.Release())
			next := <-won
			require.NotNil(t, next)
			require.NoError(t, below.Err())
			require.NoError(t, next.Release())
			require.NoError(t, below.Release())
		})
	}
}

func outerName(t testing.TB) string { return "TestNamesBelowAnotherName" }

// The mutex of etcd's own package and a lock of the same name exclude each other, in order.
func TestMutexOfPackageConcurrency(t *testing.T) {
	observer := connect(t, etcd.addr)
	s, err := concurrency.NewSession(connect(t, etcd.addr), concurrency.WithTTL(60))
	require.NoError(t, err)
	defer s.Close()
	theirs := concurrency.NewMutex(s, t.Name())
	long := etcdlock.WithTTL(time.Hour) // only the watch tells that the key is deleted
	ours := newLock(t, newClient(t, connect(t, etcd.addr), long), t.Name())

	require.NoError(t, theirs.Lock(bounded(t)))
	_, err = ours.TryAcquire(bounded(t))
	require.ErrorIs(t, err, recipes.ErrNotAcquired)
	won := make(chan *recipes.Hold, 1)
	go func() {
		hold, _ := ours.Acquire(bounded(t))
		won <- hold
	}()
	awaitKeys(t, observer, t.Name(), 2)
	require.NoError(t, theirs.Unlock(bounded(t)))
	hold := <-won
	require.NotNil(t, hold)
	require.ErrorIs(t, theirs.TryLock(bounded(t)), concurrency.ErrLocked)
	locked := make(chan error, 1)
	go func() { locked <- theirs.Lock(bounded(t)) }()
	awaitKeys(t, observer, t.Name(), 2)
	require.NoError(t, hold.Err())
	require.NoError(t, hold.Release())
	require.NoError(t, <-locked)
	require.NoError(t, theirs.Unlock(bounded(t)))
}

func TestCmpGuardsATransaction(t *testing.T) {
	c := connect(t, etcd.addr)
	long := etcdlock.WithTTL(time.Hour) // only the watch tells that the key is deleted
	locks, other := newClient(t, c, long), newClient(t, c)
	lock := newLock(t, locks, t.Name())
	hold := acquire(t, lock)
	put := func(cmp clientv3.Cmp) bool {
		done, err := c.Txn(bounded(t)).If(cmp).Then(clientv3.OpPut("data of "+t.Name(), "x")).Commit()
		require.NoError(t, err)
		return done.Succeeded
	}
	cmp, err := locks.Cmp(hold)
	require.NoError(t, err)
	require.True(t, put(cmp))
	_, err = other.Cmp(hold)
	require.ErrorContains(t, err, "not a hold of this client")
	_, err = locks.Cmp(nil)
	require.ErrorContains(t, err, "nil hold")

	require.NoError(t, hold.Release())
	require.False(t, put(cmp))
	_, err = locks.Cmp(hold)
	require.ErrorIs(t, err, recipes.ErrNotHeld)

	hold = acquire(t, lock)
	require.False(t, put(cmp), "the comparison is of a hold before")
	cmp, err = locks.Cmp(hold)
	require.NoError(t, err)
	_, err = c.Delete(bounded(t), keys(t, c, t.Name())[0])
	require.NoError(t, err)
	require.False(t, put(cmp))
	await(t, hold.Done(), "the hold goes on without its key")
	require.ErrorIs(t, hold.Err(), etcdlock.ErrKeyDeleted)
	_, err = locks.Cmp(hold)
	require.ErrorIs(t, err, recipes.ErrForeignLost)
}

func TestNamespace(t *testing.T) {
	observer, c := connect(t, etcd.addr), connect(t, etcd.addr)
	c.KV, c.Watcher = namespace.NewKV(c.KV, "space/"), namespace.NewWatcher(c.Watcher, "space/")
	c.Lease = namespace.NewLease(c.Lease, "space/")
	locks := newClient(t, c)
	hold := acquire(t, newLock(t, locks, t.Name()))
	require.Len(t, keys(t, observer, "space/"+t.Name()), 1)
	cmp, err := locks.Cmp(hold)
	require.NoError(t, err)
	done, err := c.Txn(bounded(t)).If(cmp).Commit()
	require.NoError(t, err)
	require.True(t, done.Succeeded)
	require.NoError(t, hold.Release())
}

func TestCloseFreesTheLocks(t *testing.T) {
	observer := connect(t, etcd.addr)
	c := newClient(t, connect(t, etcd.addr))
	lock := newLock(t, c, t.Name())
	hold := acquire(t, lock)
	waiting := make(chan error, 1)
	go func() {
		_, err := lock.Acquire(bounded(t))
		waiting <- err
	}()
	awaitKeys(t, observer, t.Name(), 2)
	closed := make(chan error, 2)
	for range 2 {
		go func() { closed <- c.Close() }()
	}
	require.NoError(t, <-closed)
	require.Empty(t, keys(t, observer, t.Name()))
	require.NoError(t, <-closed)
	require.ErrorIs(t, <-waiting, etcdlock.ErrClosed)
	require.ErrorIs(t, hold.Err(), etcdlock.ErrClosed)
	_, err := lock.TryAcquire(bounded(t))
	require.ErrorIs(t, err, etcdlock.ErrClosed)
	_, err = c.Cmp(hold)
	require.ErrorIs(t, err, recipes.ErrForeignLost)
}

func TestCloseDoesNotWaitForServers(t *testing.T) {
	t.Parallel()
	cable := newCable(t, etcd.addr)
	c := newClient(t, connect(t, cable.addr))
	hold := acquire(t, newLock(t, c, t.Name()))
	cable.set(true)
	err := c.Close()
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "free when the lease expires")
	require.Error(t, hold.Err())
	require.Equal(t, err, c.Close())
	cable.set(false)
}

// The revision at which a watch has to begin is not there any more.
func TestCompaction(t *testing.T) {
	c := connect(t, etcd.addr)
	hold := acquire(t, newLock(t, newClient(t, c, etcdlock.WithTTL(time.Hour)), t.Name()))
	put, err := c.Put(bounded(t), "data of "+t.Name(), "x")
	require.NoError(t, err)
	_, err = c.Compact(bounded(t), put.Header.Revision)
	require.NoError(t, err)
	_, err = c.Delete(bounded(t), keys(t, c, t.Name())[0])
	require.NoError(t, err)
	await(t, hold.Done(), "the hold goes on without its key")
	require.ErrorIs(t, hold.Err(), etcdlock.ErrKeyDeleted)
}

func TestAcquiresAreMeasured(t *testing.T) {
	var m testzk.Metrics
	e := connect(t, etcd.addr)
	locks := newClient(t, e, etcdlock.WithMetrics(&m))
	lock := newLock(t, locks, t.Name())
	other := acquire(t, newLock(t, newClient(t, e), t.Name()))
	_, err := lock.TryAcquire(bounded(t))
	require.ErrorIs(t, err, recipes.ErrNotAcquired)
	waiters := "docent.lock.waiters{foreign " + t.Name() + "} "
	released := make(chan error, 1)
	go func() {
		for !slices.Contains(m.Lines(time.Hour), waiters+"1") && t.Context().Err() == nil {
			time.Sleep(time.Millisecond)
		}
		released <- other.Release()
	}()
	require.NoError(t, acquire(t, lock).Release())
	require.NoError(t, <-released)
	require.NoError(t, locks.Close())
	_, err = lock.Acquire(bounded(t))
	require.ErrorIs(t, err, etcdlock.ErrClosed)
	require.Subset(t, m.Lines(time.Hour), []string{
		"docent.lock.wait{foreign " + t.Name() + " acquired} 0s",
		"docent.lock.wait{foreign " + t.Name() + " failed} 0s",
		"docent.lock.wait{foreign " + t.Name() + " not_acquired} 0s",
		waiters + "0",
	})
}
