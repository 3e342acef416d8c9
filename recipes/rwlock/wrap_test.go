package rwlock_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/rwlock"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// lastDigits are the digits of a downgrade's or upgrade's node at the end of the counter.
const lastDigits = "2147483646"

// nearTheEnd runs a test with a directory whose next children have numbers near the end of the
// counter, or all the last number.
func nearTheEnd(t *testing.T, test func(t *testing.T, in env, rw, theirs *rwlock.RWLock)) {
	t.Helper()
	for name, next := range map[string]int32{
		"before the end": math.MaxInt32 - 3, "last but one": math.MaxInt32 - 1, "at the end": math.MaxInt32,
	} {
		t.Run(name, func(t *testing.T) {
			sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
				in := on(srv)
				require.NoError(t, srv.Create(in.path, nil))
				require.NoError(t, srv.SetSequence(in.path, next))
				test(t, in, in.lock(t), in.lock(t))
			})
		})
	}
}

func TestExclusionAndOrderAtTheEndOfTheCounter(t *testing.T) {
	nearTheEnd(t, func(t *testing.T, in env, rw, theirs *rwlock.RWLock) {
		written := acquire(t, rw.Write())
		waiters := crowd(t, theirs, "rrwrwwr")
		busy(t, theirs.Read())
		waitAll(t, in, waiters)
		release(t, written)
		r1, r2 := waiters[0].Won(t), waiters[1].Won(t)
		busy(t, theirs.Write())
		busy(t, theirs.Read())
		waitAll(t, in, waiters[2:])
		release(t, r2)
		waitAll(t, in, waiters[2:])
		release(t, r1)
		token := written.Token()
		for i, o := range waiters[2:] {
			hold := o.Won(t)
			require.Greater(t, hold.Token(), token)
			token = hold.Token()
			waitAll(t, in, waiters[2+i+1:])
			release(t, hold)
		}
		empty(t, rw)
	})
}

func TestDowngradeKeepsItsPositionAtTheEndOfTheCounter(t *testing.T) {
	nearTheEnd(t, func(t *testing.T, in env, rw, theirs *rwlock.RWLock) {
		for range 3 { // each time nearer to the end
			written := acquire(t, rw.Write())
			waiters := crowd(t, theirs, "rwr")
			reading := downgrade(t, rw, written)
			require.Equal(t, written.Token(), reading.Token())
			require.Equal(t, beside(written.Path()), digits(reading.Path()))
			waitAll(t, in, waiters)
			release(t, written)
			release(t, waiters[0].Won(t))
			waitAll(t, in, waiters[1:])
			release(t, reading)
			serve(t, in, waiters[1:])
		}
	})
}

// beside returns the digits of a second node at the position of node.
func beside(node string) string {
	if d := digits(node); d < "2147483647" && d[0] != '-' {
		return d
	}
	return lastDigits
}

func TestUpgradeKeepsItsPositionAtTheEndOfTheCounter(t *testing.T) {
	nearTheEnd(t, func(t *testing.T, in env, rw, theirs *rwlock.RWLock) {
		for range 3 { // each time nearer to the end
			reading := acquire(t, rw.Read())
			waiters := crowd(t, theirs, "w")
			written := upgrade(t, rw, reading)
			require.Equal(t, reading.Token(), written.Token())
			require.Equal(t, beside(reading.Path()), digits(written.Path()))
			waiters = append(waiters, crowd(t, theirs, "rw")...)
			waitAll(t, in, waiters)
			release(t, reading)
			waitAll(t, in, waiters)
			again := downgrade(t, rw, written)
			release(t, written)
			waitAll(t, in, waiters)
			release(t, again)
			serve(t, in, waiters)
		}
	})
}

// At the end of the counter a waiter checks the other nodes one by one. They may be deleted before
// it does.
func TestDowngradeBetweenTwoReadsOfAWriterAtTheEndOfTheCounter(t *testing.T) {
	sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
		in := on(srv)
		require.NoError(t, srv.Create(in.path, nil))
		require.NoError(t, srv.SetSequence(in.path, math.MaxInt32))
		rw := in.lock(t)
		written := acquire(t, rw.Write())
		c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client("writer").DialContext))
		rule := srv.On(fault.Match{Client: "writer", Op: fault.OpExists}, fault.Hold())
		writer := testlock.Start(t, newLock(t, c, in.path).Write().Acquire)
		require.NoError(t, rule.Wait(testzk.Context(t)))
		reading := downgrade(t, rw, written)
		release(t, written)
		rule.Release()
		in.waits(t, writer)
		release(t, reading)
		release(t, writer.Won(t))
	})
}

// At the end of the counter numbers do not show whether the reader is behind the writer. In doubt
// an upgrade fails. A failed upgrade lets no waiter in.
func TestUpgradeAmongReadersFailsAtTheEndOfTheCounter(t *testing.T) {
	nearTheEnd(t, func(t *testing.T, in env, rw, theirs *rwlock.RWLock) {
		for range 3 {
			other, reading := acquire(t, theirs.Read()), acquire(t, rw.Read())
			crowded(t, rw, reading)
			waiters := crowd(t, theirs, "wr")
			crowded(t, rw, reading)
			release(t, other)
			waitAll(t, in, waiters)
			if written, err := rw.TryUpgrade(reading.Context(t.Context())); err == nil {
				waitAll(t, in, waiters)
				release(t, written)
			} else {
				require.ErrorIs(t, err, rwlock.ErrUpgrade)
			}
			waitAll(t, in, waiters)
			release(t, reading)
			serve(t, in, waiters)
		}
	})
}

// All other nodes have the same number. By their names the writer may seem to be the first of them.
func TestUpgradeFailsIfNumbersDoNotShowTheFirstNode(t *testing.T) {
	nearTheEnd(t, func(t *testing.T, in env, rw, theirs *rwlock.RWLock) {
		reading := acquire(t, rw.Read())
		for range 10 {
			other := acquire(t, theirs.Read())
			writer := enter(t, theirs.Write())
			crowded(t, rw, reading)
			writer.GivesUp(t)
			release(t, other)
		}
		release(t, upgrade(t, rw, reading), reading)
	})
}
