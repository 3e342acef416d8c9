package porting

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/condition"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/recipes/striped"
	"github.com/docent-zk/docent/zktest"
)

// orders is a list that the mutex protects; in a program, data on the servers or in a database.
type orders struct {
	mutex    *mutex.Mutex
	notEmpty *condition.Condition

	mu   sync.Mutex
	list []string
}

func (o *orders) isEmpty() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.list) == 0
}

func (o *orders) remove() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	first := o.list[0]
	o.list = o.list[1:]
	return first
}

func (o *orders) add(order string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.list = append(o.list, order)
}

// fragment condition
func (o *orders) take(ctx context.Context, d time.Duration) (string, error) {
	deadline := time.Now().Add(d)
	hold, err := o.mutex.Acquire(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = hold.Release() }() // of the last hold
	for o.isEmpty() {
		left := time.Until(deadline)
		if left <= 0 {
			return "", nil
		}
		hold, _, err = o.notEmpty.WaitWithin(ctx, hold, left)
		if err != nil {
			return "", err // the lock is not held
		}
	}
	return o.remove(), nil
}

// end

// fragment condition-signal
func (o *orders) put(ctx context.Context, order string) error {
	hold, err := o.mutex.Acquire(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = hold.Release() }()
	o.add(order)
	return o.notEmpty.Signal(ctx, hold)
}

// end

func Example_condition() {
	run(func(ctx context.Context, client *framework.Client, _ *zktest.Server) error {
		// fragment condition-new
		mu, err := mutex.New(client, "/orders/lock")
		if err != nil {
			return err
		}
		notEmpty, err := condition.New(mu, "/orders/not-empty")
		if err != nil {
			return err
		}
		// end
		o := &orders{mutex: mu, notEmpty: notEmpty}
		order, err := o.take(ctx, time.Millisecond)
		fmt.Printf("%q %v\n", order, err)
		put := make(chan error, 1)
		go func() { put <- o.put(ctx, "order 17") }() // another process
		order, err = o.take(ctx, time.Hour)
		fmt.Printf("%q %v %v\n", order, err, <-put)
		return nil
	})
	// Output:
	// "" <nil>
	// "order 17" <nil> <nil>
}

func Example_striped() {
	run(func(ctx context.Context, client *framework.Client, _ *zktest.Server) error {
		move := func(ctx context.Context, token int64) error { return nil }
		// fragment striped
		locks, err := striped.New(client, "/accounts/locks", 64)
		if err != nil {
			return err
		}
		hold, err := locks.For("Ann").Acquire(ctx)
		if err != nil {
			return err
		}
		if err := hold.Release(); err != nil {
			return err
		}
		err = locks.ForAll("Ann", "Bob").Do(ctx,
			func(ctx context.Context, hold *recipes.Hold) error {
				return move(ctx, hold.Token())
			})
		// end
		fmt.Println(err)
		// fragment striped-change
		locks, err = striped.New(client, "/accounts/locks", 256,
			striped.WithPrevious(64))
		if err != nil {
			return err
		}
		// end
		return locks.For("Ann").Do(ctx, func(_ context.Context, hold *recipes.Hold) error {
			fmt.Println(len(hold.Paths()), "stripes")
			return nil
		})
	})
	// Output:
	// <nil>
	// 2 stripes
}
