package rwlock_test

import (
	"testing"

	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/rwlock"
)

// enter starts an acquire and returns when it is queued.
func enter(t testing.TB, side *rwlock.Side) *testlock.Attempt {
	t.Helper()
	testzk.Everywhere(t) // otherwise a server may show some queued nodes only later
	before := len(participants(t, side))
	a := testlock.Start(t, side.Acquire)
	queued(t, side, before+1)
	return a
}

// other is another waiter of the queue.
type other struct {
	write bool
	*testlock.Attempt
}

// crowd queues a waiter behind a read hold for each letter of kinds: r for a reader, w for a
// writer.
func crowd(t testing.TB, rw *rwlock.RWLock, kinds string) (all []other) {
	t.Helper()
	for _, kind := range kinds {
		side := rw.Read()
		if kind == 'w' {
			side = rw.Write()
		}
		all = append(all, other{kind == 'w', enter(t, side)})
	}
	return all
}

// serve checks that all waiters get the lock in their order.
func serve(t testing.TB, in env, all []other) {
	t.Helper()
	for i, o := range all {
		hold := o.Won(t)
		if o.write {
			for _, later := range all[i+1:] {
				in.waits(t, later.Attempt)
			}
		}
		release(t, hold)
	}
}

func waitAll(t testing.TB, in env, all []other) {
	t.Helper()
	for _, o := range all {
		in.waits(t, o.Attempt)
	}
}
