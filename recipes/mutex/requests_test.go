package mutex_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// desk counts what one client asks for, "me", on a server of its own in virtual time.
type desk struct {
	t    *testing.T
	srv  *zktest.Server
	lock *mutex.Mutex // of that client, whose parent is there, and known
	read int          // how much of the trace
}

func atDesk(t *testing.T, test func(t *testing.T, d *desk)) {
	t.Helper()
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		d := &desk{t: t, srv: srv}
		d.lock = d.of("me")
		require.NoError(t, acquire(t, d.lock).Release())
		d.asked()
		test(t, d)
		settle()
		require.Equal(t, "/lock container\n", srv.Tree())
	})
}

// of is the same lock of another client.
func (d *desk) of(name string) *mutex.Mutex {
	d.t.Helper()
	return newMutex(d.t, testzk.Connected(d.t, d.srv.MemAddr(), framework.WithDialer(d.srv.Client(name).DialContext)), "/lock")
}

// asked is what the client has asked for since the last call, but for signs of life.
func (d *desk) asked() string {
	var all []string
	entries := d.srv.Trace().Entries
	for _, e := range entries[d.read:] {
		if e.Client == "me" && e.What != "event" && e.What != "sync" {
			all = append(all, e.What)
		}
	}
	d.read = len(entries)
	return strings.Join(all, " ")
}

// askedAtOnce is what the client asks for, beginning with the next request of the given type, before it has an answer to that.
func (d *desk) askedAtOnce(op zktest.Op, do func()) string {
	first := d.srv.On(zktest.Match{Client: "me", Op: op}, zktest.Hold())
	do()
	settle()
	d.asked()
	me := d.srv.Client("me")
	me.CutReplies()
	defer me.Heal()
	first.Release()
	settle()
	return strings.TrimPrefix(d.asked(), "replies cut ")
}

// settle waits until everything under way has come to an end.
func settle() {
	time.Sleep(20 * time.Millisecond) // less than a hold lasts before it is watched
	synctest.Wait()
}

// enter starts to wait, behind all who do already.
func enter(t *testing.T, mu *mutex.Mutex) *attempt {
	t.Helper()
	a := start(t, mu)
	settle()
	require.True(t, a.waiting())
	return a
}

// wins is the hold of an attempt that nothing keeps any more. It is released.
func (d *desk) wins(a *attempt) {
	d.t.Helper()
	settle()
	require.False(d.t, a.waiting())
	require.NoError(d.t, a.won(d.t).Release())
}

// holdBack keeps back the request by which the client is about to watch a node.
func (d *desk) holdBack(node string) *zktest.Rule {
	return d.srv.On(zktest.Match{Client: "me", Op: zktest.OpGetData, Path: node}, zktest.Hold())
}

func TestWhoIsGoneBeforeBeingWatchedIsNotLookedFor(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		ahead := acquire(t, d.of("other"))
		read := d.holdBack(ahead.Path())
		waiter := enter(t, d.lock)
		require.NoError(t, ahead.Release())
		read.Release()
		settle()
		require.Equal(t, "create getChildren2 getData getData", d.asked())
		d.wins(waiter)
	})
}

func TestWhoWatchesNobodyIsNotGrantedWithoutANodeOfItsOwn(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		other := d.of("other")
		ahead := acquire(t, d.lock)
		read := d.holdBack(ahead.Path())
		waiter := enter(t, d.lock)
		next := enter(t, other)
		require.NoError(t, d.srv.Delete(queued(t, other, 3)[1].Node))
		require.NoError(t, d.srv.Delete(ahead.Path()))
		rightful := next.won(t)
		read.Release()
		settle()
		require.True(t, waiter.waiting(), "granted while somebody else holds")
		require.NoError(t, rightful.Release())
		d.wins(waiter)
	})
}

// What the servers tell after a reconnect comes in no order: then a list must say that our node is there.
func TestWhoWatchesNobodyAfterAReconnectLooks(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		other := d.of("other")
		first := acquire(t, other)
		second := enter(t, other)
		waiter := enter(t, d.lock)
		read := d.holdBack(queued(t, other, 3)[1].Node)
		require.NoError(t, first.Release())
		settle()
		require.NoError(t, second.won(t).Release())
		settle()
		d.asked()
		d.srv.Client("me").Drop()
		read.Remove()
		time.Sleep(time.Second)
		require.Regexp(t, `setWatches .*getChildren2`, d.asked())
		d.wins(waiter)
	})
}

func TestRequestsThatDoNotDependOnEachOtherAreMadeTogether(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		other := d.of("other")
		first := acquire(t, other)
		second := enter(t, other)
		var waiter *attempt
		require.Equal(t, "getData getData", d.askedAtOnce(zktest.OpGetData, func() { waiter = enter(t, d.lock) }),
			"who is ahead, and its own node")
		settle()
		require.Equal(t, "getChildren2 getData", d.askedAtOnce(zktest.OpGetChildren2, func() { require.NoError(t, first.Release()) }),
			"the list, and who was the last in the one before")
		settle()
		d.asked()
		require.NoError(t, second.won(t).Release())
		settle()
		require.Empty(t, d.asked())
		d.wins(waiter)
	})
}

// line is a line of three that another client is in, in front of me.
func (d *desk) line() (holder *recipes.Hold, second, last, me *attempt) {
	d.t.Helper()
	other := d.of("other")
	holder = acquire(d.t, other)
	return holder, enter(d.t, other), enter(d.t, other), enter(d.t, d.lock)
}

func TestWhoeverHasBecomeTheSecondLastIsWaitedFor(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		holder, second, last, waiter := d.line()
		d.asked()
		second.cancel()
		settle()
		require.Equal(t, "getChildren2 getData getData", d.asked(), "the holder, whose end is not ours to wait for alone")
		require.NoError(t, holder.Release())
		settle()
		require.Equal(t, "getChildren2 getData", d.asked())
		d.wins(last)
		require.Empty(t, d.asked())
		d.wins(waiter)
	})
}

// The list is late, for it had to be asked for again, and shows another one than was watched meanwhile.
func TestLastWhoHasLeftIsNotTakenForAnother(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		holder, second, last, waiter := d.line()
		list := d.srv.On(zktest.Match{Client: "me", Op: zktest.OpGetChildren2}, zktest.Fail(zktest.Throttled))
		second.cancel()
		time.Sleep(10 * time.Millisecond)
		require.Equal(t, 1, list.Hits())
		last.cancel()
		time.Sleep(time.Second)
		require.True(t, waiter.waiting(), "granted while somebody else holds")
		require.NoError(t, holder.Release())
		d.wins(waiter)
	})
}

func TestOneRequestOfTwoThatIsLostIsMadeAgain(t *testing.T) {
	for skip := range 2 { // the first of them, or the second
		for name, action := range map[string]zktest.Action{"before": zktest.DropBefore(), "after": zktest.DropAfter()} {
			atDesk(t, func(t *testing.T, d *desk) {
				ahead := acquire(t, d.of("other"))
				rule := d.srv.On(zktest.Match{Client: "me", Op: zktest.OpGetData, Path: "/lock/*", Skip: skip}, action)
				waiter := enter(t, d.lock)
				time.Sleep(time.Second)
				require.Equal(t, 1, rule.Hits(), name)
				require.NoError(t, ahead.Release())
				d.wins(waiter)
			})
		}
	}
}
