package mutex_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// requestFixture counts the requests of one client, "counted", on a server of its own in virtual
// time.
type requestFixture struct {
	t    *testing.T
	srv  *zktest.Server
	lock *mutex.Mutex // of the counted client; its parent exists and is known
	sent *testlock.Requests
}

func withRequests(t *testing.T, test func(t *testing.T, d *requestFixture)) {
	t.Helper()
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		d := &requestFixture{t: t, srv: srv, sent: testlock.RequestsOn(srv)}
		d.lock = d.of("counted")
		require.NoError(t, acquire(t, d.lock).Release())
		d.asked()
		test(t, d)
		testlock.Settle()
		require.Equal(t, "/lock container\n", srv.Tree())
	})
}

// of returns the same lock of another client.
func (d *requestFixture) of(name string) *mutex.Mutex {
	d.t.Helper()
	dialer := framework.WithDialer(d.srv.Client(name).DialContext)
	return newMutex(d.t, testzk.Connected(d.t, d.srv.MemAddr(), dialer), "/lock")
}

// asked returns the client's requests since the last call, without heartbeats.
func (d *requestFixture) asked() string { return d.sent.Of("counted") }

// askedAtOnce returns the requests that the client sends without waiting for an answer, from the
// next request of type op on.
func (d *requestFixture) askedAtOnce(op fault.Op, do func()) string {
	first := d.srv.On(fault.Match{Client: "counted", Op: op}, fault.Hold())
	do()
	testlock.Settle()
	d.asked()
	link := d.srv.Client("counted")
	link.CutReplies()
	defer link.Heal()
	first.Release()
	testlock.Settle()
	return strings.TrimPrefix(d.asked(), "replies cut ")
}

// enter starts an acquire that queues behind all others.
func enter(t *testing.T, mu *mutex.Mutex) *testlock.Attempt {
	t.Helper()
	a := testlock.Start(t, mu.Acquire)
	testlock.Settle()
	require.True(t, a.Waiting())
	return a
}

// wins requires that an attempt has the lock, and releases it.
func (d *requestFixture) wins(a *testlock.Attempt) {
	d.t.Helper()
	testlock.Settle()
	require.False(d.t, a.Waiting())
	require.NoError(d.t, a.Won(d.t).Release())
}

// holdBack delays the request with which the client sets its watch on a node.
func (d *requestFixture) holdBack(node string) *fault.Rule {
	return d.srv.On(fault.Match{Client: "counted", Op: fault.OpGetData, Path: node}, fault.Hold())
}

func TestPredecessorDeletedBeforeTheWatchNeedsNoList(t *testing.T) {
	withRequests(t, func(t *testing.T, d *requestFixture) {
		ahead := acquire(t, d.of("other"))
		read := d.holdBack(ahead.Path())
		waiter := enter(t, d.lock)
		require.NoError(t, ahead.Release())
		read.Release()
		testlock.Settle()
		require.Equal(t, "create getChildren2 getData getData", d.asked())
		d.wins(waiter)
	})
}

func TestWaiterWithoutAWatchIsNotGrantedWithoutItsNode(t *testing.T) {
	withRequests(t, func(t *testing.T, d *requestFixture) {
		other := d.of("other")
		ahead := acquire(t, d.lock)
		read := d.holdBack(ahead.Path())
		waiter := enter(t, d.lock)
		next := enter(t, other)
		require.NoError(t, d.srv.Delete(queued(t, other, 3)[1].Node))
		require.NoError(t, d.srv.Delete(ahead.Path()))
		rightful := next.Won(t)
		read.Release()
		testlock.Settle()
		require.True(t, waiter.Waiting(), "granted while another client holds")
		require.NoError(t, rightful.Release())
		d.wins(waiter)
	})
}

// After a reconnect the servers send missed events in no order. Then a list must show that the own
// node exists.
func TestWaiterWithoutAWatchReadsTheQueueAfterAReconnect(t *testing.T) {
	withRequests(t, func(t *testing.T, d *requestFixture) {
		other := d.of("other")
		first := acquire(t, other)
		second := enter(t, other)
		waiter := enter(t, d.lock)
		read := d.holdBack(queued(t, other, 3)[1].Node)
		require.NoError(t, first.Release())
		testlock.Settle()
		require.NoError(t, second.Won(t).Release())
		testlock.Settle()
		d.asked()
		d.srv.Client("counted").Drop()
		read.Remove()
		time.Sleep(time.Second)
		require.Regexp(t, `setWatches .*getChildren2`, d.asked())
		d.wins(waiter)
	})
}

func TestIndependentRequestsAreSentTogether(t *testing.T) {
	withRequests(t, func(t *testing.T, d *requestFixture) {
		other := d.of("other")
		first := acquire(t, other)
		second := enter(t, other)
		var waiter *testlock.Attempt
		require.Equal(t, "getData getData", d.askedAtOnce(fault.OpGetData, func() { waiter = enter(t, d.lock) }),
			"the predecessor and its own node")
		testlock.Settle()
		releaseFirst := func() { require.NoError(t, first.Release()) }
		require.Equal(t, "getChildren2 getData", d.askedAtOnce(fault.OpGetChildren2, releaseFirst),
			"the list, and the last node ahead in the list before")
		testlock.Settle()
		d.asked()
		require.NoError(t, second.Won(t).Release())
		testlock.Settle()
		require.Empty(t, d.asked())
		d.wins(waiter)
	})
}

// queueOfThree returns a holder, two waiters of the other client, and a waiter of the counted
// client behind them.
func (d *requestFixture) queueOfThree() (holder *recipes.Hold, second, last, counted *testlock.Attempt) {
	d.t.Helper()
	other := d.of("other")
	holder = acquire(d.t, other)
	return holder, enter(d.t, other), enter(d.t, other), enter(d.t, d.lock)
}

func TestNewNodeBeforeThePredecessorIsWatched(t *testing.T) {
	withRequests(t, func(t *testing.T, d *requestFixture) {
		holder, second, last, waiter := d.queueOfThree()
		d.asked()
		second.Cancel()
		testlock.Settle()
		require.Equal(t, "getChildren2 getData getData", d.asked(), "the end of the holder alone does not grant")
		require.NoError(t, holder.Release())
		testlock.Settle()
		require.Equal(t, "getChildren2 getData", d.asked())
		d.wins(last)
		require.Empty(t, d.asked())
		d.wins(waiter)
	})
}

// The list is late, because it had to be repeated. It shows another last node than the one watched
// meanwhile.
func TestDeletedPredecessorIsNotTakenForAnother(t *testing.T) {
	withRequests(t, func(t *testing.T, d *requestFixture) {
		holder, second, last, waiter := d.queueOfThree()
		list := d.srv.On(fault.Match{Client: "counted", Op: fault.OpGetChildren2}, fault.Fail(zktest.Throttled))
		second.Cancel()
		time.Sleep(10 * time.Millisecond)
		require.Equal(t, 1, list.Hits())
		last.Cancel()
		time.Sleep(time.Second)
		require.True(t, waiter.Waiting(), "granted while another client holds")
		require.NoError(t, holder.Release())
		d.wins(waiter)
	})
}

func TestOneLostRequestOfTwoIsRepeated(t *testing.T) {
	for skip := range 2 { // loses the first request or the second
		for name, action := range map[string]fault.Action{"before": fault.DropBefore(), "after": fault.DropAfter()} {
			withRequests(t, func(t *testing.T, d *requestFixture) {
				ahead := acquire(t, d.of("other"))
				match := fault.Match{Client: "counted", Op: fault.OpGetData, Path: "/lock/*", Skip: skip}
				rule := d.srv.On(match, action)
				waiter := enter(t, d.lock)
				time.Sleep(time.Second)
				require.Equal(t, 1, rule.Hits(), name)
				require.NoError(t, ahead.Release())
				d.wins(waiter)
			})
		}
	}
}

// The watch that a hold sets after 100 ms notices deletions and revocations alike.
func TestAskingForRevocationsMakesNoRequest(t *testing.T) {
	withRequests(t, func(t *testing.T, d *requestFixture) {
		hold := acquire(t, d.lock)
		d.asked()
		revoked := hold.Revoked()
		testlock.Settle()
		require.Empty(t, d.asked())
		require.NoError(t, d.srv.Set(hold.Path(), []byte("__REVOKE__")))
		<-revoked
		require.Equal(t, "getData", d.asked())
		require.NoError(t, hold.Release())
	})
}
