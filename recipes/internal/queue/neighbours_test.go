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

// counter is where the clients of one server stand in line.
type counter struct {
	t    *testing.T
	srv  *zktest.Server
	mine *mutex.Mutex // of the client whose requests are counted
	read int          // how much of the trace
}

// inLine runs a test at the end of which nobody may be in line, or remembered.
func inLine(t *testing.T, test func(t *testing.T, c *counter)) {
	t.Helper()
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		c := &counter{t: t, srv: srv}
		c.mine = c.of("me")
		hold, err := c.mine.Acquire(t.Context())
		require.NoError(t, err)
		require.NoError(t, hold.Release())
		c.asked()
		test(t, c)
		settle()
		require.Equal(t, "/lock container\n", srv.Tree())
		require.Zero(t, queue.Neighbours(), "places that are gone are known")
	})
}

func (c *counter) of(client string) *mutex.Mutex {
	c.t.Helper()
	mu, err := mutex.New(testzk.Connected(c.t, c.srv.MemAddr(), framework.WithDialer(c.srv.Client(client).DialContext)), "/lock")
	require.NoError(c.t, err)
	return mu
}

// asked is what the client has asked for since the last call, but for signs of life, and looks at what it holds.
func (c *counter) asked() string {
	var all []string
	entries := c.srv.Trace().Entries
	for _, e := range entries[c.read:] {
		if e.Client == "me" && e.What != "event" && e.What != "sync" {
			all = append(all, e.What)
		}
	}
	c.read = len(entries)
	return strings.Join(all, " ")
}

// settle waits until everything under way has come to an end.
func settle() {
	time.Sleep(20 * time.Millisecond)
	synctest.Wait()
}

// waiter is an Acquire that runs.
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

// enter lets n of a lock get in line, one after another.
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

// holds is the hold of one to whom the lock has come.
func (w *waiter) holds() *recipes.Hold {
	w.t.Helper()
	require.False(w.t, w.waits())
	require.NoError(w.t, w.err)
	require.NoError(w.t, w.hold.Err())
	return w.hold
}

// inTurn checks that the waiters hold one after the other, in their order, and that one who leaves makes no other requests of the client than
// wanted.
func (c *counter) inTurn(all []*waiter, wanted string) {
	c.t.Helper()
	for i, w := range all {
		hold := w.holds()
		for _, behind := range all[i+1:] {
			require.True(c.t, behind.waits(), "two hold")
		}
		c.asked()
		require.NoError(c.t, hold.Release())
		settle()
		require.Equal(c.t, wanted, c.asked(), "at hand-over %d", i)
	}
}

func TestLineOfOneClientIsHandedOnByTheDeletionAlone(t *testing.T) {
	inLine(t, func(t *testing.T, c *counter) {
		const waiters = 300
		before := runtime.NumGoroutine()
		all := c.enter(c.mine, 1)
		require.Equal(t, "create getChildren2", c.asked())
		all = append(all, c.enter(c.mine, 1)...)
		c.asked()
		for range waiters - 2 {
			all = append(all, c.enter(c.mine, 1)...)
			require.Regexp(t, `^create getData( getData)?$`, c.asked(), "its place, and a watch on it; once the holder's")
		}
		require.LessOrEqual(t, runtime.NumGoroutine()-before, waiters, "goroutines beyond the callers")
		c.inTurn(all, "delete")
	})
}

func TestLineThatWasFilledAtOnceIsHandedOnByTheDeletionAlone(t *testing.T) {
	inLine(t, func(t *testing.T, c *counter) {
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

func TestWhoeverIsBehindOneThatGivesUpReadsTheLine(t *testing.T) {
	inLine(t, func(t *testing.T, c *counter) {
		all := c.enter(c.mine, 6)
		c.asked()
		all[3].cancel()
		settle()
		require.Equal(t, "delete getChildren2", c.asked())
		c.inTurn(slices.Delete(all, 3, 4), "delete")
	})
}

func TestWhoeverIsBehindOneThatIsDeletedIsNotGranted(t *testing.T) {
	for _, victim := range []int{1, 3} { // the next to be granted, and one further behind
		inLine(t, func(t *testing.T, c *counter) {
			all := c.enter(c.mine, 6)
			line, err := c.mine.Participants(t.Context())
			require.NoError(t, err)
			require.NoError(t, c.srv.Delete(line[victim].Node))
			settle()
			requeued := all[victim]
			c.inTurn(append(slices.Delete(all, victim, victim+1), requeued), "delete")
		})
	}
}

func TestForeignNodeBetweenIsWaitedFor(t *testing.T) {
	inLine(t, func(t *testing.T, c *counter) {
		other := c.of("other")
		all := slices.Concat(c.enter(c.mine, 2), c.enter(other, 1), c.enter(c.mine, 2), c.enter(other, 1), c.enter(c.mine, 1))
		c.byTurns(all)
	})
}

func TestNeighbourThatIsAskedForItsPlaceKeepsIt(t *testing.T) {
	inLine(t, func(t *testing.T, c *counter) {
		all := c.enter(c.mine, 5)
		line, err := c.mine.Participants(t.Context())
		require.NoError(t, err)
		require.NoError(t, c.srv.Set(line[2].Node, []byte("x")))
		settle()
		c.asked()
		c.inTurn(all, "delete")
	})
}

func TestLineOutlivesConnectionsAndIsReadThen(t *testing.T) {
	inLine(t, func(t *testing.T, c *counter) {
		all := c.enter(c.mine, 4)
		c.srv.Client("me").Drop()
		time.Sleep(time.Second)
		c.asked()
		all = append(all, c.enter(c.mine, 1)...)
		require.Equal(t, "create getChildren2 getData getData", c.asked(), "what was known of others is from before")
		all = append(all, c.enter(c.mine, 1)...)
		require.Equal(t, "create getData", c.asked(), "and is known again")
		c.byTurns(all)
	})
}

// What happened while it was away is told in no order: that the one ahead is gone does not mean that it is our turn.
func TestWhoWasAwayIsNotGrantedByANeighbour(t *testing.T) {
	inLine(t, func(t *testing.T, c *counter) {
		all := c.enter(c.mine, 3)
		rightful := c.enter(c.of("other"), 1)[0]
		line, err := c.mine.Participants(t.Context())
		require.NoError(t, err)
		me := c.srv.Client("me")
		me.Refuse(true)
		me.Drop()
		for _, p := range line[:3] {
			require.NoError(t, c.srv.Delete(p.Node))
		}
		settle()
		hold := rightful.holds()
		me.Refuse(false)
		time.Sleep(5 * time.Second)
		require.True(t, all[1].waits() && all[2].waits(), "granted while somebody else holds")
		require.ErrorIs(t, all[0].hold.Err(), recipes.ErrNodeDeleted)
		require.NoError(t, hold.Release())
		time.Sleep(time.Second)
		winner := slices.IndexFunc(all[1:], func(w *waiter) bool { return !w.waits() }) + 1
		require.NoError(t, all[winner].holds().Release())
		time.Sleep(time.Second)
		require.NoError(t, all[3-winner].holds().Release())
	})
}

func TestNeighboursEndWithTheSession(t *testing.T) {
	inLine(t, func(t *testing.T, c *counter) {
		all := c.enter(c.mine, 5)
		require.Equal(t, 4, queue.Neighbours(), "all but the holder")
		for _, s := range c.srv.Sessions() {
			require.NoError(t, s.Expire())
		}
		time.Sleep(5 * time.Second)
		require.ErrorIs(t, all[0].hold.Err(), framework.ErrSessionLost)
		for left := all[1:]; len(left) > 0; time.Sleep(time.Second) {
			var done []*waiter
			left = slices.DeleteFunc(left, func(w *waiter) bool {
				if !w.waits() && w.hold.Err() == nil { // else it was lost with the session, as soon as it was there
					done = append(done, w)
				}
				return !w.waits()
			})
			require.LessOrEqual(t, len(done), 1, "two hold")
			for _, w := range done {
				require.NoError(t, w.hold.Release())
			}
			require.LessOrEqual(t, queue.Neighbours(), len(left)+1)
		}
	})
}

// byTurns checks that the waiters hold one after the other, in their order.
func (c *counter) byTurns(all []*waiter) {
	c.t.Helper()
	for i, w := range all {
		hold := w.holds()
		for _, behind := range all[i+1:] {
			require.True(c.t, behind.waits(), "two hold")
		}
		require.NoError(c.t, hold.Release())
		time.Sleep(time.Second)
	}
}

func TestNeighboursAreOfOneSession(t *testing.T) {
	inLine(t, func(t *testing.T, c *counter) {
		twin := c.of("twin") // of the same program
		c.byTurns(slices.Concat(c.enter(c.mine, 2), c.enter(twin, 2), c.enter(c.mine, 2)))
	})
}

// Those of another kind have numbers from the same counter, and do not wait for each other.
func TestNeighboursAreOfOneKind(t *testing.T) {
	inLine(t, func(t *testing.T, c *counter) {
		client := testzk.Connected(t, c.srv.MemAddr(), framework.WithDialer(c.srv.Client("both").DialContext))
		locks, err := mutex.New(client, "/lock")
		require.NoError(t, err)
		others := queue.Single(client, "other", "/lock", queue.Rules{Name: "latch-", Block: []string{"latch-"}}, nil)
		first, second := c.enter(locks, 2), make(chan error, 1)
		other, err := others.Acquire(t.Context())
		require.NoError(t, err)
		go func() {
			hold, err := others.Acquire(context.Background())
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

// Somebody has made a node by hand, with the number of another.
func TestNodeBesideANeighbourIsWaitedForToo(t *testing.T) {
	inLine(t, func(t *testing.T, c *counter) {
		const beside = "/lock/A-lock-0000000002"
		all := c.enter(c.mine, 2)
		require.NoError(t, c.srv.Create(beside, nil))
		c.enter(c.mine, 1)[0].cancel() // so that the next one reads the line
		settle()
		last := c.enter(c.mine, 1)[0]
		c.byTurns(all)
		require.True(t, last.waits())
		require.NoError(t, c.srv.Delete(beside))
		settle()
		c.byTurns([]*waiter{last})
	})
}
