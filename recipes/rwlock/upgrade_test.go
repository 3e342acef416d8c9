package rwlock_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/rwlock"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// crowded checks that the upgrade of a read hold is refused and leaves the hold valid.
func crowded(t testing.TB, rw *rwlock.RWLock, reading *recipes.Hold) {
	t.Helper()
	hold, err := rw.TryUpgrade(reading.Context(testzk.Context(t)))
	require.ErrorIs(t, err, rwlock.ErrUpgrade)
	require.NotErrorIs(t, err, recipes.ErrNotAcquired)
	require.Nil(t, hold)
	require.NoError(t, reading.Err())
}

// Waiters behind two holds at one position wait for both, in whatever order these are released. The
// hold that is released last keeps the position.
func TestOnlyReaderWritesAheadOfAllWaiters(t *testing.T) {
	for _, behind := range []string{"", "w", "wr", "wrw", "wwrr"} {
		orders := map[string]bool{"the read hold is released first": true, "the write hold is released first": false}
		for name, readFirst := range orders {
			t.Run(behind+", "+name, func(t *testing.T) {
				anywhere(t, func(t *testing.T, in env) {
					rw, theirs := in.lock(t), in.lock(t)
					reading := acquire(t, rw.Read())
					waiters := crowd(t, theirs, behind)
					written := upgrade(t, rw, reading)
					require.Equal(t, reading.Token(), written.Token())
					busy(t, theirs.Read())
					waiters = append(waiters, crowd(t, theirs, "rw")...)
					waitAll(t, in, waiters)
					if readFirst {
						release(t, reading)
						waitAll(t, in, waiters)
						release(t, written)
						serve(t, in, waiters)
					} else {
						release(t, written)
						if behind == "" {
							release(t, waiters[0].Won(t)) // it shares, because no writer is ahead
							waiters = waiters[1:]
						}
						waitAll(t, in, waiters)
						release(t, reading)
						serve(t, in, waiters)
					}
					empty(t, rw)
				})
			})
		}
	}
}

func TestOtherReaderPreventsAnUpgrade(t *testing.T) {
	anywhere(t, func(t *testing.T, in env) {
		rw, theirs := in.lock(t), in.lock(t)
		early := acquire(t, theirs.Read())
		reading := acquire(t, rw.Read())
		late := acquire(t, theirs.Read())
		writer := enter(t, theirs.Write())
		for _, h := range []*recipes.Hold{early, late} {
			crowded(t, rw, reading)
			queued(t, rw.Write(), 1) // only the writer is left
			release(t, h)
		}
		queued(t, rw.Read(), 1) // a server may be behind
		written := upgrade(t, rw, reading)
		in.waits(t, writer)
		release(t, written, reading)
		release(t, writer.Won(t))
	})
}

// Waiters behind writers that give up must wait for the upgraded hold.
func TestWaitersBehindWritersThatGiveUpWaitForAnUpgrade(t *testing.T) {
	anywhere(t, func(t *testing.T, in env) {
		rw, theirs := in.lock(t), in.lock(t)
		reading := acquire(t, rw.Read())
		w1, r1 := enter(t, theirs.Write()), enter(t, theirs.Read())
		w2, r2 := enter(t, theirs.Write()), enter(t, theirs.Read())
		written := upgrade(t, rw, reading)
		w1.GivesUp(t)
		in.waits(t, r1, w2, r2)
		release(t, reading)
		w2.GivesUp(t)
		in.waits(t, r1, r2)
		release(t, written)
		release(t, r1.Won(t), r2.Won(t))
		empty(t, rw)
	})
}

// Without the writer between them, two readers hold the lock.
func TestReaderAboutToBeGrantedPreventsAnUpgrade(t *testing.T) {
	anywhere(t, func(t *testing.T, in env) {
		rw, theirs := in.lock(t), in.lock(t)
		reading := acquire(t, rw.Read())
		w, r := enter(t, theirs.Write()), enter(t, theirs.Read())
		w.GivesUp(t)
		queued(t, rw.Write(), 0) // its node is deleted in the background
		crowded(t, rw, reading)
		release(t, r.Won(t))
		queued(t, rw.Read(), 1) // a server may be behind
		release(t, upgrade(t, rw, reading), reading)
	})
}

// A downgrade, an upgrade and another downgrade keep the position. No other client gets the lock
// between them.
func TestUpgradesAndDowngradesInARowKeepTheirPosition(t *testing.T) {
	anywhere(t, func(t *testing.T, in env) {
		rw, theirs := in.lock(t), in.lock(t)
		written := acquire(t, rw.Write())
		token := written.Token()
		w, r := enter(t, theirs.Write()), enter(t, theirs.Read())
		for range 3 {
			reading := downgrade(t, rw, written)
			crowded(t, rw, reading) // its context does not have the write hold at the same position
			require.NoError(t, written.Err())
			release(t, written)
			in.waits(t, w, r)
			written = upgrade(t, rw, reading)
			require.Equal(t, token, written.Token())
			require.Equal(t, digits(reading.Path()), digits(written.Path()))
			release(t, reading)
			in.waits(t, w, r)
		}
		release(t, written)
		second := w.Won(t)
		require.Greater(t, second.Token(), token)
		release(t, second)
		release(t, r.Won(t))
	})
}

func TestUpgradeUnderAWriteHoldReentersIt(t *testing.T) {
	anywhere(t, func(t *testing.T, in env) {
		rw := in.lock(t)
		written := acquire(t, rw.Write())
		inner := upgrade(t, rw, written)
		require.Equal(t, written.Path(), inner.Path())
		release(t, written)
		queued(t, rw.Write(), 1)
		release(t, inner)

		reading := acquire(t, rw.Read())
		upgraded := upgrade(t, rw, reading)
		reentrant := under(t, upgraded.Context(testzk.Context(t)), rw.Write())
		require.Equal(t, upgraded.Path(), reentrant.Path())
		release(t, upgraded, reading, reentrant)
		empty(t, rw)
	})
}

func TestUpgradeNeedsAValidReadHold(t *testing.T) {
	anywhere(t, func(t *testing.T, in env) {
		c := in.client(t)
		rw, theirs := newLock(t, c, in.path), in.lock(t)
		ctx := testzk.Context(t)
		_, err := rw.TryUpgrade(ctx)
		require.ErrorIs(t, err, recipes.ErrNotHeld, "no lock is held")
		reading := acquire(t, rw.Read())
		inside := context.WithoutCancel(reading.Context(ctx))
		_, err = theirs.TryUpgrade(inside)
		require.ErrorIs(t, err, recipes.ErrNotHeld, "another client does not upgrade")
		_, err = newLock(t, c, in.path+"-other").TryUpgrade(inside)
		require.ErrorIs(t, err, recipes.ErrNotHeld)
		release(t, upgrade(t, newLock(t, c, in.path), reading), reading)
		_, err = rw.TryUpgrade(inside)
		require.ErrorIs(t, err, recipes.ErrNotHeld, "the hold was released")
		empty(t, rw)
	})
}

func TestUpgradeOfAReadHoldWithADeletedNodeFails(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		in := on(srv)
		rw := in.lock(t)
		reading := acquire(t, rw.Read())
		ctx := context.WithoutCancel(reading.Context(testzk.Context(t)))
		require.NoError(t, srv.Delete(reading.Path())) // it is not watched yet
		_, err := rw.TryUpgrade(ctx)
		require.ErrorIs(t, err, recipes.ErrNodeDeleted)
		require.ErrorIs(t, reading.Err(), recipes.ErrNodeDeleted)
		empty(t, rw)
	})
}

func TestUpgradeOfAReadHoldOfAnEndedSessionFails(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		in := on(srv)
		c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client("target").DialContext))
		rw := newLock(t, c, in.path)
		reading := acquire(t, rw.Read())
		ctx := context.WithoutCancel(reading.Context(testzk.Context(t)))
		require.NoError(t, srv.Client("target").Sessions()[0].Expire())
		require.NoError(t, reading.Err(), "the client cannot know it yet")
		_, err := rw.TryUpgrade(ctx)
		require.ErrorIs(t, err, framework.ErrSessionLost)
		require.ErrorIs(t, reading.Err(), framework.ErrSessionLost)
		empty(t, rw)
	})
}
