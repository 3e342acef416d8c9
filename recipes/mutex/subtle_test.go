package mutex_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/proxy"
)

// After a reconnect the servers send missed events in no order. That the predecessor was deleted
// does not prove that the waiter's own node still exists.
func TestWaiterIsNotGrantedOnANodeDeletedWhileDisconnected(t *testing.T) {
	t.Parallel()
	for range 10 { // the order of the deletion events is random
		p := testzk.Proxy(t)
		path := testzk.Path(t)
		first := newMutex(t, testzk.Connected(t, testzk.Connect()), path)
		holder := acquire(t, first)
		waiter := testlock.Start(t, newMutex(t, testzk.Connected(t, p.Addr()), path).Acquire)
		stale := queued(t, first, 2)[1]
		testzk.Eventually(t, func() bool { return p.Requests()[fault.OpGetData] == 2 }, "the waiter does not watch")
		third := testlock.Start(t, first.Acquire)
		queued(t, first, 3)

		require.NoError(t, p.Refuse(true))
		require.NoError(t, testzk.Observer(t).Delete(stale.Node, -1))
		require.NoError(t, holder.Release())
		rightful := third.Won(t)
		require.NoError(t, p.Refuse(false))
		queued(t, first, 2) // the waiter has queued again, at the end
		require.True(t, waiter.Waiting(), "granted while another client holds")
		require.NoError(t, rightful.Release())
		require.NotEqual(t, stale.Node, waiter.Won(t).Path())
		require.NoError(t, waiter.Won(t).Release())
	}
}

func TestUnlockOfALostLockDoesNotReleaseTheNextHold(t *testing.T) {
	path := testzk.Path(t)
	mu := newMutex(t, testzk.Connected(t, testzk.Connect()), path)
	locker := mu.Locker(testzk.Context(t))
	locker.Lock()
	require.NoError(t, testzk.Observer(t).Delete(queued(t, mu, 1)[0].Node, -1))
	inside, leave, left := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(left)
		locker.Lock()
		close(inside)
		<-leave
		locker.Unlock()
	}()
	locker.Unlock() // it does not know of the loss
	testzk.Closes(t, inside, "the next goroutine does not get the lock")
	_, err := mu.TryAcquire(testzk.Context(t))
	require.ErrorIs(t, err, recipes.ErrNotAcquired, "the next goroutine holds the lock")
	close(leave)
	testzk.Closes(t, left, "Unlock does not return")
	testzk.Empty(t, path)
}

// The list is behind the create of the node. If the create succeeds and the list fails, the list is
// repeated until there is an answer.
func TestFrontPositionSurvivesAFailedList(t *testing.T) {
	withRequests(t, func(t *testing.T, d *requestFixture) {
		client := d.srv.Client("hasty")
		c := testzk.Connected(t, d.srv.MemAddr(),
			framework.WithDialer(client.DialContext), framework.WithRetry(retry.Never()))
		mu := newMutex(t, c, "/lock")
		refused := d.srv.On(fault.Match{Client: "hasty", Op: fault.OpGetChildren2}, fault.Fail(zktest.Throttled))
		require.NoError(t, acquire(t, mu).Release())
		require.Equal(t, 1, refused.Hits())

		held := d.srv.On(fault.Match{Client: "hasty", Op: fault.OpGetChildren2}, fault.Hold())
		a := testlock.Start(t, mu.Acquire)
		testlock.Settle()
		require.Equal(t, 1, held.Hits())
		client.Drop()
		held.Release()
		require.NoError(t, a.Won(t).Release())
	})
}

func TestWaiterKeepsItsNodeWithinTheCallersRetries(t *testing.T) {
	p := testzk.Proxy(t)
	path := testzk.Path(t)
	first := newMutex(t, testzk.Connected(t, testzk.Connect()), path)
	holder := acquire(t, first)
	opts, waits := testzk.Waiting(t)
	mu := newMutex(t, testzk.Connected(t, p.Addr(), opts...), path)
	tries := 0
	result := make(chan error, 1)
	go func() {
		result <- retry.Do(testzk.Context(t), retry.Times(3, time.Millisecond), nil, func(ctx context.Context) error {
			tries++
			hold, err := mu.Acquire(ctx)
			if err != nil {
				return err
			}
			return hold.Release()
		})
	}()
	waits() // the caller's retries would create another node at the end of the queue
	queue := queued(t, first, 2)
	p.DropConnections()
	late := testlock.Start(t, first.Acquire)
	require.Equal(t, queue[1].Node, queued(t, first, 3)[1].Node)
	require.NoError(t, holder.Release())
	require.NoError(t, <-result)
	require.Equal(t, 1, tries)
	require.NoError(t, late.Won(t).Release())
}

func TestGuardRacingWithReleaseIsNotALoss(t *testing.T) {
	mu := newMutex(t, testzk.Connected(t, testzk.Connect()), testzk.Path(t))
	ctx := testzk.Context(t)
	for range 40 {
		hold := acquire(t, mu)
		guarded := make(chan error, 1)
		go func() {
			_, err := hold.Guard(ctx)
			guarded <- err
		}()
		require.NoError(t, hold.Release())
		if err := <-guarded; err != nil {
			require.ErrorIs(t, err, recipes.ErrNotHeld)
			require.NotErrorIs(t, err, recipes.ErrNodeDeleted)
		}
	}
}

func TestOutcomeOfAnEmptyGuardAfterALoss(t *testing.T) {
	path := testzk.Path(t)
	hold := acquire(t, newMutex(t, testzk.Connected(t, testzk.Connect()), path))
	require.NoError(t, testzk.Observer(t).Delete(hold.Path(), -1))
	for range 2 { // the first guard finds the loss, the second knows it
		_, err := hold.Guard(testzk.Context(t))
		require.ErrorIs(t, err, recipes.ErrNodeDeleted)
		require.Equal(t, framework.NotApplied, framework.OutcomeOf(err))
	}
	_, err := (&recipes.Hold{}).Guard(testzk.Context(t))
	require.Equal(t, framework.NotApplied, framework.OutcomeOf(err))
}

func TestRevokeWritesLockNodesOnly(t *testing.T) {
	p := testzk.Proxy(t)
	path := testzk.Path(t)
	client := testzk.Connected(t, p.Addr())
	hold := acquire(t, newMutex(t, client, path))
	err := recipes.Revoke(testzk.Context(t), client, recipes.Participant{Node: path})
	require.ErrorIs(t, err, framework.ErrInvalidPath, "the parent is no lock node")
	require.ErrorContains(t, err, path)
	p.On(fault.Match{Op: fault.OpSetData, Path: hold.Path()}, fault.DropAfter())
	require.NoError(t, recipes.Revoke(testzk.Context(t), client, recipes.Participant{Node: hold.Path()}))
	testzk.Closes(t, hold.Revoked(), "the holder is not revoked")
	require.NoError(t, hold.Release())
}

// The cancel cause of an acquire may be the outcome of another request. It says nothing about the
// node, which is created after the acquire has returned.
func TestNodeOfACanceledAcquireIsDeleted(t *testing.T) {
	p := testzk.Proxy(t)
	path := testzk.Path(t)
	client := testzk.Connected(t, p.Addr())
	mu := newMutex(t, client, path)
	require.NoError(t, acquire(t, mu).Release())
	_, elsewhere := client.Create(testzk.Context(t), "no path", nil)
	require.Equal(t, framework.NotApplied, framework.OutcomeOf(elsewhere))
	ctx, cancel := context.WithCancelCause(testzk.Context(t))
	enqueue := p.On(fault.Match{Op: fault.OpCreate, Path: path}, fault.Hold())
	result := make(chan error, 1)
	go func() {
		_, err := mu.Acquire(ctx)
		result <- err
	}()
	require.NoError(t, enqueue.Wait(testzk.Context(t)))
	cancel(elsewhere)
	require.ErrorIs(t, <-result, framework.ErrInvalidPath)
	deletion := p.On(fault.Match{Op: fault.OpDelete, Path: path}, fault.Pass())
	enqueue.Release()
	require.NoError(t, deletion.Wait(testzk.Context(t)), "the created node is not deleted")
	testzk.Empty(t, path)
}

// The cause of the caller's canceled context is no answer of the servers, even if it looks like
// one.
func TestCancelCauseIsNoAnswer(t *testing.T) {
	p := testzk.Proxy(t)
	path := testzk.Path(t)
	client := testzk.Connected(t, p.Addr())
	require.NoError(t, acquire(t, newMutex(t, client, path)).Release())
	mu := newMutex(t, client, path)
	get := func(ctx context.Context) error {
		_, err := mu.Acquire(ctx)
		return err
	}
	require.ErrorIs(t, interrupted(t, p, fault.OpGetChildren2, zk.ErrNoNode, get), context.Canceled,
		"taken for the deletion of its node")
	hold := acquire(t, mu)
	for _, op := range []fault.Op{fault.OpGetChildren2, fault.OpGetData} {
		require.ErrorIs(t, interrupted(t, p, op, zk.ErrNoNode, func(ctx context.Context) error {
			_, err := mu.Participants(ctx)
			return err
		}), context.Canceled, "%v: taken for an empty queue", op)
	}
	require.ErrorIs(t, interrupted(t, p, fault.OpSetData, zk.ErrNoNode, func(ctx context.Context) error {
		return recipes.Revoke(ctx, client, recipes.Participant{Node: hold.Path()})
	}), context.Canceled, "taken for the deletion of the node")
	require.NoError(t, hold.Release())
	require.ErrorIs(t, interrupted(t, p, fault.OpCreate, zk.ErrNoNode, get), context.Canceled,
		"taken for a missing parent")
}

// interrupted returns the error of do. Its context is canceled for reason while it waits for an
// answer to op.
func interrupted(t testing.TB, p *proxy.Proxy, op fault.Op, reason error, do func(context.Context) error) error {
	t.Helper()
	held := p.On(fault.Match{Op: op}, fault.Hold())
	ctx, cancel := context.WithCancelCause(testzk.Context(t))
	result := make(chan error, 1)
	go func() { result <- do(ctx) }()
	require.NoError(t, held.Wait(testzk.Context(t)))
	cancel(reason)
	err := <-result
	held.Release()
	return err
}

func TestConnectTimeoutIsNotTheEndOfTheCallersContext(t *testing.T) {
	client := testzk.Client(t, "192.0.2.1:1",
		framework.WithRetry(retry.Never()), framework.WithConnectTimeout(50*time.Millisecond),
		framework.WithDialer(untilTimeout))
	_, err := newMutex(t, client, "/lock").Acquire(context.Background())
	require.ErrorIs(t, err, framework.ErrNotConnected)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, recipes.ErrNotAcquired)
}

// untilTimeout blocks until ctx ends and does not connect.
func untilTimeout(ctx context.Context, _, _ string) (net.Conn, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
