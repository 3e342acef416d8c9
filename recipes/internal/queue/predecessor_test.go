package queue_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/internal/queue"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// counter counts the requests of one of the clients that queue on a server.
type counter struct {
	t    *testing.T
	srv  *zktest.Server
	mine *mutex.Mutex // of the client whose requests are counted
	read int          // number of trace entries already reported

	clients []*framework.Client
}

// inQueue runs a test. Then the queue must be empty and no predecessor may be remembered.
func inQueue(t *testing.T, test func(t *testing.T, c *counter)) {
	t.Helper()
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		c := &counter{t: t, srv: srv}
		c.mine = c.of("mine")
		hold, err := c.mine.Acquire(t.Context())
		require.NoError(t, err)
		require.NoError(t, hold.Release())
		c.asked()
		test(t, c)
		settle()
		require.Equal(t, "/lock container\n", srv.Tree())
		require.Zero(t, c.sameSessionWaiters(), "deleted nodes are still known")
	})
}

func (c *counter) of(client string) *mutex.Mutex {
	c.t.Helper()
	dialer := framework.WithDialer(c.srv.Client(client).DialContext)
	connected := testzk.Connected(c.t, c.srv.MemAddr(), dialer)
	c.clients = append(c.clients, connected)
	mu, err := mutex.New(connected, "/lock")
	require.NoError(c.t, err)
	return mu
}

// sameSessionWaiters returns the number of queue nodes that waiters of the same session know.
func (c *counter) sameSessionWaiters() (n int) {
	c.t.Helper()
	for _, client := range c.clients {
		session, err := client.Session(c.t.Context())
		require.NoError(c.t, err)
		n += queue.SameSessionWaiters(session)
	}
	return n
}

// asked returns the client's requests since the last call, without heartbeats and events.
func (c *counter) asked() string {
	var all []string
	entries := c.srv.Trace().Entries
	for _, e := range entries[c.read:] {
		if e.Client == "mine" && e.What != "event" && e.What != "sync" {
			all = append(all, e.What)
		}
	}
	c.read = len(entries)
	return strings.Join(all, " ")
}

// waits lets an acquire wait.
var waits ignored

type ignored struct{}

func (ignored) Waits(queue.OwnNodes) {}

// settle waits until all running requests have ended.
func settle() {
	time.Sleep(20 * time.Millisecond)
	synctest.Wait()
}

// waiter is a running Acquire.
type waiter struct {
	t      *testing.T
	cancel context.CancelFunc
	hold   *recipes.Hold
	err    error
	done   chan struct{}
}

func (c *counter) start(mu *mutex.Mutex) *waiter {
	ctx, cancel := context.WithCancel(context.Background())
	w := &waiter{t: c.t, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		w.hold, w.err = mu.Acquire(ctx)
	}()
	c.t.Cleanup(cancel)
	return w
}

// enter starts n acquires and lets each enqueue before the next.
func (c *counter) enter(mu *mutex.Mutex, n int) []*waiter {
	var all []*waiter
	for range n {
		all = append(all, c.start(mu))
		settle()
	}
	return all
}

func (w *waiter) waits() bool {
	select {
	case <-w.done:
		return false
	default:
		return true
	}
}

// holds returns the hold of a waiter that must have the lock.
func (w *waiter) holds() *recipes.Hold {
	w.t.Helper()
	require.False(w.t, w.waits())
	require.NoError(w.t, w.err)
	require.NoError(w.t, w.hold.Err())
	return w.hold
}

// inTurn checks that the waiters hold the lock one after the other in their order. Each release
// must make exactly the wanted requests of the client.
func (c *counter) inTurn(all []*waiter, wanted string) {
	c.t.Helper()
	for i, w := range all {
		hold := w.holds()
		for _, behind := range all[i+1:] {
			require.True(c.t, behind.waits(), "two waiters hold the lock")
		}
		c.asked()
		require.NoError(c.t, hold.Release())
		settle()
		require.Equal(c.t, wanted, c.asked(), "at hand-over %d", i)
	}
}

func TestOneDeletionHandsTheLockToTheNextWaiterOfAClient(t *testing.T) {
	inQueue(t, func(t *testing.T, c *counter) {
		const waiters = 300
		before := runtime.NumGoroutine()
		all := c.enter(c.mine, 1)
		require.Equal(t, "create getChildren2", c.asked())
		all = append(all, c.enter(c.mine, 1)...)
		c.asked()
		for range waiters - 2 {
			all = append(all, c.enter(c.mine, 1)...)
			require.Regexp(t, `^create getData( getData)?$`, c.asked(), "its node and a watch on it; once the holder's")
		}
		require.LessOrEqual(t, runtime.NumGoroutine()-before, waiters, "more goroutines than callers")
		c.inTurn(all, "delete")
	})
}

func TestOneDeletionIsEnoughInAQueueThatWasFilledAtOnce(t *testing.T) {
	inQueue(t, func(t *testing.T, c *counter) {
		first := c.enter(c.mine, 1)
		var rest []*waiter
		for range 300 {
			rest = append(rest, c.start(c.mine))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		c.asked()
		for holder := first[0]; ; {
			require.NoError(t, holder.holds().Release())
			settle()
			require.Equal(t, "delete", c.asked())
			if len(rest) == 0 {
				return
			}
			i := slices.IndexFunc(rest, func(w *waiter) bool { return !w.waits() })
			holder = rest[i]
			rest = slices.Delete(rest, i, i+1)
		}
	})
}

func TestWaiterReadsTheQueueIfItsPredecessorGivesUp(t *testing.T) {
	inQueue(t, func(t *testing.T, c *counter) {
		all := c.enter(c.mine, 6)
		c.asked()
		all[3].cancel()
		settle()
		require.Equal(t, "delete getChildren2", c.asked())
		c.inTurn(slices.Delete(all, 3, 4), "delete")
	})
}

func TestDeletionOfAWaitersNodeGrantsNothing(t *testing.T) {
	for _, target := range []int{1, 3} { // the next to be granted, and a waiter further behind
		inQueue(t, func(t *testing.T, c *counter) {
			all := c.enter(c.mine, 6)
			nodes, err := c.mine.Participants(t.Context())
			require.NoError(t, err)
			require.NoError(t, c.srv.Delete(nodes[target].Node))
			settle()
			requeued := all[target]
			c.inTurn(append(slices.Delete(all, target, target+1), requeued), "delete")
		})
	}
}

func TestForeignNodeBetweenIsRespected(t *testing.T) {
	inQueue(t, func(t *testing.T, c *counter) {
		other := c.of("other")
		all := slices.Concat(c.enter(c.mine, 2), c.enter(other, 1),
			c.enter(c.mine, 2), c.enter(other, 1), c.enter(c.mine, 1))
		c.byTurns(all)
	})
}

func TestRevokedWaiterKeepsItsNode(t *testing.T) {
	inQueue(t, func(t *testing.T, c *counter) {
		all := c.enter(c.mine, 5)
		nodes, err := c.mine.Participants(t.Context())
		require.NoError(t, err)
		require.NoError(t, c.srv.Set(nodes[2].Node, []byte("x")))
		settle()
		c.asked()
		c.inTurn(all, "delete")
	})
}

func TestQueueIsReadAgainAfterAReconnect(t *testing.T) {
	inQueue(t, func(t *testing.T, c *counter) {
		all := c.enter(c.mine, 4)
		c.srv.Client("mine").Drop()
		time.Sleep(time.Second)
		c.asked()
		all = append(all, c.enter(c.mine, 1)...)
		require.Equal(t, "create getChildren2 getData getData", c.asked(),
			"known predecessors are from before the reconnect")
		all = append(all, c.enter(c.mine, 1)...)
		require.Equal(t, "create getData", c.asked(), "the predecessor is known again")
		c.byTurns(all)
	})
}

// After a reconnect the servers send missed events in no order. That the predecessor was deleted
// does not prove that the waiter's own node still exists.
func TestDisconnectedWaiterIsNotGrantedByAPredecessorOfItsSession(t *testing.T) {
	inQueue(t, func(t *testing.T, c *counter) {
		all := c.enter(c.mine, 3)
		rightful := c.enter(c.of("other"), 1)[0]
		nodes, err := c.mine.Participants(t.Context())
		require.NoError(t, err)
		link := c.srv.Client("mine")
		link.Refuse(true)
		link.Drop()
		for _, p := range nodes[:3] {
			require.NoError(t, c.srv.Delete(p.Node))
		}
		settle()
		hold := rightful.holds()
		link.Refuse(false)
		time.Sleep(5 * time.Second)
		require.True(t, all[1].waits() && all[2].waits(), "granted while another client holds")
		require.ErrorIs(t, all[0].hold.Err(), recipes.ErrNodeDeleted)
		require.NoError(t, hold.Release())
		time.Sleep(time.Second)
		winner := slices.IndexFunc(all[1:], func(w *waiter) bool { return !w.waits() }) + 1
		require.NoError(t, all[winner].holds().Release())
		time.Sleep(time.Second)
		require.NoError(t, all[3-winner].holds().Release())
	})
}

func TestSameSessionWaitersEndWithTheSession(t *testing.T) {
	inQueue(t, func(t *testing.T, c *counter) {
		all := c.enter(c.mine, 5)
		require.Equal(t, 4, c.sameSessionWaiters(), "all but the holder")
		for _, s := range c.srv.Sessions() {
			require.NoError(t, s.Expire())
		}
		time.Sleep(5 * time.Second)
		require.ErrorIs(t, all[0].hold.Err(), framework.ErrSessionLost)
		for left := all[1:]; len(left) > 0; time.Sleep(time.Second) {
			var done []*waiter
			left = slices.DeleteFunc(left, func(w *waiter) bool {
				if !w.waits() && w.hold.Err() == nil { // otherwise it was granted and lost together with the session
					done = append(done, w)
				}
				return !w.waits()
			})
			require.LessOrEqual(t, len(done), 1, "two waiters hold the lock")
			for _, w := range done {
				require.NoError(t, w.hold.Release())
			}
			require.LessOrEqual(t, c.sameSessionWaiters(), len(left)+1)
		}
	})
}

// byTurns checks that the waiters hold one after the other in their order.
func (c *counter) byTurns(all []*waiter) {
	c.t.Helper()
	for i, w := range all {
		hold := w.holds()
		for _, behind := range all[i+1:] {
			require.True(c.t, behind.waits(), "two waiters hold the lock")
		}
		require.NoError(c.t, hold.Release())
		time.Sleep(time.Second)
	}
}

func TestSameSessionWaitersAreOfOneSession(t *testing.T) {
	inQueue(t, func(t *testing.T, c *counter) {
		twin := c.of("twin") // another client of the same program
		c.byTurns(slices.Concat(c.enter(c.mine, 2), c.enter(twin, 2), c.enter(c.mine, 2)))
	})
}

// Nodes of another kind have numbers from the same counter. The two kinds do not wait for each
// other.
func TestSameSessionWaitersAreOfOneKind(t *testing.T) {
	inQueue(t, func(t *testing.T, c *counter) {
		client := testzk.Connected(t, c.srv.MemAddr(), framework.WithDialer(c.srv.Client("both").DialContext))
		locks, err := mutex.New(client, "/lock")
		require.NoError(t, err)
		rules := queue.Rules{Kind: "latch-", Conflicting: []string{"latch-"}}
		others := queue.Single(client, "other", "/lock", rules, nil)
		first, second := c.enter(locks, 2), make(chan error, 1)
		other, err := others.Acquire(t.Context(), waits)
		require.NoError(t, err)
		go func() {
			hold, err := others.Acquire(context.Background(), waits)
			if err == nil {
				err = hold.Release()
			}
			second <- err
		}()
		settle()
		more := c.enter(locks, 1)
		require.NoError(t, other.Release())
		settle()
		require.NoError(t, <-second)
		c.byTurns(append(first, more...))
	})
}

// A node made by hand has the number of another node.
func TestWaiterWaitsForANodeWithTheNumberOfItsPredecessor(t *testing.T) {
	inQueue(t, func(t *testing.T, c *counter) {
		const beside = "/lock/A-lock-0000000002"
		all := c.enter(c.mine, 2)
		require.NoError(t, c.srv.Create(beside, nil))
		c.enter(c.mine, 1)[0].cancel() // so that the next waiter reads the queue
		settle()
		last := c.enter(c.mine, 1)[0]
		c.byTurns(all)
		require.True(t, last.waits())
		require.NoError(t, c.srv.Delete(beside))
		settle()
		c.byTurns([]*waiter{last})
	})
}
