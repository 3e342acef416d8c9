package rwlock_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/rwlock"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

func TestBothSidesReenter(t *testing.T) {
	sides := map[string]func(*rwlock.RWLock) *rwlock.Side{
		"read": (*rwlock.RWLock).Read, "write": (*rwlock.RWLock).Write,
	}
	for name, side := range sides {
		t.Run(name, func(t *testing.T) {
			anywhere(t, func(t *testing.T, in env) {
				c, other := in.client(t), in.lock(t)
				outer := acquire(t, side(newLock(t, c, in.path)))
				writer := enter(t, other.Write()) // it waits for all reentrant holds
				ctx := outer.Context(testzk.Context(t))
				inner := under(t, ctx, side(newLock(t, c, in.path))) // another value of the same lock
				last, err := side(newLock(t, c, in.path)).TryAcquire(inner.Context(ctx))
				require.NoError(t, err)
				require.Equal(t, outer.Path(), last.Path())
				require.Equal(t, outer.Token(), last.Token())
				release(t, outer, last)
				in.waits(t, writer)
				release(t, inner)
				release(t, writer.Won(t))
			})
		})
	}
}

func TestReentryOnBothSidesOfADowngrade(t *testing.T) {
	anywhere(t, func(t *testing.T, in env) {
		rw := in.lock(t)
		written := acquire(t, rw.Write())
		reading := downgrade(t, rw, written)
		both := reading.Context(written.Context(testzk.Context(t)))
		for _, side := range []*rwlock.Side{rw.Read(), rw.Write()} {
			inner := under(t, both, side)
			require.Equal(t, written.Token(), inner.Token())
			release(t, inner)
		}
		queued(t, rw.Read(), 1)
		queued(t, rw.Write(), 1)
		release(t, written)
		_, err := rw.Write().Acquire(reading.Context(testzk.Context(t)))
		require.ErrorIs(t, err, rwlock.ErrUpgrade, "it is a read hold only")
		release(t, reading)
		empty(t, rw)
	})
}

// Curator: testThatDowngradingRespectsThreads. Here contexts and clients take the place of threads.
func TestOnlyTheHolderOfTheWriteSideReadsUnderIt(t *testing.T) {
	anywhere(t, func(t *testing.T, in env) {
		c := in.client(t)
		rw, other := newLock(t, c, in.path), in.lock(t)
		written := acquire(t, rw.Write())
		inside := written.Context(testzk.Context(t))
		busy(t, rw.Read())
		_, err := other.Read().TryAcquire(inside)
		require.ErrorIs(t, err, recipes.ErrNotAcquired, "another client does not downgrade")
		elsewhere := under(t, inside, newLock(t, c, in.path+"-other").Read())
		require.NotEqual(t, written.Token(), elsewhere.Token())
		reading, err := newLock(t, c, in.path).Read().TryAcquire(inside)
		require.NoError(t, err)
		require.Equal(t, written.Token(), reading.Token())
		release(t, elsewhere, reading, written)
	})
}

// Curator: testContendingDowngrading, CURATOR-276, CURATOR-621. The other waiters queue before or
// after the downgrade.
func TestDowngradeKeepsItsPositionAheadOfWriters(t *testing.T) {
	for name, early := range map[string]bool{"queued before": true, "queued after": false} {
		t.Run(name, func(t *testing.T) {
			anywhere(t, func(t *testing.T, in env) {
				rw, other := in.lock(t), in.lock(t)
				written := acquire(t, rw.Write())
				var reading *recipes.Hold
				if !early {
					reading = downgrade(t, rw, written)
				}
				before, writer, after := enter(t, other.Read()), enter(t, other.Write()), enter(t, other.Read())
				if early {
					reading = downgrade(t, rw, written)
				}
				in.waits(t, before, writer, after)
				release(t, written)
				release(t, before.Won(t)) // readers share
				in.waits(t, writer, after)
				release(t, reading)
				second := writer.Won(t)
				require.Greater(t, second.Token(), reading.Token())
				in.waits(t, after)
				release(t, second)
				release(t, after.Won(t))
				empty(t, rw)
			})
		})
	}
}

// Curator: testDowngrading, with the release of either hold first.
func TestReleaseOfTheReadHoldLeavesTheWriteHold(t *testing.T) {
	anywhere(t, func(t *testing.T, in env) {
		rw, other := in.lock(t), in.lock(t)
		written := acquire(t, rw.Write())
		reader, writer := enter(t, other.Read()), enter(t, other.Write())
		for range 2 {
			release(t, downgrade(t, rw, written))
			in.waits(t, reader, writer)
		}
		require.NoError(t, written.Err())
		release(t, written)
		release(t, reader.Won(t))
		release(t, writer.Won(t))
	})
}

// A client whose session has ended reads under a context that still has the write hold. Before the
// client knows of the end, the servers refuse. Afterwards the hold is lost, and the reader waits
// like others.
func TestStaleWriteHoldAllowsNoReadHold(t *testing.T) {
	for name, known := range map[string]bool{"known": true, "not known": false} {
		t.Run(name, func(t *testing.T) {
			sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
				in, target := on(srv), srv.Client("target")
				c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(target.DialContext))
				rw := newLock(t, c, in.path)
				stale := acquire(t, rw.Write())
				ctx := context.WithoutCancel(stale.Context(testzk.Context(t)))
				rival := enter(t, in.lock(t).Write())
				target.CutReplies()
				for _, s := range target.Sessions() {
					require.NoError(t, s.Expire())
				}
				present := rival.Won(t)
				if known {
					target.Heal()
					<-stale.Done()
					require.NoError(t, c.WaitConnected(testzk.Context(t)))
					short, cancel := context.WithTimeout(ctx, time.Second)
					defer cancel()
					_, err := rw.Read().Acquire(short)
					require.ErrorIs(t, err, recipes.ErrNotAcquired)
					_, err = rw.Read().TryAcquire(ctx)
					require.ErrorIs(t, err, recipes.ErrNotAcquired)
				} else {
					require.NoError(t, stale.Err(), "the client cannot know it")
					time.AfterFunc(100*time.Millisecond, target.Heal)
					_, err := rw.Read().Acquire(ctx)
					require.ErrorIs(t, err, framework.ErrSessionLost)
				}
				require.ErrorIs(t, stale.Release(), framework.ErrSessionLost)
				require.NoError(t, present.Err())
				require.Empty(t, participants(t, rw.Read()))
				release(t, present)
			})
		})
	}
}

// Curator: testLockPath.
func TestReaderIsGrantedWhenTheWritersSessionEnds(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		in := on(srv)
		c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client("target").DialContext))
		lost := acquire(t, newLock(t, c, in.path).Write())
		reader := enter(t, in.lock(t).Read())
		require.NoError(t, srv.Client("target").Sessions()[0].Expire())
		reading := reader.Won(t)
		require.False(t, srv.Exists(lost.Path()))
		<-lost.Done()
		require.ErrorIs(t, lost.Release(), framework.ErrSessionLost)
		require.Greater(t, reading.Token(), lost.Token())
		release(t, reading)
	})
}

func TestWriteHoldOfADeletedNodeAllowsNoReadHold(t *testing.T) {
	anywhere(t, func(t *testing.T, in env) {
		c := in.client(t)
		rw := newLock(t, c, in.path)
		lost := acquire(t, rw.Write())
		ctx := context.WithoutCancel(lost.Context(testzk.Context(t)))
		require.NoError(t, c.Delete(testzk.Context(t), lost.Path(), -1))
		// Before the watch has fired, the downgrade is refused. Afterwards this is an ordinary
		// reader.
		if reading, err := rw.Read().Acquire(ctx); err != nil {
			require.ErrorIs(t, err, recipes.ErrNodeDeleted)
		} else {
			require.Greater(t, reading.Token(), lost.Token())
			release(t, reading)
		}
		require.ErrorIs(t, lost.Release(), recipes.ErrNodeDeleted)
		empty(t, rw)
	})
}
