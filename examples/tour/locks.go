package main

import (
	"context"
	"errors"
	"time"

	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/multilock"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/recipes/rwlock"
	"github.com/docent-zk/docent/recipes/semaphore"
	"github.com/docent-zk/docent/recipes/striped"
)

// showMutex shows re-entry, the queue, and a hand-off between goroutines.
func showMutex(ctx context.Context, t *tour) error {
	ann, err := mutex.New(t.ann, "/tour/mutex")
	if err != nil {
		return err
	}
	bob, err := mutex.New(t.bob, "/tour/mutex")
	if err != nil {
		return err
	}
	hold, err := t.hold(ctx, "Ann", "hold := lock.Acquire(ctx)", ann)
	if err != nil {
		return err
	}
	inner, err := ann.Acquire(hold.Context(ctx))
	if err != nil {
		return err
	}
	same := inner.Path() == hold.Path()
	t.call("Ann", "inner := lock.Acquire(hold.Context(ctx))", "re-entered, with the same node: %t", same)
	_, err = bob.TryAcquire(ctx)
	if err := t.refused("Bob", "lock.TryAcquire(ctx)", err, recipes.ErrNotAcquired); err != nil {
		return err
	}
	if err := t.release("Ann", "inner.Release()", inner); err != nil {
		return err
	}
	if err := t.passOn(ctx, hold, bob); err != nil {
		return err
	}
	return t.handOff(ctx)
}

// passOn has Bob wait for Ann's hold.
func (t *tour) passOn(ctx context.Context, hold *recipes.Hold, lock *mutex.Mutex) error {
	t.call("Bob", "lock.Acquire(ctx)", "waits")
	waiter := start(t, func() (*recipes.Hold, error) { return lock.Acquire(ctx) })
	if err := waitQueue(ctx, lock, 2); err != nil {
		return err
	}
	t.call("Bob", "lock.Participants(ctx)", "2 nodes: Ann holds, Bob waits")
	if err := t.release("Ann", "hold.Release()", hold); err != nil {
		return err
	}
	next, err := waiter.result()
	if err != nil {
		return err
	}
	t.call("Bob", "... returns", "holds, with a larger token: %t", next.Token() > hold.Token())
	return next.Release()
}

// handOff acquires a lock twice with one node.
func (t *tour) handOff(ctx context.Context) error {
	limits := mutex.Handoff{Streak: 10, Span: time.Minute, Idle: time.Minute}
	lock, err := mutex.New(t.ann, "/tour/handoff", mutex.WithLocalHandoff(limits))
	if err != nil {
		return err
	}
	first, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	if err := first.Release(); err != nil {
		return err
	}
	t.call("Ann", "mutex.New(..., WithLocalHandoff(...))", "another lock; the node is kept after Release")
	second, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	t.call("Ann", "lock.Acquire(ctx)", "holds again, with the same node: %t", second.Path() == first.Path())
	return second.Release()
}

// showReadWriteLock shows shared reads and a downgrade.
func showReadWriteLock(ctx context.Context, t *tour) error {
	ann, err := rwlock.New(t.ann, "/tour/rwlock")
	if err != nil {
		return err
	}
	bob, err := rwlock.New(t.bob, "/tour/rwlock")
	if err != nil {
		return err
	}
	if err := t.shareReads(ctx, ann, bob); err != nil {
		return err
	}
	writing, err := ann.Write().Acquire(ctx)
	if err != nil {
		return err
	}
	t.call("Ann", "w := rw.Write().Acquire(ctx)", "writes")
	reading, err := ann.Read().Acquire(writing.Context(ctx))
	if err != nil {
		return err
	}
	t.call("Ann", "r := rw.Read().Acquire(w.Context(ctx))", "also reads")
	if err := t.release("Ann", "w.Release()", writing); err != nil {
		return err
	}
	shared, err := bob.Read().Acquire(ctx)
	if err != nil {
		return err
	}
	t.call("Bob", "rw.Read().Acquire(ctx)", "reads too: Ann has downgraded")
	return errors.Join(shared.Release(), reading.Release())
}

func (t *tour) shareReads(ctx context.Context, ann, bob *rwlock.RWLock) error {
	first, err := ann.Read().Acquire(ctx)
	if err != nil {
		return err
	}
	t.call("Ann", "rw.Read().Acquire(ctx)", "reads")
	second, err := bob.Read().Acquire(ctx)
	if err != nil {
		return err
	}
	t.call("Bob", "rw.Read().Acquire(ctx)", "reads at the same time")
	_, err = bob.Write().TryAcquire(ctx)
	if err := t.refused("Bob", "rw.Write().TryAcquire(ctx)", err, recipes.ErrNotAcquired); err != nil {
		return err
	}
	return errors.Join(first.Release(), second.Release())
}

// showSemaphore shows permits with numbers.
func showSemaphore(ctx context.Context, t *tour) error {
	ann, err := semaphore.New(t.ann, "/tour/semaphore", 3, semaphore.WithSlots())
	if err != nil {
		return err
	}
	bob, err := semaphore.New(t.bob, "/tour/semaphore", 3, semaphore.WithSlots())
	if err != nil {
		return err
	}
	two, err := ann.AcquireN(ctx, 2)
	if err != nil {
		return err
	}
	t.call("Ann", "hold := sem.AcquireN(ctx, 2)", "has 2 of 3 permits, slots %v", semaphore.Slots(two))
	one, err := bob.Acquire(ctx)
	if err != nil {
		return err
	}
	t.call("Bob", "sem.Acquire(ctx)", "has the last one, slot %v", semaphore.Slots(one))
	_, err = bob.TryAcquire(ctx)
	if err := t.refused("Bob", "sem.TryAcquire(ctx)", err, recipes.ErrNotAcquired); err != nil {
		return err
	}
	if err := t.release("Ann", "hold.Release()", two); err != nil {
		return err
	}
	more, err := bob.Acquire(ctx)
	if err != nil {
		return err
	}
	t.call("Bob", "sem.Acquire(ctx)", "has slot %v, which is free again", semaphore.Slots(more))
	return errors.Join(one.Release(), more.Release())
}

// showMultiLock shows that a hold has all locks or none.
func showMultiLock(ctx context.Context, t *tour) error {
	both, err := multilock.New(t.ann, []string{"/tour/account-1", "/tour/account-2"})
	if err != nil {
		return err
	}
	second, err := mutex.New(t.bob, "/tour/account-2")
	if err != nil {
		return err
	}
	first, err := mutex.New(t.bob, "/tour/account-1")
	if err != nil {
		return err
	}
	busy, err := t.hold(ctx, "Bob", "mutex of account-2: Acquire(ctx)", second)
	if err != nil {
		return err
	}
	_, err = both.TryAcquire(ctx)
	if err := t.refused("Ann", "both.TryAcquire(ctx)", err, recipes.ErrNotAcquired); err != nil {
		return err
	}
	free, err := first.TryAcquire(ctx)
	if err != nil {
		return err
	}
	t.call("Bob", "mutex of account-1: TryAcquire(ctx)", "holds: Ann has kept nothing")
	if err := errors.Join(free.Release(), busy.Release()); err != nil {
		return err
	}
	hold, err := both.Acquire(ctx)
	if err != nil {
		return err
	}
	t.call("Ann", "hold := both.Acquire(ctx)", "holds both, a token for each: %d", len(hold.Tokens()))
	return t.release("Ann", "hold.Release()", hold)
}

// showStriped shows locks for keys.
func showStriped(ctx context.Context, t *tour) error {
	ann, err := striped.New(t.ann, "/tour/customers", 16)
	if err != nil {
		return err
	}
	bob, err := striped.New(t.bob, "/tour/customers", 16)
	if err != nil {
		return err
	}
	seven, err := ann.For("customer 7").Acquire(ctx)
	if err != nil {
		return err
	}
	t.call("Ann", `locks.For("customer 7").Acquire(ctx)`, "holds stripe %d of 16", striped.Index("customer 7", 16))
	_, err = bob.For("customer 7").TryAcquire(ctx)
	if err := t.refused("Bob", `locks.For("customer 7").TryAcquire(ctx)`, err, recipes.ErrNotAcquired); err != nil {
		return err
	}
	eight, err := bob.For("customer 8").TryAcquire(ctx)
	if err != nil {
		return err
	}
	t.call("Bob", `locks.For("customer 8").TryAcquire(ctx)`, "holds stripe %d", striped.Index("customer 8", 16))
	return errors.Join(seven.Release(), eight.Release())
}
