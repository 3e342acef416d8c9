package etcdlock_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/docent-zk/docent/contrib/etcdlock"
	"github.com/docent-zk/docent/recipes"
)

// Another client has acquired the lock before the holder has learned that its key was deleted.
func TestReleaseOfAHoldThatWasTakenAway(t *testing.T) {
	c := connect(t, etcd.addr)
	hold := acquire(t, newLock(t, newClient(t, c), t.Name()))
	_, err := c.Delete(bounded(t), keys(t, c, t.Name())[0])
	require.NoError(t, err)
	err = hold.Release()
	require.ErrorIs(t, err, recipes.ErrForeignLost)
	require.ErrorIs(t, err, etcdlock.ErrKeyDeleted)
}

// connectAsApp returns a client of etcd for a server of its own, whose user may only use what is below app/.
func connectAsApp(t *testing.T, opts ...grpc.DialOption) *clientv3.Client {
	t.Helper()
	srv := startCluster(t, 1)[0]
	root, ctx := connect(t, srv.addr), bounded(t)
	const both = clientv3.PermissionType(clientv3.PermReadWrite)
	for _, step := range []func() error{
		func() error { _, err := root.UserAdd(ctx, "root", "pw"); return err },
		func() error { _, err := root.UserGrantRole(ctx, "root", "root"); return err },
		func() error { _, err := root.UserAdd(ctx, "app", "pw"); return err },
		func() error { _, err := root.RoleAdd(ctx, "app"); return err },
		func() error {
			_, err := root.RoleGrantPermission(ctx, "app", "app/", clientv3.GetPrefixRangeEnd("app/"), both)
			return err
		},
		func() error { _, err := root.UserGrantRole(ctx, "app", "app"); return err },
		func() error { _, err := root.AuthEnable(ctx); return err },
	} {
		require.NoError(t, step())
	}
	app, err := clientv3.New(clientv3.Config{
		Endpoints: []string{srv.addr}, Logger: zap.NewNop(), Username: "app", Password: "pw", DialOptions: opts,
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = app.Close() })
	return app
}

// The first lock of a client is one that its user may not use. The lease of the next one is renewed nevertheless.
func TestRightsOfTheFirstLock(t *testing.T) {
	t.Parallel()
	c := newClient(t, connectAsApp(t))
	_, err := newLock(t, c, "other/lock").TryAcquire(bounded(t))
	require.ErrorContains(t, err, "permission denied")
	hold := acquire(t, newLock(t, c, "app/lock"))
	for first := hold.ValidUntil(); !hold.ValidUntil().After(first); time.Sleep(10 * time.Millisecond) {
		require.NoError(t, hold.Err())
	}
	require.NoError(t, hold.Release())
	require.NoError(t, c.Close())
}

// Nothing verifies a renewal of a lease that has no key, so there is none. The deadline of the first hold is that of
// the grant.
func TestLeaseWithoutAKeyIsNotRenewed(t *testing.T) {
	t.Parallel()
	var renewals atomic.Int32
	c := newClient(t, connectAsApp(t, keepAlives(func(time.Time, *etcdserverpb.LeaseKeepAliveResponse) {
		renewals.Add(1)
	})))
	begun := time.Now()
	_, err := newLock(t, c, "other/lock").TryAcquire(bounded(t))
	require.ErrorContains(t, err, "permission denied")
	time.Sleep(ttl / 2) // time for a renewal
	require.Zero(t, renewals.Load())
	hold := acquire(t, newLock(t, c, "app/lock"))
	require.Positive(t, hold.ValidUntil().Sub(begun))
	for renewals.Load() == 0 { // at once, because a third of the time to live is over
		require.NoError(t, hold.Err())
		time.Sleep(time.Millisecond)
	}
	require.NoError(t, hold.Release())
}

// An acquire that the servers refuse has created no key, so there is nothing to delete.
func TestRefusedAcquiresDeleteNothing(t *testing.T) {
	var deletions atomic.Int32
	c := newClient(t, connectAsApp(t, unary(
		func(ctx context.Context, request any, send func(context.Context) error) error {
			if deletes(request) {
				deletions.Add(1)
			}
			return send(ctx)
		})))
	lock := newLock(t, c, "other/lock")
	for range 3 {
		_, err := lock.TryAcquire(bounded(t))
		require.ErrorContains(t, err, "permission denied")
		_, err = lock.Acquire(bounded(t))
		require.ErrorContains(t, err, "permission denied")
	}
	require.NoError(t, c.Close()) // waits for deletions in the background
	require.Zero(t, deletions.Load())
}

// The request that takes the last space is applied, although its answer is an error.
func TestKeyThatTakesTheLastSpaceIsDeleted(t *testing.T) {
	c := newClient(t, connect(t, etcd.addr, unary(
		func(ctx context.Context, request any, send func(context.Context) error) error {
			if err := send(ctx); err != nil || !creates(request) {
				return err
			}
			return rpctypes.ErrGRPCNoSpace
		})))
	_, err := newLock(t, c, t.Name()).TryAcquire(bounded(t))
	require.ErrorIs(t, err, rpctypes.ErrNoSpace)
	awaitKeys(t, connect(t, etcd.addr), t.Name(), 0) // although the lease is renewed
}

// A learner refuses requests that the other servers answer.
func TestLearnerAmongTheServers(t *testing.T) {
	t.Parallel()
	all, err := newCluster(t.TempDir(), 2)
	require.NoError(t, err)
	first, learner := all[0], all[1]
	first.cluster, learner.joins = first.peers+"=http://"+first.peers, true
	require.NoError(t, first.start())
	t.Cleanup(first.kill)
	require.NoError(t, first.ready())
	admin := connect(t, first.addr)
	_, err = admin.MemberAddAsLearner(bounded(t), []string{"http://" + learner.peers})
	require.NoError(t, err)
	require.NoError(t, learner.start())
	t.Cleanup(learner.kill)
	for { // it answers
		if _, err = connect(t, learner.addr).Status(bounded(t), learner.addr); err == nil {
			break
		}
	}
	lock := newLock(t, newClient(t, connect(t, first.addr+","+learner.addr), etcdlock.WithTTL(10*time.Second)), "lock")
	for range 20 {
		require.NoError(t, acquire(t, lock).Release())
	}
}

// A waiter ends when the client of etcd is closed below it.
func TestWaiterWhoseClientOfEtcdIsClosed(t *testing.T) {
	own, err := clientv3.New(clientv3.Config{Endpoints: []string{etcd.addr}, Logger: zap.NewNop()})
	require.NoError(t, err)
	lock := newLock(t, newClient(t, own), t.Name())
	acquire(t, lock)
	waited := make(chan error, 1)
	go func() {
		_, err := lock.Acquire(t.Context())
		waited <- err
	}()
	awaitKeys(t, connect(t, etcd.addr), t.Name(), 2)
	require.NoError(t, own.Close())
	require.ErrorContains(t, <-waited, "the client of etcd is closed")
}

// An operator writes the key of a holder, which takes it from its lease. The hold ends, and the key is
// deleted.
func TestKeyThatIsWritten(t *testing.T) {
	t.Parallel()
	admin := connect(t, etcd.addr)
	c := newClient(t, connect(t, etcd.addr), etcdlock.WithTTL(12*time.Second)) // the key is read again after two
	hold := acquire(t, newLock(t, c, t.Name()))
	_, err := admin.Put(bounded(t), keys(t, admin, t.Name())[0], "note")
	require.NoError(t, err)
	<-hold.Done()
	require.ErrorIs(t, hold.Err(), etcdlock.ErrKeyDeleted)
	awaitKeys(t, admin, t.Name(), 0)
}

// Close deletes the key that an operator has taken from its lease.
func TestCloseWithAKeyThatIsWritten(t *testing.T) {
	admin := connect(t, etcd.addr)
	c := newClient(t, connect(t, etcd.addr))
	acquire(t, newLock(t, c, t.Name()))
	_, err := admin.Put(bounded(t), keys(t, admin, t.Name())[0], "note")
	require.NoError(t, err)
	require.NoError(t, c.Close())
	require.Empty(t, keys(t, admin, t.Name()))
}

// formerTTL is the time to live of the clients below.
const formerTTL = 12 * time.Second

// former is the first attempt of an acquire. The answers to its creates are lost. A lease without a key is not
// renewed, so its deadline passes. The servers have it for longer, because former renews it.
type former struct {
	etcd      *clientv3.Client
	lease     atomic.Int64
	deletable atomic.Bool // whether deletions are sent
	created   func()
	met       func() // called when another attempt has got an answer to its create
}

// lock returns a lock of a client whose first attempt this is.
func (f *former) lock(t *testing.T) *etcdlock.Lock {
	t.Helper()
	c := newClient(t, connect(t, etcd.addr, unary(f.pass)), etcdlock.WithTTL(formerTTL))
	return newLock(t, c, t.Name())
}

func (f *former) pass(ctx context.Context, request any, send func(context.Context) error) error {
	if deletes(request) && !f.deletable.Load() {
		return errDropped
	}
	err := send(ctx)
	if err != nil || !creates(request) {
		return err
	}
	lease := request.(*etcdserverpb.TxnRequest).Success[0].GetRequestPut().Lease
	switch {
	case f.lease.Load() == 0:
		f.created()
		f.lease.Store(lease)
		return errDropped
	case f.lease.Load() == lease:
		_, _ = f.etcd.KeepAliveOnce(ctx, clientv3.LeaseID(lease))
		return errDropped
	}
	f.met()
	return nil
}

// The lease of a TryAcquire is lost after its key was created without an answer. No other client has
// the lock while the key is there.
func TestTryAcquireMeetsItsFormerKey(t *testing.T) {
	for name, below := range map[string][]string{"alone": nil, "with locks below": {"/a/1", "/a/2"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			observer := connect(t, etcd.addr)
			f := former{etcd: observer}
			f.created = func() {
				for _, key := range below {
					_, _ = observer.Put(bounded(t), t.Name()+key, "")
				}
			}
			f.met = func() { time.AfterFunc(formerTTL/20, func() { f.deletable.Store(true) }) }
			hold, err := f.lock(t).TryAcquire(bounded(t))
			require.NoError(t, err)
			require.NoError(t, hold.Release())
			awaitKeys(t, observer, t.Name(), len(below))
		})
	}
}

// An Acquire ends behind its former key. It has seen no other client.
func TestAcquireBehindItsFormerKey(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(bounded(t))
	f := former{
		etcd: connect(t, etcd.addr), created: func() {}, met: func() { time.AfterFunc(formerTTL/20, cancel) },
	}
	_, err := f.lock(t).Acquire(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, recipes.ErrNotAcquired)
}
