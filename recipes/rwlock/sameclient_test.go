package rwlock_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/rwlock"
	"github.com/docent-zk/docent/zktest/fault"
)

// lists returns how many lists the counted client has requested.
func (d *requestFixture) lists() int {
	return d.srv.Client("counted").Requests()[fault.OpGetChildren2]
}

// The servers send as many bytes for a list as nodes are in the queue. With a list at each hand-over
// the bytes would grow with the square of the number of writers.
func TestWritersOfOneClientHandTheLockOverWithoutLists(t *testing.T) {
	const writers, most = 300, 20
	withRequests(t, func(t *testing.T, d *requestFixture, other *rwlock.RWLock) {
		written := acquire(t, other.Write())
		before := d.lists()
		var all []*testlock.Attempt
		for range writers {
			all = append(all, testlock.Start(t, d.rw.Write().Acquire))
		}
		queuedWriters := participants(t, other.Write())
		for len(queuedWriters) <= writers {
			testlock.Settle()
			queuedWriters = participants(t, other.Write())
		}
		testlock.Settle()
		require.LessOrEqual(t, d.lists()-before, most, "to get in line")
		before = d.lists()
		release(t, written)
		for range all {
			testlock.Settle()
			all = releaseOnly(t, all)
		}
		require.LessOrEqual(t, d.lists()-before, most, "to hand the lock over")
	})
}

// releaseOnly releases the lock of the only attempt that has it, and returns the others.
func releaseOnly(t *testing.T, all []*testlock.Attempt) (waiting []*testlock.Attempt) {
	t.Helper()
	var holding []*testlock.Attempt
	for _, a := range all {
		if a.Waiting() {
			waiting = append(waiting, a)
		} else {
			holding = append(holding, a)
		}
	}
	require.Equal(t, 1, len(holding), "one writer holds at a time")
	release(t, holding[0].Won(t))
	return waiting
}

func TestWriterOfTheSameClientIsWokenByTheEventAlone(t *testing.T) {
	withRequests(t, func(t *testing.T, d *requestFixture, other *rwlock.RWLock) {
		written := acquire(t, other.Write())
		first := enter(t, d.rw.Write())
		testlock.Settle()
		d.asked()
		second := testlock.Start(t, d.rw.Write().Acquire)
		testlock.Settle()
		require.Equal(t, "create getData", d.asked(), "its node and a watch on it")
		release(t, written)
		release(t, first.Won(t))
		d.asked()
		release(t, second.Won(t))
		require.Equal(t, "delete", d.asked())
	})
}

// The writer ahead leaves a node at its position, of which its deletion tells nothing. The waiter
// behind it must list the queue, and wait for that node.
func TestWriterOfTheSameClientWaitsForADowngradedHold(t *testing.T) {
	for name, before := range map[string]bool{"queued before the downgrade": true, "queued after it": false} {
		t.Run(name, func(t *testing.T) {
			withRequests(t, func(t *testing.T, d *requestFixture, other *rwlock.RWLock) {
				ahead := acquire(t, other.Write())
				first := enter(t, d.rw.Write())
				testlock.Settle()
				release(t, ahead)
				written := first.Won(t)
				var second *testlock.Attempt
				if before {
					second = enter(t, d.rw.Write())
					testlock.Settle()
				}
				reading := downgrade(t, d.rw, written)
				if !before {
					second = enter(t, d.rw.Write())
					testlock.Settle()
				}
				third := enter(t, d.rw.Write())
				release(t, written)
				testlock.Settle()
				require.True(t, second.Waiting() && third.Waiting(), "a writer holds beside a reader")
				release(t, reading)
				next := second.Won(t)
				testlock.Settle()
				require.True(t, third.Waiting(), "two writers hold")
				release(t, next)
				release(t, third.Won(t))
			})
		})
	}
}

// A revoked node fires its watch, and the waiter is not registered any more when its hold is
// downgraded.
func TestWriterOfTheSameClientWaitsForADowngradedHoldThatWasRevoked(t *testing.T) {
	withRequests(t, func(t *testing.T, d *requestFixture, other *rwlock.RWLock) {
		ahead := acquire(t, other.Write())
		first := enter(t, d.rw.Write())
		testlock.Settle()
		second := enter(t, d.rw.Write())
		testlock.Settle()
		release(t, ahead)
		written := first.Won(t)
		require.NoError(t, d.srv.Set(written.Path(), []byte("x")))
		testlock.Settle()
		reading := downgrade(t, d.rw, written)
		release(t, written)
		testlock.Settle()
		require.True(t, second.Waiting(), "a writer holds beside a reader")
		release(t, reading)
		release(t, second.Won(t))
	})
}

// A hold is downgraded, upgraded and downgraded again. Each time another node takes the position.
func TestWriterOfTheSameClientWaitsForAllHoldsAtThePositionAhead(t *testing.T) {
	withRequests(t, func(t *testing.T, d *requestFixture, other *rwlock.RWLock) {
		ahead := acquire(t, other.Read())
		first := enter(t, d.rw.Write())
		testlock.Settle()
		second := enter(t, d.rw.Write())
		testlock.Settle()
		release(t, ahead)
		written := first.Won(t)
		for range 3 {
			reading := downgrade(t, d.rw, written)
			release(t, written)
			testlock.Settle()
			require.True(t, second.Waiting(), "a writer holds beside a reader")
			written = upgrade(t, d.rw, reading)
			release(t, reading)
			testlock.Settle()
			require.True(t, second.Waiting(), "two writers hold")
		}
		release(t, written)
		release(t, second.Won(t))
	})
}

// The write hold is released while the transaction of the downgrade is under way.
func TestWriterOfTheSameClientWaitsForADowngradeUnderWay(t *testing.T) {
	withRequests(t, func(t *testing.T, d *requestFixture, other *rwlock.RWLock) {
		ahead := acquire(t, other.Write())
		first := enter(t, d.rw.Write())
		testlock.Settle()
		second := enter(t, d.rw.Write())
		testlock.Settle()
		release(t, ahead)
		written := first.Won(t)
		downgrade := d.srv.On(fault.Match{Client: "counted", Op: fault.OpMulti}, fault.Hold())
		inside := context.WithoutCancel(written.Context(testzk.Context(t)))
		reader := testlock.StartUnder(t, inside, d.rw.Read().Acquire)
		require.NoError(t, downgrade.Wait(t.Context()))
		released := make(chan error, 1)
		go func() { released <- written.Release() }()
		testlock.Settle()
		downgrade.Release()
		require.NoError(t, <-released)
		reading := reader.Won(t)
		testlock.Settle()
		require.True(t, second.Waiting(), "a writer holds beside a reader")
		release(t, reading)
		release(t, second.Won(t))
	})
}

// When a session ends, the servers report the deletion of each of its nodes before they close the
// connection. So the event of a deletion that the client has not asked for does not grant the lock: the
// client does not know yet that the hold of that node has ended.
func TestWriterOfTheSameClientAsksAfterADeletionThatTheClientDidNotAskFor(t *testing.T) {
	withRequests(t, func(t *testing.T, d *requestFixture, other *rwlock.RWLock) {
		ahead := acquire(t, other.Write())
		first := enter(t, d.rw.Write())
		testlock.Settle()
		second := enter(t, d.rw.Write())
		testlock.Settle()
		release(t, ahead)
		written := first.Won(t)
		counted := d.srv.Client("counted")
		counted.CutRequests() // the event arrives, and no answer does
		require.NoError(t, d.srv.Delete(written.Path()))
		testlock.Settle()
		require.NoError(t, written.Err(), "the client cannot know")
		require.True(t, second.Waiting(), "two writers of one client hold")
		counted.Heal()
		next := second.Won(t)
		<-written.Done() // by a read of its own, which may be answered later
		release(t, next)
	})
}

// The same for a reader, which is granted the lock by the deletion of the only writer ahead.
func TestReaderOfTheSameClientAsksAfterADeletionThatTheClientDidNotAskFor(t *testing.T) {
	withRequests(t, func(t *testing.T, d *requestFixture, _ *rwlock.RWLock) {
		written := acquire(t, d.rw.Write())
		reader := enter(t, d.rw.Read())
		testlock.Settle()
		counted := d.srv.Client("counted")
		counted.CutRequests()
		require.NoError(t, d.srv.Delete(written.Path()))
		testlock.Settle()
		require.NoError(t, written.Err(), "the client cannot know")
		require.True(t, reader.Waiting(), "a reader holds beside a writer")
		counted.Heal()
		read := reader.Won(t)
		<-written.Done()
		release(t, read)
	})
}
