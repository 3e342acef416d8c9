package etcdlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/docent-zk/docent/contrib/etcdlock"
	"github.com/docent-zk/docent/recipes"
)

var errDropped = status.Error(codes.Unavailable, "dropped by the test")

// errLate is the answer of a server that has noticed before the client that the time of a request is
// over.
var errLate = status.Error(codes.Unknown, context.DeadlineExceeded.Error())

// unary has all requests of a client pass fn, which makes them with send.
func unary(fn func(ctx context.Context, request any, send func(context.Context) error) error) grpc.DialOption {
	return grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, request, reply any,
		conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		return fn(ctx, request, func(ctx context.Context) error {
			return invoke(ctx, method, request, reply, conn, opts...)
		})
	})
}

func creates(request any) bool {
	txn, ok := request.(*etcdserverpb.TxnRequest)
	return ok && len(txn.Success) > 0 && txn.Success[0].GetRequestPut() != nil
}

func deletes(request any) bool {
	txn, ok := request.(*etcdserverpb.TxnRequest)
	return ok && len(txn.Success) > 0 && txn.Success[0].GetRequestDeleteRange() != nil
}

func TestAcquireWithoutAnAnswerFindsItsKey(t *testing.T) {
	for name, acquire := range map[string]func(*etcdlock.Lock, context.Context) (*recipes.Hold, error){
		"Acquire": (*etcdlock.Lock).Acquire, "TryAcquire": (*etcdlock.Lock).TryAcquire,
	} {
		t.Run(name, func(t *testing.T) {
			var lost atomic.Int32
			c := newClient(t, connect(t, etcd.addr, unary(
				func(ctx context.Context, request any, send func(context.Context) error) error {
					err := send(ctx)
					if n := int(lost.Load()); creates(request) && n < 2 {
						lost.Add(1)
						return []error{errDropped, errLate}[n]
					}
					return err
				})))
			observer := connect(t, etcd.addr)
			hold, err := acquire(newLock(t, c, t.Name()), bounded(t))
			require.NoError(t, err)
			all := keys(t, observer, t.Name())
			require.Len(t, all, 1)
			key, err := observer.Get(bounded(t), all[0])
			require.NoError(t, err)
			require.Equal(t, key.Kvs[0].CreateRevision, hold.Token())
			require.NoError(t, hold.Release())
			require.Empty(t, keys(t, observer, t.Name()))
		})
	}
}

// A leader that is being replaced drops requests, with an error that etcd gives no code. It passes.
func TestRequestsThatAReplacedLeaderDrops(t *testing.T) {
	var grant, create, remove atomic.Bool
	first := func(request any) bool {
		_, grants := request.(*etcdserverpb.LeaseGrantRequest)
		return grants && grant.CompareAndSwap(false, true) || creates(request) && create.CompareAndSwap(false, true) ||
			deletes(request) && remove.CompareAndSwap(false, true)
	}
	c := newClient(t, connect(t, etcd.addr, unary(
		func(ctx context.Context, request any, send func(context.Context) error) error {
			if first(request) {
				return status.Error(codes.Unknown, "raft proposal dropped")
			}
			return send(ctx)
		})))
	hold := acquire(t, newLock(t, c, t.Name()))
	require.NoError(t, hold.Release())
	require.True(t, grant.Load() && create.Load() && remove.Load())
}

func TestAcquireThatEndsWithoutAnAnswerLeavesNothing(t *testing.T) {
	created := make(chan struct{}, 1)
	c := newClient(t, connect(t, etcd.addr, unary(
		func(ctx context.Context, request any, send func(context.Context) error) error {
			err := send(ctx)
			if creates(request) && err == nil {
				created <- struct{}{}
				<-ctx.Done()
				return ctx.Err()
			}
			return err
		})))
	observer := connect(t, etcd.addr)
	ctx, cancel := context.WithCancel(context.Background())
	failed := make(chan error, 1)
	go func() {
		_, err := newLock(t, c, t.Name()).Acquire(ctx)
		failed <- err
	}()
	<-created
	require.Len(t, keys(t, observer, t.Name()), 1)
	cancel()
	require.ErrorIs(t, <-failed, context.Canceled)
	awaitKeys(t, observer, t.Name(), 0)
}

// A request that was thought to be lost creates its key after the hold was released.
func TestKeyOfALateRequestIsDeleted(t *testing.T) {
	t.Parallel()
	late := make(chan func() error, 1)
	seen := make(chan struct{})
	saw := sync.OnceFunc(func() { close(seen) })
	defer saw() // Close waits for the renewal
	var first sync.Once
	c := newClient(t, connect(t, etcd.addr, unary(
		func(ctx context.Context, request any, send func(context.Context) error) error {
			dropped := false
			if creates(request) {
				first.Do(func() {
					dropped = true
					late <- func() error { return send(context.WithoutCancel(ctx)) }
				})
			}
			if dropped {
				return errDropped
			}
			return send(ctx)
		}),
		keepAlives(func(time.Time, *etcdserverpb.LeaseKeepAliveResponse) { <-seen })))
	observer := connect(t, etcd.addr)
	require.NoError(t, acquire(t, newLock(t, c, t.Name())).Release())
	require.NoError(t, (<-late)())
	require.Len(t, keys(t, observer, t.Name()), 1)
	saw()
	other := newClient(t, observer)
	hold := acquire(t, newLock(t, other, t.Name())) // although the lease of the key is renewed
	require.NoError(t, hold.Release())
	awaitKeys(t, observer, t.Name(), 0)
}

// The answer to a release is lost, and a request that was thought to be lost arrives late: a later
// hold of the same client goes on.
func TestReleaseWithoutAnAnswerDoesNotReleaseALaterHold(t *testing.T) {
	late := make(chan func() error, 1)
	var first sync.Once
	c := newClient(t, connect(t, etcd.addr, unary(
		func(ctx context.Context, request any, send func(context.Context) error) error {
			err := send(ctx)
			if deletes(request) {
				first.Do(func() {
					err = errDropped
					late <- func() error { return send(context.WithoutCancel(ctx)) }
				})
			}
			return err
		})))
	lock := newLock(t, c, t.Name())
	require.NoError(t, acquire(t, lock).Release())
	hold := acquire(t, lock)
	require.NoError(t, (<-late)())
	other := newLock(t, newClient(t, connect(t, etcd.addr)), t.Name())
	_, err := other.TryAcquire(bounded(t))
	require.ErrorIs(t, err, recipes.ErrNotAcquired)
	require.NoError(t, hold.Err())
	require.NoError(t, hold.Release())
}

// A release that is not answered in time goes on until the key is deleted.
func TestReleaseGoesOnInTheBackground(t *testing.T) {
	t.Parallel()
	var refuse atomic.Bool
	refuse.Store(true)
	c := newClient(t, connect(t, etcd.addr, unary(
		func(ctx context.Context, request any, send func(context.Context) error) error {
			if deletes(request) && refuse.Load() {
				return errDropped
			}
			return send(ctx)
		})))
	observer := connect(t, etcd.addr)
	hold := acquire(t, newLock(t, c, t.Name()))
	require.ErrorIs(t, hold.Release(), recipes.ErrReleasePending)
	require.Len(t, keys(t, observer, t.Name()), 1)
	refuse.Store(false)
	awaitKeys(t, observer, t.Name(), 0)
}

// keepAlives has the answers to all renewals of a client pass fn. It gets the time at which the request
// was sent.
func keepAlives(fn func(sent time.Time, answer *etcdserverpb.LeaseKeepAliveResponse)) grpc.DialOption {
	return grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn,
		method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		stream, err := open(ctx, desc, conn, method, opts...)
		return &renewals{stream, time.Time{}, fn}, err
	})
}

type renewals struct {
	grpc.ClientStream
	sent time.Time
	fn   func(time.Time, *etcdserverpb.LeaseKeepAliveResponse)
}

func (s *renewals) SendMsg(m any) error {
	if _, ok := m.(*etcdserverpb.LeaseKeepAliveRequest); ok {
		s.sent = time.Now()
	}
	return s.ClientStream.SendMsg(m)
}

func (s *renewals) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if answer, ok := m.(*etcdserverpb.LeaseKeepAliveResponse); ok && err == nil {
		s.fn(s.sent, answer)
	}
	return err
}

// The deadline counts from before the requests, however late the answers are.
func TestDeadlineCountsFromBeforeTheRequest(t *testing.T) {
	t.Parallel()
	const slow = 300 * time.Millisecond
	var renewal atomic.Pointer[time.Time] // when the last request was sent
	var grant atomic.Pointer[time.Time]   // when the lease was asked for
	c := newClient(t, connect(t, etcd.addr,
		unary(func(ctx context.Context, request any, send func(context.Context) error) error {
			if _, ok := request.(*etcdserverpb.LeaseGrantRequest); ok {
				sent := time.Now()
				grant.Store(&sent)
				defer time.Sleep(slow)
			}
			return send(ctx)
		}),
		keepAlives(func(sent time.Time, _ *etcdserverpb.LeaseKeepAliveResponse) {
			time.Sleep(slow)
			renewal.Store(&sent)
		})))
	before := time.Now()
	hold := acquire(t, newLock(t, c, t.Name()))
	first := hold.ValidUntil()
	require.WithinRange(t, first, before, grant.Load().Add(ttl*9/10))
	require.GreaterOrEqual(t, time.Since(before), slow)
	for end := bounded(t); !hold.ValidUntil().After(first); time.Sleep(time.Millisecond) {
		require.NoError(t, end.Err())
		require.NoError(t, hold.Err())
	}
	until := hold.ValidUntil()
	require.WithinRange(t, until, first, renewal.Load().Add(ttl*9/10))
	require.NoError(t, hold.Release())
}

// A leader of etcd that the others have replaced renews leases in its memory, and they expire
// nevertheless.
func TestRenewalByAFormerLeaderDoesNotCount(t *testing.T) {
	t.Parallel()
	var answers atomic.Int32
	c := newClient(t, connect(t, etcd.addr, keepAlives(func(_ time.Time, a *etcdserverpb.LeaseKeepAliveResponse) {
		answers.Add(1)
		a.Header.RaftTerm--
	})), etcdlock.WithTTL(short))
	for answers.Load() == 0 { // a busy machine may be late for the only one that a hold gets
		hold := acquire(t, newLock(t, c, t.Name()))
		first := hold.ValidUntil()
		await(t, hold.Done(), "the hold goes on")
		require.ErrorIs(t, hold.Err(), recipes.ErrForeignLost)
		require.False(t, time.Now().Before(first))
	}
}

// A cut that is shorter than the time to live ends no hold, and no wait loses its place.
func TestShortCutEndsNothing(t *testing.T) {
	cable := newCable(t, etcd.addr)
	c := newClient(t, connect(t, cable.addr))
	hold := acquire(t, newLock(t, c, t.Name()))
	cable.set(true)
	time.Sleep(100 * time.Millisecond) // requests of this time are late
	cable.set(false)
	require.NoError(t, hold.Err())
	require.NoError(t, hold.Release())
}

// A lease that an operator revokes ends the holds, and a waiter goes on with another lease.
func TestRevokedLease(t *testing.T) {
	t.Parallel()
	observer := connect(t, etcd.addr)
	holder, waiter := newClient(t, connect(t, etcd.addr)), newClient(t, connect(t, etcd.addr))
	hold := acquire(t, newLock(t, holder, t.Name()))
	won := make(chan *recipes.Hold, 1)
	waiting := newLock(t, waiter, t.Name())
	go func() {
		hold, _ := waiting.Acquire(bounded(t))
		won <- hold
	}()
	awaitKeys(t, observer, t.Name(), 2)
	all := keys(t, observer, t.Name())
	revoke(t, observer, all[1])
	require.NoError(t, hold.Err())
	for end := bounded(t); ; time.Sleep(10 * time.Millisecond) { // the waiter has a key again
		require.NoError(t, end.Err())
		if now := keys(t, observer, t.Name()); len(now) == 2 && now[1] != all[1] {
			break
		}
	}
	revoke(t, observer, all[0])
	await(t, hold.Done(), "the hold goes on without its lease")
	require.ErrorIs(t, hold.Err(), recipes.ErrForeignLost)
	require.True(t, errors.Is(hold.Err(), etcdlock.ErrLeaseLost) || errors.Is(hold.Err(), etcdlock.ErrKeyDeleted))
	next := <-won
	require.NotNil(t, next)
	require.NoError(t, next.Release())
	again := acquire(t, newLock(t, holder, t.Name()))
	require.Greater(t, again.Token(), next.Token())
	require.NoError(t, again.Release())
}

// revoke revokes the lease of a key.
func revoke(t testing.TB, c *clientv3.Client, key string) {
	t.Helper()
	found, err := c.Get(bounded(t), key)
	require.NoError(t, err)
	require.Len(t, found.Kvs, 1)
	_, err = c.Revoke(bounded(t), clientv3.LeaseID(found.Kvs[0].Lease))
	require.NoError(t, err)
}

// A waiter whose key an operator deletes goes on with another one.
func TestDeletedKeyOfAWaiter(t *testing.T) {
	observer := connect(t, etcd.addr)
	c := newClient(t, connect(t, etcd.addr))
	lock := newLock(t, c, t.Name())
	hold := acquire(t, lock)
	won := make(chan *recipes.Hold, 1)
	go func() {
		hold, _ := lock.Acquire(bounded(t))
		won <- hold
	}()
	awaitKeys(t, observer, t.Name(), 2)
	_, err := observer.Delete(bounded(t), keys(t, observer, t.Name())[1])
	require.NoError(t, err)
	require.NoError(t, hold.Release())
	next := <-won
	require.NotNil(t, next)
	require.NoError(t, next.Release())
	awaitKeys(t, observer, t.Name(), 0)
}

// Requests and answers are dropped at random, and acquires end at random times.
func TestRandomFaults(t *testing.T) {
	t.Parallel()
	const clients, rounds = 4, 25
	seed := rand.Uint64()
	if s := os.Getenv("ETCDLOCK_SEED"); s != "" {
		var err error
		seed, err = strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("seed %d", seed)
	observer := connect(t, etcd.addr)
	var mu sync.Mutex
	var last *recipes.Hold
	var token int64
	enter := func(h *recipes.Hold) error {
		mu.Lock()
		defer mu.Unlock()
		if h.Err() != nil {
			return nil // it was lost before
		}
		if last != nil && last.Err() == nil && h.Err() == nil {
			return errors.New("two holds are valid")
		}
		if h.Token() <= token {
			return fmt.Errorf("token %d after %d", h.Token(), token)
		}
		last, token = h, h.Token()
		return nil
	}
	errs := make(chan error, clients)
	var won atomic.Int32
	for i := range clients {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		var chance sync.Mutex
		happens := func(percent int) bool {
			chance.Lock()
			defer chance.Unlock()
			return random.IntN(100) < percent
		}
		c := newClient(t, connect(t, etcd.addr, unary(
			func(ctx context.Context, _ any, send func(context.Context) error) error {
				if happens(10) {
					return errDropped
				}
				err := send(ctx)
				if happens(10) {
					return errDropped
				}
				return err
			})), etcdlock.WithTTL(short)) // the pauses between requests are short, too
		lock := newLock(t, c, t.Name())
		go func() {
			errs <- func() error {
				for range rounds {
					ctx, cancel := bounded(t), context.CancelFunc(func() {})
					if happens(30) {
						ctx, cancel = context.WithTimeout(ctx, rand.N(50*time.Millisecond))
					}
					hold, err := lock.Acquire(ctx)
					cancel()
					switch {
					case errors.Is(err, context.DeadlineExceeded):
						continue
					case err != nil:
						return err
					}
					won.Add(1)
					first := hold.ValidUntil()
					if err := enter(hold); err != nil {
						return err
					}
					err = hold.Release()
					if errors.Is(err, recipes.ErrForeignLost) && !time.Now().Before(first) {
						continue // the renewals failed
					}
					if err != nil {
						return err
					}
				}
				return nil
			}()
		}()
	}
	for range clients {
		require.NoError(t, <-errs)
	}
	require.Positive(t, won.Load())
	awaitKeys(t, observer, t.Name(), 0)
}
