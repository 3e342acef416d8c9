package multilock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/multilock"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
)

// connect returns a client of a new server. stop closes both.
func connect() (client *framework.Client, stop func()) {
	srv, err := zktest.New() // in a test: zktest.Start(t)
	if err != nil {
		log.Fatal(err)
	}
	client, err = framework.New(srv.Addr())
	if err != nil {
		log.Fatal(err)
	}
	return client, func() {
		_ = client.Close()
		srv.Close()
	}
}

// account is protected by a lock. It reports two uses at once.
type account struct {
	inUse   sync.Mutex
	balance int
}

func (a *account) add(amount int) {
	if !a.inUse.TryLock() {
		panic("two transfers use the account at once")
	}
	defer a.inUse.Unlock()
	a.balance += amount
}

// Transfers between two accounts in both directions exclude each other. They do not deadlock,
// whatever account each of them names first.
func ExampleNew() {
	client, stop := connect()
	defer stop()
	accounts := map[string]*account{"/accounts/4": {balance: 100}, "/accounts/17": {balance: 100}}
	transfer := func(ctx context.Context, from, to string, amount int) error {
		both, err := multilock.New(client, []string{from, to})
		if err != nil {
			return err
		}
		return both.Do(ctx, func(context.Context, *recipes.Hold) error {
			accounts[from].add(-amount)
			accounts[to].add(amount)
			return nil
		}) // also reports a loss before the end of the transfer
	}
	var running sync.WaitGroup
	for range 10 {
		running.Go(func() { must(transfer(context.Background(), "/accounts/4", "/accounts/17", 5)) })
		running.Go(func() { must(transfer(context.Background(), "/accounts/17", "/accounts/4", 2)) })
	}
	running.Wait()
	fmt.Println(accounts["/accounts/4"].balance, accounts["/accounts/17"].balance)
	// Output:
	// 70 130
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// While the set is held, its locks cannot be acquired one by one. Under the context of the hold
// they can, because such an acquire re-enters it.
func ExampleMultiLock_Acquire() {
	client, stop := connect()
	defer stop()
	both, err := multilock.New(client, []string{"/shards/b", "/shards/a"})
	must(err)
	shard, err := mutex.New(client, "/shards/a")
	must(err)

	ctx := context.Background()
	hold, err := both.Acquire(ctx)
	must(err)
	_, err = shard.TryAcquire(ctx)
	fmt.Println("by itself:", errors.Is(err, recipes.ErrNotAcquired))

	inner, err := shard.TryAcquire(hold.Context(ctx))
	must(err)
	fmt.Println("under the hold:", inner.Token() == hold.Tokens()[1], inner.Release())

	_, err = hold.Guard(ctx, framework.CreateOp("/shards/moved", nil)) // applied only if both locks are held
	fmt.Println("guarded:", err)
	fmt.Println(len(hold.Tokens()), "tokens,", hold.Release())
	// Output:
	// by itself: true
	// under the hold: true <nil>
	// guarded: <nil>
	// 2 tokens, <nil>
}

// Combine combines locks of any kind and acquires them one after another.
func ExampleCombine() {
	client, stop := connect()
	defer stop()
	ctx := context.Background()
	first, err := mutex.New(client, "/first")
	must(err)
	second, err := mutex.New(client, "/second")
	must(err)
	both, err := multilock.Combine(first, second)
	must(err)

	busy, err := second.Acquire(ctx)
	must(err)
	_, err = both.TryAcquire(ctx)
	fmt.Println("one is busy:", errors.Is(err, recipes.ErrNotAcquired))
	queue, err := first.Participants(ctx)
	fmt.Println("the other is free:", len(queue) == 0, err)
	must(busy.Release())

	hold, err := both.TryAcquire(ctx)
	must(err)
	fmt.Println("both:", hold.Err(), hold.Release())
	// Output:
	// one is busy: true
	// the other is free: true <nil>
	// both: <nil> <nil>
}
