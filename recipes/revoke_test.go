package recipes_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/leader"
	"github.com/docent-zk/docent/recipes/multilock"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/recipes/rwlock"
	"github.com/docent-zk/docent/recipes/semaphore"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// lister is a lock that lists its queue.
type lister interface {
	recipes.Locker
	Participants(ctx context.Context) ([]recipes.Participant, error)
}

func TestRevokeReachesTheHolderOfEachRecipe(t *testing.T) {
	c, asker := testzk.Connected(t, testzk.Connect()), testzk.Connected(t, testzk.Connect())
	locks := func(path string) map[string]lister {
		rw := must(rwlock.New(c, path+"/rw"))
		kazoo := must(rwlock.New(c, path+"/kazoo-rw", rwlock.WithKazooNames()))
		return map[string]lister{
			"mutex":            must(mutex.New(c, path+"/mutex")),
			"mutex of kazoo":   must(mutex.New(c, path+"/kazoo", mutex.WithKazooNames())),
			"readers":          rw.Read(),
			"writers":          rw.Write(),
			"readers of kazoo": kazoo.Read(),
			"writers of kazoo": kazoo.Write(),
			"semaphore":        must(semaphore.New(c, path+"/semaphore", 2)),
			"slots":            must(semaphore.New(c, path+"/slots", 2, semaphore.WithSlots())),
			"semaphore mutex":  must(semaphore.NewMutex(c, path+"/semaphore-mutex")),
		}
	}
	for name, lock := range locks(testzk.Path(t)) {
		t.Run(name, func(t *testing.T) {
			hold := must(lock.Acquire(testzk.Context(t)))
			queue := must(lock.Participants(testzk.Context(t)))
			require.Len(t, queue, 1)
			require.NoError(t, recipes.Revoke(testzk.Context(t), asker, queue[0]))
			require.NoError(t, recipes.Revoke(testzk.Context(t), asker, queue[0]), "twice is the same as once")
			isRevoked(t, hold.Revoked())
			require.NoError(t, hold.Err(), "a revocation is no loss")
			require.NoError(t, hold.Release())
			err := recipes.Revoke(testzk.Context(t), asker, queue[0])
			require.ErrorIs(t, err, zk.ErrNoNode, "the participant has left")
			require.ErrorContains(t, err, queue[0].Node)
			require.Equal(t, framework.NotApplied, framework.OutcomeOf(err))
		})
	}
}

func isRevoked(t *testing.T, revoked <-chan struct{}) {
	t.Helper()
	select {
	case <-revoked:
	case <-testzk.Context(t).Done():
		require.FailNow(t, "the holder is not revoked")
	}
}

func TestRevokeReachesAPartOfAMultiLock(t *testing.T) {
	c, path := testzk.Connected(t, testzk.Connect()), testzk.Path(t)
	both := must(multilock.New(c, []string{path + "/a", path + "/b"}))
	hold := must(both.Acquire(testzk.Context(t)))
	queue := must(must(mutex.New(c, path+"/b")).Participants(testzk.Context(t)))
	require.NoError(t, recipes.Revoke(testzk.Context(t), c, queue[0]))
	isRevoked(t, hold.Revoked())
	require.NoError(t, hold.Release())
}

// A write to the node of a Latch's candidate would end the watch of the Curator candidate behind
// it.
func TestRevokeReachesTheLeaderOfAnElectionAndRefusesALatch(t *testing.T) {
	c, path := testzk.Connected(t, testzk.Connect()), testzk.Path(t)
	election, latch := must(leader.New(c, path+"/election")), must(leader.NewLatch(c, path+"/latch"))
	ctx, stop := context.WithCancel(testzk.Context(t))
	ended := make(chan error, 1)
	go func() {
		ended <- election.Run(ctx, func(ctx context.Context, term *leader.Term) error {
			err := recipes.Revoke(ctx, c, must(election.Participants(ctx))[0])
			if err == nil {
				<-term.Revoked()
			}
			stop()
			return err
		})
	}()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.NoError(t, latch.Start(testzk.Context(t)))
	term := must(latch.Await(testzk.Context(t)))
	queue := must(latch.Participants(testzk.Context(t)))
	require.ErrorIs(t, recipes.Revoke(testzk.Context(t), c, queue[0]), framework.ErrInvalidPath)
	data, _, err := testzk.Observer(t).Get(term.Path())
	require.NoError(t, err)
	require.Empty(t, data)
	require.NoError(t, latch.Close())
}

func TestRevokeRefusesWhatIsNoParticipant(t *testing.T) {
	c := testzk.Client(t, "127.0.0.1:1")
	for _, node := range []string{
		"", "/", "lock-0000000000", "/locks", "/locks/lock-", "/locks/lock-7x", "/locks/0000000000",
		"/locks/_c_1-lock-0000000000/data", "/locks/_c_1-latch-0000000000",
	} {
		err := recipes.Revoke(testzk.Context(t), c, recipes.Participant{Node: node})
		require.ErrorIs(t, err, framework.ErrInvalidPath, "%q", node)
		require.Equal(t, framework.NotApplied, framework.OutcomeOf(err), "%q", node)
	}
}

func TestRevokeIsNotAppliedIfItMakesNoRequest(t *testing.T) {
	c := testzk.Client(t, "127.0.0.1:1")
	ended, end := context.WithCancel(testzk.Context(t))
	end()
	closed := testzk.Client(t, "127.0.0.1:1")
	require.NoError(t, closed.Close())
	for name, test := range map[string]struct {
		ctx    context.Context
		client *framework.Client
		want   error // nil: another one
	}{
		"nil client":    {testzk.Context(t), nil, nil},
		"zero client":   {testzk.Context(t), &framework.Client{}, framework.ErrZeroValue},
		"closed client": {testzk.Context(t), closed, framework.ErrClosed},
		"nil context":   {nil, c, framework.ErrNilContext},
		"ended context": {ended, c, context.Canceled},
	} {
		err := recipes.Revoke(test.ctx, test.client, recipes.Participant{Node: "/locks/_c_1-lock-0000000000"})
		require.Error(t, err, name)
		require.Equal(t, framework.NotApplied, framework.OutcomeOf(err), name)
		if test.want != nil {
			require.ErrorIs(t, err, test.want, name)
		}
	}
	err := recipes.Revoke(testzk.Context(t), nil, recipes.Participant{Node: "/locks/_c_1-lock-0000000000"})
	require.ErrorContains(t, err, "client is nil")
}

func TestNodesOfQueuesAreRevocableExceptThoseOfALatch(t *testing.T) {
	for node, want := range map[string]bool{
		"/a/_c_1-lock-0000000000": true, "/a/lock-0000000001": true, "/a/leases/_c_1-lease-0000000002": true,
		"/a/_c_1-__READ__0000000003": true, "/a/__WRIT__0000000004": true, "/a/1__lock__0000000005": true,
		"/a/1__rlock__0000000006": true, "/a/lock--2147483648": true,
		"": false, "/a/_c_1-latch-0000000000": false, "/a/0000000000": false, "/a/lock-": false,
	} {
		require.Equal(t, want, recipes.Participant{Node: node}.Revocable(), node)
	}
}

func TestRevokeIsRepeatedAfterALostAnswer(t *testing.T) {
	p := testzk.Proxy(t)
	c := testzk.Connected(t, p.Addr())
	mu := must(mutex.New(c, testzk.Path(t)))
	hold := must(mu.Acquire(testzk.Context(t)))
	p.On(fault.Match{Op: fault.OpSetData, Path: hold.Path()}, fault.DropAfter())
	require.NoError(t, recipes.Revoke(testzk.Context(t), c, recipes.Participant{Node: hold.Path()}))
	isRevoked(t, hold.Revoked())
	require.NoError(t, hold.Release())
}

// The holder may have released the lock because of the request, so the request may have been
// written.
func TestRevokeReportsThatALostRequestMayHaveBeenWritten(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		const node = "/lock/_c_1-lock-0000000000"
		c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client("asker").DialContext))
		require.NoError(t, srv.Create(node, nil))
		srv.On(fault.Match{Client: "asker", Op: fault.OpSetData}, fault.DropAfter())
		again := srv.On(fault.Match{Client: "asker", Op: fault.OpSetData}, fault.Hold())
		result := make(chan error, 1)
		go func() { result <- recipes.Revoke(t.Context(), c, recipes.Participant{Node: node}) }()
		require.NoError(t, again.Wait(t.Context()))
		require.NoError(t, srv.Delete(node))
		again.Release()
		err := <-result
		require.ErrorIs(t, err, zk.ErrNoNode)
		require.Equal(t, framework.Unknown, framework.OutcomeOf(err))
	})
}
