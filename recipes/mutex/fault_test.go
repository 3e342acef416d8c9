package mutex_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

func TestAcquireWithALostReplyCreatesOneNode(t *testing.T) {
	p := testzk.Proxy(t)
	path := testzk.Path(t)
	mu := newMutex(t, testzk.Connected(t, p.Addr()), path)
	require.NoError(t, acquire(t, mu).Release())
	rule := p.On(fault.Match{Op: fault.OpCreate, Path: path}, fault.DropAfter())
	hold := acquire(t, mu)
	require.NoError(t, rule.Wait(testzk.Context(t)))
	queue := queued(t, newMutex(t, testzk.Connected(t, testzk.Connect()), path), 1)
	require.Equal(t, queue[0].Node, hold.Path())
	require.Equal(t, queue[0].Token, hold.Token(), "the token is the node's czxid, even if it had to be read")
	require.NoError(t, hold.Release())
}

func TestGrantThatRacesWithCancellationIsReleased(t *testing.T) {
	p := testzk.Proxy(t)
	path := testzk.Path(t)
	mu := newMutex(t, testzk.Connected(t, p.Addr()), path)
	require.NoError(t, acquire(t, mu).Release())
	rule := p.On(fault.Match{Op: fault.OpCreate, Path: path}, fault.Hold())
	a := testlock.Start(t, mu.Acquire)
	require.NoError(t, rule.Wait(testzk.Context(t)))
	a.Cancel() // the request was sent and will be applied
	_, err := a.Wait()
	require.ErrorIs(t, err, context.Canceled)
	rule.Release()
	other := newMutex(t, testzk.Connected(t, testzk.Connect()), path)
	require.NoError(t, acquire(t, other).Release())
	testzk.Empty(t, path)
}

func TestAcquireWithAWrongAddressFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refusing := zktest.Start(t).Client("refusing")
		refusing.Refuse(true)
		client := testzk.Client(t, "127.0.0.1:1", framework.WithRetry(retry.Times(1, time.Millisecond)),
			framework.WithConnectTimeout(50*time.Millisecond), framework.WithDialer(refusing.DialContext))
		_, err := newMutex(t, client, "/lock").Acquire(context.Background())
		require.ErrorIs(t, err, framework.ErrNotConnected)
		require.ErrorContains(t, err, "127.0.0.1:1")
	})
}

func TestReleaseDuringAnOutageIsCompletedLater(t *testing.T) {
	p := testzk.Proxy(t)
	path := testzk.Path(t)
	client := testzk.Connected(t, p.Addr())
	mu := newMutex(t, client, path)
	hold := acquire(t, mu)
	rule := p.On(fault.Match{Op: fault.OpDelete, Path: hold.Path()}, fault.DropBefore())
	require.NoError(t, hold.Release(), "the deletion is repeated until it is applied")
	require.Equal(t, 1, rule.Hits())
	testzk.Empty(t, path)
}

func TestReleaseWithALostReplyIsNotALoss(t *testing.T) {
	p := testzk.Proxy(t)
	path := testzk.Path(t)
	mu := newMutex(t, testzk.Connected(t, p.Addr()), path)
	hold := acquire(t, mu)
	p.On(fault.Match{Op: fault.OpDelete, Path: hold.Path()}, fault.DropAfter())
	require.NoError(t, hold.Release())
	testzk.Empty(t, path)
}

func TestFailedListIsReturnedAndLeavesNoNode(t *testing.T) {
	path := testzk.Path(t)
	owner := testzk.Connected(t, testzk.Connect())
	holder := acquire(t, newMutex(t, owner, path))
	testzk.Permit(t, path, zk.PermCreate|zk.PermDelete|zk.PermWrite|zk.PermAdmin)
	_, err := newMutex(t, testzk.Connected(t, testzk.Connect()), path).Acquire(testzk.Context(t))
	require.ErrorIs(t, err, zk.ErrNoAuth)
	require.NotErrorIs(t, err, recipes.ErrNotAcquired)
	testzk.Permit(t, path, zk.PermAll)
	queued(t, newMutex(t, owner, path), 1)
	require.NoError(t, holder.Release())
}

func TestReadOnlyParentNeedsNoMoreRequests(t *testing.T) {
	withRequests(t, func(t *testing.T, d *requestFixture) {
		require.NoError(t, d.srv.Delete("/lock"))
		owner := testzk.Connected(t, d.srv.MemAddr(), framework.WithDialer(d.srv.Client("owner").DialContext))
		require.NoError(t, owner.CreateContainers(t.Context(), "/lock"))
		acl := zk.WorldACL(zk.PermCreate | zk.PermDelete | zk.PermRead | zk.PermAdmin)
		_, err := owner.SetACL(t.Context(), "/lock", acl, -1)
		require.NoError(t, err)
		mu := d.of("counted")
		require.NoError(t, acquire(t, mu).Release())
		testlock.Settle()
		d.asked()
		hold := acquire(t, mu)
		testlock.Settle()
		require.Equal(t, "create getChildren2", d.asked())
		queue, err := newMutex(t, owner, "/lock").Participants(t.Context())
		require.NoError(t, err)
		require.Len(t, queue, 1)
		require.Equal(t, queue[0].Token, hold.Token())
		require.NoError(t, hold.Release())
		_, err = owner.SetACL(t.Context(), "/lock", zk.WorldACL(zk.PermAll), -1)
		require.NoError(t, err)
	})
}

func TestNoPermissionIsAnError(t *testing.T) {
	path := testzk.Path(t)
	owner := testzk.Connected(t, testzk.Connect())
	require.NoError(t, owner.CreateContainers(testzk.Context(t), path))
	testzk.Permit(t, path, zk.PermRead|zk.PermAdmin)
	_, err := newMutex(t, owner, path).Acquire(testzk.Context(t))
	require.ErrorIs(t, err, zk.ErrNoAuth)
	require.ErrorContains(t, err, path)
}

func TestTooLargeDataIsRefusedBeforeItIsSent(t *testing.T) {
	p := testzk.Proxy(t)
	client := testzk.Connected(t, p.Addr())
	path := testzk.Path(t)
	hold := acquire(t, newMutex(t, client, path))
	p.ResetCounts()
	_, err := newMutex(t, client, path+"-large", mutex.WithData(make([]byte, 2<<20))).Acquire(testzk.Context(t))
	require.ErrorIs(t, err, framework.ErrTooLarge)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, 1, p.Connections())
	require.Equal(t, framework.Connected, client.State())
	require.NoError(t, hold.Err())
	require.NoError(t, hold.Release())
	require.Zero(t, p.Requests()[fault.OpCreate], "it was sent")
}
