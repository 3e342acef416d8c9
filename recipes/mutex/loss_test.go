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
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

// A read of the node that is under way then would wait for the next connection.
func TestInterruptionEndsAStrictHoldDuringAReadOfItsNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		client := srv.Client("holder")
		hold := acquire(t, newMutex(t, testzk.Connected(t, srv.MemAddr(), framework.WithDialer(client.DialContext),
			framework.WithLossPolicy(framework.Strict)), "/lock"))
		look := srv.On(fault.Match{Op: fault.OpGetData, Path: hold.Path()}, fault.Hold())
		require.NoError(t, look.Wait(t.Context()))
		client.Refuse(true)
		client.Reset()
		synctest.Wait()
		select {
		case <-hold.Done():
		default:
			require.FailNow(t, "the hold is valid without a connection")
		}
		require.ErrorIs(t, hold.Err(), framework.ErrSuspended)
	})
}

func TestSessionEndDuringReleaseIsNoLoss(t *testing.T) {
	t.Parallel()
	p := testzk.Proxy(t)
	path := testzk.Path(t)
	client := testzk.Connected(t, p.Addr())
	hold := acquire(t, newMutex(t, client, path))
	rule := p.On(fault.Match{Op: fault.OpDelete, Path: hold.Path()}, fault.DropBefore())
	released := make(chan error, 1)
	go func() { released <- hold.Release() }()
	require.NoError(t, rule.Wait(testzk.Context(t)))
	require.NoError(t, client.Close())
	err := <-released
	if err != nil { // no error if the deletion was repeated in time
		require.ErrorIs(t, err, recipes.ErrReleasePending)
		require.NotErrorIs(t, err, framework.ErrClosed, "the hold was valid until it was released")
	}
	require.ErrorIs(t, hold.Release(), recipes.ErrNotHeld)
	testzk.Empty(t, path)
}

func TestReleaseThatTheServersRefuseIsPending(t *testing.T) {
	path := testzk.Path(t)
	hold := acquire(t, newMutex(t, testzk.Connected(t, testzk.Connect()), path))
	testzk.Permit(t, path, zk.PermAll&^zk.PermDelete)
	err := hold.Release()
	require.ErrorIs(t, err, recipes.ErrReleasePending)
	require.ErrorIs(t, err, zk.ErrNoAuth)
	require.ErrorIs(t, hold.Err(), recipes.ErrNotHeld)
	testzk.Permit(t, path, zk.PermAll)
}

func TestGuardAppliesOnlyWhileTheNodeExists(t *testing.T) {
	path := testzk.Path(t)
	client := testzk.Connected(t, testzk.Connect())
	hold := acquire(t, newMutex(t, client, path))
	data := path + "-data"
	results, err := hold.Guard(testzk.Context(t), framework.CreateOp(data, []byte("1")))
	require.NoError(t, err)
	require.Len(t, results, 1)
	require.Equal(t, data, results[0].Path)
	_, err = hold.Guard(testzk.Context(t), framework.SetOp(data, []byte("2"), 7))
	require.ErrorIs(t, err, zk.ErrBadVersion)
	require.NoError(t, hold.Err(), "a failure of the caller's own operation is not a loss")

	require.NoError(t, testzk.Observer(t).Delete(hold.Path(), -1))
	_, err = hold.Guard(testzk.Context(t), framework.SetOp(data, []byte("2"), -1))
	require.ErrorIs(t, err, recipes.ErrNodeDeleted)
	got, _, err := client.Get(testzk.Context(t), data)
	require.NoError(t, err)
	require.Equal(t, "1", string(got))
}

func TestGuardCountsTheCallersOperations(t *testing.T) {
	hold := acquire(t, newMutex(t, testzk.Connected(t, testzk.Connect()), testzk.Path(t)))
	_, err := hold.Guard(testzk.Context(t), framework.SetOp("/a", nil, -1), nil)
	require.ErrorContains(t, err, "operation 1 is nil")
	require.Equal(t, framework.NotApplied, framework.OutcomeOf(err))
	_, err = hold.Guard(testzk.Context(t), framework.SetOp("a", nil, -1))
	require.ErrorContains(t, err, "set a")
	require.ErrorIs(t, err, framework.ErrInvalidPath)
	require.NoError(t, hold.Err())
	require.NoError(t, hold.Release())
}

func ownerOf(t testing.TB, hold *recipes.Hold) int64 {
	t.Helper()
	_, stat, err := testzk.Observer(t).Exists(hold.Path())
	require.NoError(t, err)
	return stat.EphemeralOwner
}

func TestWaitContinuesAfterTheSessionIsLostDuringTheEnqueue(t *testing.T) {
	t.Parallel()
	p := testzk.Proxy(t)
	path := testzk.Path(t)
	client := testzk.Connected(t, p.Addr(), testzk.Mortal())
	mu := newMutex(t, client, path)
	require.NoError(t, acquire(t, mu).Release())
	former, err := client.Session(testzk.Context(t))
	require.NoError(t, err)
	rule := p.On(fault.Match{Op: fault.OpCreate, Path: path}, fault.Hold())
	a := testlock.Start(t, mu.Acquire)
	require.NoError(t, rule.Wait(testzk.Context(t)))
	require.NoError(t, p.Refuse(true))
	testzk.Closes(t, former.Done(), "the session does not notice that answers are missing")
	require.NoError(t, p.Refuse(false))
	hold := a.Won(t) // in the next session
	rule.Release()   // the servers apply the first create only now
	require.NotEqual(t, former.ID(), ownerOf(t, hold))
	queued(t, newMutex(t, testzk.Connected(t, testzk.Connect()), path), 1)
	require.NoError(t, hold.Release())
	testzk.Empty(t, path)
}

func TestHolderAndWaiterSurviveARestartOfTheServer(t *testing.T) {
	t.Parallel()
	server := testzk.Own(t, testzk.Seldom)
	client := testzk.Connected(t, server.Connect(), framework.WithSessionTimeout(time.Minute))
	mu := newMutex(t, client, "/lock")
	hold := acquire(t, mu)
	waiter := testlock.Start(t, mu.Acquire)
	queued(t, mu, 2)
	server.Kill(t)
	server.Start(t)
	require.NoError(t, client.WaitConnected(testzk.Context(t)))
	require.NoError(t, hold.Err())
	require.True(t, waiter.Waiting())
	require.NoError(t, hold.Release())
	require.NoError(t, waiter.Won(t).Release())
}

func TestClientStartsOverAfterTheServerLostItsData(t *testing.T) {
	t.Parallel()
	server := testzk.Own(t, testzk.Seldom)
	client := testzk.Connected(t, server.Connect(), testzk.Mortal())
	mu := newMutex(t, client, "/lock")
	for range 20 { // the server's zxid is behind the client's afterwards
		require.NoError(t, acquire(t, mu).Release())
	}
	hold := acquire(t, mu)
	work := hold.Context(context.Background())
	server.Kill(t)
	server.Wipe(t)
	server.Start(t)
	testlock.LostTo(t, hold, work, framework.ErrSessionLost)
	require.NoError(t, acquire(t, mu).Release())
}

func TestLockWorksWhileTheServersDeleteItsContainers(t *testing.T) {
	t.Parallel()
	server := testzk.Own(t, 10*time.Millisecond)
	client := testzk.Connected(t, server.Connect())
	mu := newMutex(t, client, "/deep/down/lock")
	ctx := testzk.Context(t)
	var r checker
	contend(t, 4, func(int) error {
		for range 25 {
			hold, err := mu.Acquire(testzk.Context(t))
			if err != nil {
				return err
			}
			if err := r.work(hold); err != nil {
				return err
			}
			if err := hold.Release(); err != nil {
				return err
			}
		}
		return nil
	})
	testzk.Eventually(t, func() bool {
		_, err := client.Exists(ctx, "/deep")
		return err != nil
	}, "the servers do not delete the containers")
}

func TestEachRevocationReachesTheHolder(t *testing.T) {
	path := testzk.Path(t)
	mu := newMutex(t, testzk.Connected(t, testzk.Connect()), path)
	asker := testzk.Connected(t, testzk.Connect())
	for range 2 { // the second time with a new hold
		hold := acquire(t, mu)
		select {
		case <-hold.Revoked():
			require.FailNow(t, "revoked without a request")
		default:
		}
		require.NoError(t, recipes.Revoke(testzk.Context(t), asker, recipes.Participant{Node: hold.Path()}))
		testzk.Closes(t, hold.Revoked(), "the holder is not revoked")
		require.NoError(t, hold.Err(), "a revocation is no loss")
		require.NoError(t, hold.Release())
		err := recipes.Revoke(testzk.Context(t), asker, recipes.Participant{Node: hold.Path()})
		require.ErrorIs(t, err, zk.ErrNoNode, "the holder has released the lock")
	}
}

func TestOtherDataOnTheNodeIsNoRevocation(t *testing.T) {
	path := testzk.Path(t)
	hold := acquire(t, newMutex(t, testzk.Connected(t, testzk.Connect()), path))
	revoked := hold.Revoked()
	observer := testzk.Observer(t)
	_, err := observer.Set(hold.Path(), []byte("hello"), -1)
	require.NoError(t, err)
	_, err = observer.Set(hold.Path(), []byte("__REVOKE__"), -1)
	require.NoError(t, err)
	testzk.Closes(t, revoked, "the holder is not revoked")
	require.NoError(t, hold.Release())
}

func TestRevokedWaiterReportsItWhenItHolds(t *testing.T) {
	path := testzk.Path(t)
	mu := newMutex(t, testzk.Connected(t, testzk.Connect()), path)
	holder := acquire(t, mu)
	waiter := testlock.Start(t, mu.Acquire)
	queue := queued(t, mu, 2)
	require.NoError(t, recipes.Revoke(testzk.Context(t), testzk.Connected(t, testzk.Connect()), queue[1]))
	require.NoError(t, holder.Release())
	hold := waiter.Won(t)
	testzk.Closes(t, hold.Revoked(), "the holder is not revoked")
	require.NoError(t, hold.Release())
}
