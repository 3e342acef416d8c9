package rwlock_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/rwlock"
)

// attempt is a running Acquire.
type attempt struct {
	cancel context.CancelFunc
	hold   *recipes.Hold
	err    error
	done   chan struct{}
}

// start acquires on another goroutine, which ends with the test.
func start(t testing.TB, side *rwlock.Side) *attempt {
	t.Helper()
	ctx, cancel := context.WithCancel(testzk.Context(t))
	a := &attempt{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(a.done)
		a.hold, a.err = side.Acquire(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-a.done
	})
	return a
}

// enter starts an acquire and returns when it is queued.
func enter(t testing.TB, side *rwlock.Side) *attempt {
	t.Helper()
	testzk.Everywhere(t) // otherwise a server may show some queued nodes only later
	before := len(participants(t, side))
	a := start(t, side)
	queued(t, side, before+1)
	return a
}

func (a *attempt) won(t testing.TB) *recipes.Hold {
	t.Helper()
	<-a.done
	require.NoError(t, a.err)
	return a.hold
}

// givesUp cancels a waiter.
func (a *attempt) givesUp(t testing.TB) {
	t.Helper()
	a.cancel()
	<-a.done
	require.ErrorIs(t, a.err, context.Canceled)
}

func (a *attempt) waiting() bool {
	select {
	case <-a.done:
		return false
	default:
		return true
	}
}

// other is another waiter of the queue.
type other struct {
	write bool
	*attempt
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
		hold := o.won(t)
		if o.write {
			for _, later := range all[i+1:] {
				in.waits(t, later.attempt)
			}
		}
		release(t, hold)
	}
}

func waitAll(t testing.TB, in env, all []other) {
	t.Helper()
	for _, o := range all {
		in.waits(t, o.attempt)
	}
}
