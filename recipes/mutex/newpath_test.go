package mutex_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// newPath is a server on which no path was used yet, and the client "counted".
type newPath struct {
	*requestFixture
	client *framework.Client
}

func onNewPath(t *testing.T, test func(t *testing.T, d newPath)) {
	t.Helper()
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		d := &requestFixture{t: t, srv: srv, sent: testlock.RequestsOn(srv)}
		dialer := framework.WithDialer(srv.Client("counted").DialContext)
		c := testzk.Connected(t, srv.MemAddr(), dialer)
		d.lock = newMutex(t, c, "/lock")
		d.asked()
		test(t, newPath{d, c})
	})
}

func TestFirstAcquireOfAPathCreatesParentsAndNodeInOneTransaction(t *testing.T) {
	onNewPath(t, func(t *testing.T, d newPath) {
		for _, c := range []struct{ path, requests string }{
			{"/a/b/lock", "create getChildren2 multi multi multi"}, // three nodes are missing
			{"/a/b/other", "create getChildren2 multi"},
			{"/a/b/other", "create getChildren2"},
		} {
			hold := acquire(t, newMutex(t, d.client, c.path)) // a new Mutex each time
			require.Equal(t, c.requests, d.asked(), c.path)
			stat, err := d.client.Exists(t.Context(), hold.Path())
			require.NoError(t, err)
			require.Equal(t, stat.Czxid, hold.Token())
			require.NoError(t, hold.Release())
			d.asked()
		}
		require.Equal(t, "/a container\n/a/b container\n/a/b/lock container\n/a/b/other container\n", d.srv.Tree())
		require.NoError(t, acquire(t, d.of("another")).Release())
		sent := testlock.RequestsOn(d.srv)
		require.NoError(t, acquire(t, d.of("third")).Release())
		require.Equal(t, "connected create getChildren2 delete", sent.Of("third"), "another client")
	})
}

func TestFirstAcquireOfAPathTakesTwoRoundTrips(t *testing.T) {
	onNewPath(t, func(t *testing.T, d newPath) {
		var a *testlock.Attempt
		start := func() { a = testlock.Start(t, d.lock.Acquire) }
		require.Equal(t, "create getChildren2", d.askedAtOnce(fault.OpCreate, start))
		d.wins(a)
		require.NoError(t, d.srv.Delete("/lock"))
		d.asked()
		var hold *recipes.Hold
		require.Equal(t, "multi", d.askedAtOnce(fault.OpMulti, func() {
			a = testlock.Start(t, d.lock.Acquire)
		}))
		hold = a.Won(t)
		require.NoError(t, hold.Release())

		d.asked()
		start = func() { a = testlock.Start(t, newMutex(t, d.client, "/lock").Acquire) }
		require.Equal(t, "create getChildren2", d.askedAtOnce(fault.OpCreate, start), "of another Mutex on the path")
		d.wins(a)
	})
}

func TestClientsThatRaceForANewPathQueue(t *testing.T) {
	onNewPath(t, func(t *testing.T, d newPath) {
		both := d.srv.On(fault.Match{Client: "counted", Op: fault.OpMulti}, fault.Hold())
		waiter := testlock.Start(t, d.lock.Acquire)
		testlock.Settle()
		ahead := acquire(t, d.of("other"))
		both.Release()
		testlock.Settle()
		require.True(t, waiter.Waiting())
		require.Equal(t, "create getChildren2 multi multi getChildren2 getData getData", d.asked())
		require.NoError(t, ahead.Release())
		hold := waiter.Won(t)
		require.Greater(t, hold.Token(), ahead.Token())
		require.NoError(t, hold.Release())
		require.Equal(t, "/lock container\n", d.srv.Tree())
	})
}

// The first acquire of a path survives the loss of each of its requests, with one node.
func TestFirstAcquireOfAPathWithLostRequestsAndReplies(t *testing.T) {
	for what, action := range map[string]fault.Action{
		"request lost": fault.DropBefore(), "reply lost": fault.DropAfter(), "reset": fault.Reset(),
	} {
		for _, lost := range []fault.Match{
			{Op: fault.OpCreate}, {Op: fault.OpGetChildren2}, {Op: fault.OpMulti}, {Op: fault.OpMulti, Skip: 1},
		} {
			onNewPath(t, func(t *testing.T, d newPath) {
				lost.Client = "counted"
				rule := d.srv.On(lost, action)
				mu := newMutex(t, d.client, "/a/lock")
				hold := acquire(t, mu)
				time.Sleep(time.Second)
				require.Equal(t, 1, rule.Hits(), "%s: %v", what, lost)
				all := queued(t, mu, 1)
				require.Equal(t, hold.Path(), all[0].Node, "%s: %v", what, lost)
				other := dialled(t, d.srv, "other")
				_, err := newMutex(t, other, "/a/lock").TryAcquire(t.Context())
				require.ErrorIs(t, err, recipes.ErrNotAcquired)
				require.NoError(t, hold.Err())
				stat, err := d.client.Exists(t.Context(), hold.Path())
				require.NoError(t, err)
				require.Equal(t, stat.Czxid, hold.Token())
				require.NoError(t, hold.Release())
				next := acquire(t, newMutex(t, other, "/a/lock"))
				require.Greater(t, next.Token(), hold.Token())
				require.NoError(t, next.Release())
				testlock.Settle()
				require.Equal(t, "/a container\n/a/lock container\n", d.srv.Tree())
			})
		}
	}
}

// A call that ends while its first transaction is under way leaves no lock node.
func TestFirstAcquireOfAPathThatEndsEarlyLeavesNoNode(t *testing.T) {
	for _, op := range []fault.Op{fault.OpCreate, fault.OpMulti} {
		onNewPath(t, func(t *testing.T, d newPath) {
			rule := d.srv.On(fault.Match{Client: "counted", Op: op}, fault.Hold())
			a := testlock.Start(t, d.lock.Acquire)
			testlock.Settle()
			a.Cancel()
			_, err := a.Wait()
			require.Error(t, err)
			rule.Release()
			testlock.Settle()
			want := ""
			if op == fault.OpMulti {
				want = "/lock container\n"
			}
			require.Equal(t, want, d.srv.Tree())
		})
	}
}
