package main

import (
	"context"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/barrier"
	"github.com/docent-zk/docent/recipes/condition"
	"github.com/docent-zk/docent/recipes/counter"
	"github.com/docent-zk/docent/recipes/mutex"
)

// showBarrier has two clients meet twice.
func showBarrier(ctx context.Context, t *tour) error {
	ann, err := barrier.NewCyclic(t.ann, "/tour/rounds", 2)
	if err != nil {
		return err
	}
	bob, err := barrier.NewCyclic(t.bob, "/tour/rounds", 2)
	if err != nil {
		return err
	}
	for range 2 {
		t.call("Bob", "rounds.Await(ctx)", "waits for 2 parties")
		waiter := start(t, func() (int64, error) { return bob.Await(ctx) })
		generation, err := ann.Await(ctx)
		if err != nil {
			return err
		}
		t.call("Ann", "rounds.Await(ctx)", "passes, generation %d", generation)
		if generation, err = waiter.result(); err != nil {
			return err
		}
		t.call("Bob", "... returns", "passes, generation %d", generation)
	}
	return nil
}

// showCounter shows a sum, and numbers that are taken in blocks.
func showCounter(ctx context.Context, t *tour) error {
	ann, err := counter.NewAtomic(t.ann, "/tour/tickets")
	if err != nil {
		return err
	}
	bob, err := counter.NewAtomic(t.bob, "/tour/tickets")
	if err != nil {
		return err
	}
	sum, err := ann.Add(ctx, 5)
	if err != nil {
		return err
	}
	t.call("Ann", "tickets.Add(ctx, 5)", "%d", sum)
	if sum, err = bob.Add(ctx, -2); err != nil {
		return err
	}
	t.call("Bob", "tickets.Add(ctx, -2)", "%d", sum)
	swapped, err := ann.CompareAndSet(ctx, 5, 6)
	if err != nil {
		return err
	}
	t.call("Ann", "tickets.CompareAndSet(ctx, 5, 6)", "%t: it is not 5 any more", swapped)
	return t.takeNumbers(ctx)
}

// takeNumbers has two clients take numbers from blocks of ten.
func (t *tour) takeNumbers(ctx context.Context) error {
	for _, c := range []struct {
		name   string
		client *framework.Client
	}{{"Ann", t.ann}, {"Bob", t.bob}} {
		orders, err := counter.NewAtomic(c.client, "/tour/orders")
		if err != nil {
			return err
		}
		numbers, err := counter.NewSequence(orders, 10)
		if err != nil {
			return err
		}
		first, err := numbers.Next(ctx)
		if err != nil {
			return err
		}
		second, err := numbers.Next(ctx)
		if err != nil {
			return err
		}
		t.call(c.name, "numbers.Next(ctx), twice", "%d %d, of a block of 10", first, second)
	}
	return nil
}

// showCondition has Bob wait for an order that Ann writes.
func showCondition(ctx context.Context, t *tour) error {
	annLock, ann, err := newCondition(t.ann)
	if err != nil {
		return err
	}
	bobLock, bob, err := newCondition(t.bob)
	if err != nil {
		return err
	}
	before, err := bobLock.Acquire(ctx)
	if err != nil {
		return err
	}
	t.call("Bob", "hold = lock.Acquire(ctx)", "holds, and there is no order")
	t.call("Bob", "hold = ordered.Wait(ctx, hold)", "waits, and does not hold any more")
	waiter := start(t, func() (*recipes.Hold, error) { return bob.Wait(ctx, before) })

	hold, err := annLock.Acquire(ctx) // when Bob waits
	if err != nil {
		return err
	}
	t.call("Ann", "hold := lock.Acquire(ctx)", "holds, and writes an order")
	if err := ann.Signal(ctx, hold); err != nil {
		return err
	}
	t.call("Ann", "ordered.Signal(ctx, hold)", "signaled")
	if err := t.release("Ann", "hold.Release()", hold); err != nil {
		return err
	}
	after, err := waiter.result()
	if err != nil {
		return err
	}
	t.call("Bob", "... returns", "holds again, and there is an order")
	return after.Release()
}

func newCondition(client *framework.Client) (*mutex.Mutex, *condition.Condition, error) {
	lock, err := mutex.New(client, "/tour/orders-lock")
	if err != nil {
		return nil, nil, err
	}
	ordered, err := condition.New(lock, "/tour/ordered")
	return lock, ordered, err
}
