package rwlock_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/rwlock"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// desk counts what one client asks for, on a server where nothing else takes time: no hold lasts until its node is watched.
type desk struct {
	t    *testing.T
	srv  *zktest.Server
	rw   *rwlock.RWLock // of the client that is watched
	read int            // how much of the trace
}

// atDesk runs a test with a lock whose parent is there, and known, and another one.
func atDesk(t *testing.T, test func(t *testing.T, d *desk, other *rwlock.RWLock)) {
	t.Helper()
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		in := on(srv)
		c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client("me").DialContext))
		d := &desk{t: t, srv: srv, rw: newLock(t, c, in.path)}
		for _, side := range []*rwlock.Side{d.rw.Read(), d.rw.Write()} {
			release(t, acquire(t, side))
		}
		d.asked()
		test(t, d, in.lock(t))
	})
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

// settle waits until everything under way has come to an end.
func settle() {
	time.Sleep(20 * time.Millisecond) // in virtual time
	synctest.Wait()
}

func TestAloneEachSideIsOneRoundTripAndOneToRelease(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk, _ *rwlock.RWLock) {
		for _, side := range []*rwlock.Side{d.rw.Read(), d.rw.Write()} {
			hold := acquire(t, side)
			require.Equal(t, "create getChildren2", d.asked())
			release(t, hold)
			require.Equal(t, "delete", d.asked())
		}
	})
}

func TestReaderAmongReadersTakesNoMore(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk, other *rwlock.RWLock) {
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
	atDesk(t, func(t *testing.T, d *desk, _ *rwlock.RWLock) {
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

func TestWhatCannotBeIsOneReadAtMost(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk, other *rwlock.RWLock) {
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

// Curator: testThatUpgradingIsDisallowed, where it waits.
func TestWriteUnderReadFailsAtOnceAndAsksNobody(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk, _ *rwlock.RWLock) {
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

func TestWaiterTakesTwoWatchedReadsAndAList(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk, other *rwlock.RWLock) {
		for name, side := range map[string]*rwlock.Side{"a reader is ahead": other.Read(), "a writer is ahead": other.Write()} {
			ahead := acquire(t, side)
			d.asked()
			writer := start(t, d.rw.Write())
			settle()
			require.Equal(t, "create getChildren2 getData getData", d.asked(), name)
			release(t, ahead)
			written := writer.won(t)
			require.Equal(t, "getChildren2", d.asked(), name)
			release(t, written)
		}
	})
}

func TestWriterIsWokenByTheNearestAheadAlone(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk, other *rwlock.RWLock) {
		first := acquire(t, other.Read())
		ahead := enter(t, other.Write())
		writer := enter(t, d.rw.Write())
		settle()
		d.asked()
		release(t, first)
		written := ahead.won(t)
		settle()
		require.Empty(t, d.asked())
		release(t, written)
		release(t, writer.won(t))
		require.Equal(t, "getChildren2 delete", d.asked())
	})
}

// What r readers wait for who are let in by the release of the writer that was first, Curator's read lists for, each of them.
func TestReadersComeInByTheEventOfTheFirstWriterAlone(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk, other *rwlock.RWLock) {
		const readers = 5
		written := acquire(t, other.Write())
		var all []*attempt
		for range readers {
			all = append(all, enter(t, d.rw.Read()))
			settle()
		}
		d.asked()
		release(t, written)
		for _, a := range all {
			a.won(t)
		}
		require.Empty(t, d.asked())
	})
}

func TestReaderListsOnceForEachWriterThatWasNotFirst(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk, other *rwlock.RWLock) {
		first := acquire(t, other.Read())
		w1, w2 := enter(t, other.Write()), enter(t, other.Write())
		d.asked()
		reader := start(t, d.rw.Read())
		settle()
		require.Equal(t, "create getChildren2 getData getData", d.asked())
		release(t, first)
		release(t, w1.won(t))
		written := w2.won(t)
		settle()
		require.Equal(t, "getChildren2 getData", d.asked())
		release(t, written)
		reading := reader.won(t)
		require.Empty(t, d.asked(), "the second writer was first in line when it was seen")
		release(t, reading)
	})
}

func TestReaderListsWhenItsPlaceMayHaveBeenTaken(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk, other *rwlock.RWLock) {
		first := acquire(t, other.Read())
		writer := enter(t, other.Write())
		d.asked()
		reader := start(t, d.rw.Read())
		settle()
		writer.givesUp(t)
		reading := reader.won(t)
		require.Equal(t, "create getChildren2 getData getData getChildren2", d.asked())
		release(t, reading, first)
	})
}
