package rwlock_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/rwlock"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// requestFixture counts the requests of one client on a server of its own. Virtual time hardly
// passes, so no hold lasts until its node is watched.
type requestFixture struct {
	t    *testing.T
	srv  *zktest.Server
	rw   *rwlock.RWLock // of the counted client
	sent *testlock.Requests
}

// withRequests runs a test with the lock of the counted client and the same lock of another client.
// Its directory exists and is known.
func withRequests(t *testing.T, test func(t *testing.T, d *requestFixture, other *rwlock.RWLock)) {
	t.Helper()
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		in := on(srv)
		c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client("counted").DialContext))
		d := &requestFixture{t: t, srv: srv, rw: newLock(t, c, in.path), sent: testlock.RequestsOn(srv)}
		for _, side := range []*rwlock.Side{d.rw.Read(), d.rw.Write()} {
			release(t, acquire(t, side))
		}
		d.asked()
		test(t, d, in.lock(t))
	})
}

// asked returns the client's requests since the last call, without heartbeats.
func (d *requestFixture) asked() string { return d.sent.Of("counted") }

func TestUncontendedSideIsOneRoundTripAndOneToRelease(t *testing.T) {
	withRequests(t, func(t *testing.T, d *requestFixture, _ *rwlock.RWLock) {
		for _, side := range []*rwlock.Side{d.rw.Read(), d.rw.Write()} {
			hold := acquire(t, side)
			require.Equal(t, "create getChildren2", d.asked())
			release(t, hold)
			require.Equal(t, "delete", d.asked())
		}
	})
}

func TestReaderAmongReadersNeedsNoMoreRequests(t *testing.T) {
	withRequests(t, func(t *testing.T, d *requestFixture, other *rwlock.RWLock) {
		first := acquire(t, other.Read())
		reading := acquire(t, d.rw.Read())
		require.Equal(t, "create getChildren2", d.asked())
		release(t, reading)
		require.Equal(t, "delete", d.asked())
		release(t, first)
		release(t, acquire(t, d.rw.Read()))
		require.Equal(t, "create getChildren2 delete", d.asked())
	})
}

func TestDowngradeIsOneRequestAndUpgradeThree(t *testing.T) {
	withRequests(t, func(t *testing.T, d *requestFixture, _ *rwlock.RWLock) {
		written := acquire(t, d.rw.Write())
		d.asked()
		reading := downgrade(t, d.rw, written)
		require.Equal(t, "multi", d.asked())
		release(t, written)
		require.Equal(t, "delete", d.asked())
		again := upgrade(t, d.rw, reading)
		require.Equal(t, "getChildren2 multi getChildren2", d.asked())
		release(t, again, reading)
		require.Equal(t, "delete delete", d.asked())
	})
}

func TestRefusedAttemptIsOneReadAtMost(t *testing.T) {
	withRequests(t, func(t *testing.T, d *requestFixture, other *rwlock.RWLock) {
		first := acquire(t, other.Read())
		reading := acquire(t, d.rw.Read())
		ctx := reading.Context(testzk.Context(t))
		d.asked()
		busy(t, d.rw.Write())
		require.Equal(t, "getChildren2", d.asked())
		_, err := d.rw.TryUpgrade(ctx)
		require.ErrorIs(t, err, rwlock.ErrUpgrade)
		require.Equal(t, "getChildren2", d.asked())
		release(t, reading, first)
	})
}

// Curator: testThatUpgradingIsDisallowed. There the attempt waits.
func TestWriteUnderReadFailsWithoutARequest(t *testing.T) {
	withRequests(t, func(t *testing.T, d *requestFixture, _ *rwlock.RWLock) {
		reading := acquire(t, d.rw.Read())
		ctx := reading.Context(testzk.Context(t))
		d.asked()
		for name, acquire := range map[string]func(context.Context) (*recipes.Hold, error){
			"Acquire": d.rw.Write().Acquire, "TryAcquire": d.rw.Write().TryAcquire,
		} {
			hold, err := acquire(ctx)
			require.ErrorIs(t, err, rwlock.ErrUpgrade, name)
			require.NotErrorIs(t, err, recipes.ErrNotAcquired, name)
			require.Nil(t, hold, name)
		}
		require.Empty(t, d.asked())
		require.NoError(t, reading.Err())
		release(t, reading)
	})
}

func TestWaiterMakesTwoWatchedReadsAndAList(t *testing.T) {
	withRequests(t, func(t *testing.T, d *requestFixture, other *rwlock.RWLock) {
		sides := map[string]*rwlock.Side{"a reader is ahead": other.Read(), "a writer is ahead": other.Write()}
		for name, side := range sides {
			ahead := acquire(t, side)
			d.asked()
			writer := testlock.Start(t, d.rw.Write().Acquire)
			testlock.Settle()
			require.Equal(t, "create getChildren2 getData getData", d.asked(), name)
			release(t, ahead)
			written := writer.Won(t)
			require.Equal(t, "getChildren2", d.asked(), name)
			release(t, written)
		}
	})
}

func TestWriterIsWokenByItsPredecessorAlone(t *testing.T) {
	withRequests(t, func(t *testing.T, d *requestFixture, other *rwlock.RWLock) {
		first := acquire(t, other.Read())
		ahead := enter(t, other.Write())
		writer := enter(t, d.rw.Write())
		testlock.Settle()
		d.asked()
		release(t, first)
		written := ahead.Won(t)
		testlock.Settle()
		require.Empty(t, d.asked())
		release(t, written)
		release(t, writer.Won(t))
		require.Equal(t, "getChildren2 delete", d.asked())
	})
}

// The release of the first writer lets several readers in by its event alone. In Curator each of
// those readers lists the queue.
func TestEventOfTheFirstWriterGrantsToReaders(t *testing.T) {
	withRequests(t, func(t *testing.T, d *requestFixture, other *rwlock.RWLock) {
		const readers = 5
		written := acquire(t, other.Write())
		var all []*testlock.Attempt
		for range readers {
			all = append(all, enter(t, d.rw.Read()))
			testlock.Settle()
		}
		d.asked()
		release(t, written)
		for _, a := range all {
			a.Won(t)
		}
		require.Empty(t, d.asked())
	})
}

func TestReaderListsOnceForEachWriterThatWasNotFirst(t *testing.T) {
	withRequests(t, func(t *testing.T, d *requestFixture, other *rwlock.RWLock) {
		first := acquire(t, other.Read())
		w1, w2 := enter(t, other.Write()), enter(t, other.Write())
		d.asked()
		reader := testlock.Start(t, d.rw.Read().Acquire)
		testlock.Settle()
		require.Equal(t, "create getChildren2 getData getData", d.asked())
		release(t, first)
		release(t, w1.Won(t))
		written := w2.Won(t)
		testlock.Settle()
		require.Equal(t, "getChildren2 getData", d.asked())
		release(t, written)
		reading := reader.Won(t)
		require.Empty(t, d.asked(), "the second writer was the first node when it was listed")
		release(t, reading)
	})
}

func TestReaderListsWhenItsPredecessorMayHaveBeenReplaced(t *testing.T) {
	withRequests(t, func(t *testing.T, d *requestFixture, other *rwlock.RWLock) {
		first := acquire(t, other.Read())
		writer := enter(t, other.Write())
		d.asked()
		reader := testlock.Start(t, d.rw.Read().Acquire)
		testlock.Settle()
		writer.GivesUp(t)
		reading := reader.Won(t)
		require.Equal(t, "create getChildren2 getData getData getChildren2", d.asked())
		release(t, reading, first)
	})
}
