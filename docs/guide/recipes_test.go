package guide

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/barrier"
	"github.com/docent-zk/docent/recipes/cache"
	"github.com/docent-zk/docent/recipes/condition"
	"github.com/docent-zk/docent/recipes/counter"
	"github.com/docent-zk/docent/recipes/discovery"
	"github.com/docent-zk/docent/recipes/ensembles"
	"github.com/docent-zk/docent/recipes/group"
	"github.com/docent-zk/docent/recipes/inspect"
	"github.com/docent-zk/docent/recipes/leader"
	"github.com/docent-zk/docent/recipes/multilock"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/recipes/persistent"
	"github.com/docent-zk/docent/recipes/rwlock"
	"github.com/docent-zk/docent/recipes/semaphore"
	"github.com/docent-zk/docent/recipes/striped"
)

// Each function is on the page docs/recipes.md.
func TestRecipesRun(t *testing.T) {
	for name, recipe := range map[string]func(context.Context, *framework.Client, func(context.Context) error) error{
		"mutex": withMutex, "try": tryMutex, "rwlock": withRead, "semaphore": withPermit, "multilock": withBoth,
		"striped": withKey, "counter": withNumber, "cache": withCache,
		"persistent": registered, "group": joined, "discovery": served, "inspect": listed,
	} {
		t.Run(name, func(t *testing.T) {
			ctx, client := connected(t)
			calls := 0
			require.NoError(t, recipe(ctx, client, func(ctx context.Context) error {
				calls++
				return ctx.Err()
			}))
			require.Equal(t, 1, calls)
		})
	}
}

func TestEnsemblesRun(t *testing.T) {
	ctx, east := connected(t)
	_, west := connected(t)
	calls := 0
	require.NoError(t, withEnsembles(ctx, east, west, func(ctx context.Context) error {
		calls++
		return ctx.Err()
	}))
	require.Equal(t, 1, calls)
}

func TestConditionRuns(t *testing.T) {
	ctx, client := connected(t)
	mu, err := mutex.New(client, "/orders/lock")
	require.NoError(t, err)
	paid, err := condition.New(mu, "/orders/paid")
	require.NoError(t, err)
	done := false // under the lock
	signaled := make(chan error, 1)
	require.NoError(t, waitFor(ctx, mu, paid, func() bool {
		if !done {
			go func() { signaled <- signal(ctx, mu, paid, func() { done = true }) }()
		}
		return done
	}))
	require.NoError(t, <-signaled)
}

func TestLeaderRuns(t *testing.T) {
	ctx, client := connected(t)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	terms := 0
	err := lead(ctx, client, func(_ context.Context, token int64) error {
		require.Positive(t, token)
		if terms++; terms == 2 {
			stop()
		}
		return nil
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 2, terms)
}

func TestBarrierRuns(t *testing.T) {
	ctx, client := connected(t)
	passed := make(chan error)
	for range 3 {
		go func() { passed <- inStep(ctx, client, func(context.Context) error { return nil }) }()
	}
	for range 3 {
		require.NoError(t, <-passed)
	}
}

// A lock that another client holds is not an error of tryMutex.
func TestTryMutexGivesUp(t *testing.T) {
	ctx, client := connected(t)
	mu, err := mutex.New(client, "/locks/orders")
	require.NoError(t, err)
	hold, err := mu.Acquire(ctx)
	require.NoError(t, err)
	require.NoError(t, tryMutex(ctx, client, func(context.Context) error { return errors.New("called") }))
	require.NoError(t, hold.Release())
}

// fragment recipes-mutex
func withMutex(ctx context.Context, client *framework.Client, work func(context.Context) error) error {
	mu, err := mutex.New(client, "/locks/orders")
	if err != nil {
		return err
	}
	return mu.Do(ctx, func(ctx context.Context, hold *recipes.Hold) error {
		return work(ctx) // acquiring mu with this ctx re-enters
	})
}

// end

// fragment recipes-try
func tryMutex(ctx context.Context, client *framework.Client, work func(context.Context) error) error {
	mu, err := mutex.New(client, "/locks/orders")
	if err != nil {
		return err
	}
	hold, err := mu.TryAcquire(ctx) // recipes.AcquireWithin waits for a time
	if errors.Is(err, recipes.ErrNotAcquired) {
		return nil // another client has the lock
	}
	if err != nil {
		return err
	}
	return errors.Join(work(hold.Context(ctx)), hold.Release())
}

// end

// fragment recipes-rwlock
func withRead(ctx context.Context, client *framework.Client, read func(context.Context) error) error {
	catalogue, err := rwlock.New(client, "/locks/catalogue")
	if err != nil {
		return err
	}
	return catalogue.Read().Do(ctx, func(ctx context.Context, _ *recipes.Hold) error { // or Write()
		return read(ctx)
	})
}

// end

// fragment recipes-semaphore
func withPermit(ctx context.Context, client *framework.Client, export func(context.Context) error) error {
	exports, err := semaphore.New(client, "/limits/exports", 5)
	if err != nil {
		return err
	}
	return exports.Do(ctx, func(ctx context.Context, _ *recipes.Hold) error { // AcquireN takes several permits
		return export(ctx)
	})
}

// end

// fragment recipes-multilock
func withBoth(ctx context.Context, client *framework.Client, transfer func(context.Context) error) error {
	both, err := multilock.New(client, []string{"/accounts/17", "/accounts/4"}) // in any order
	if err != nil {
		return err
	}
	return both.Do(ctx, func(ctx context.Context, hold *recipes.Hold) error {
		return transfer(ctx) // hold.Tokens has a token for each account
	})
}

// end

// fragment recipes-striped
func withKey(ctx context.Context, client *framework.Client, update func(context.Context) error) error {
	customers, err := striped.New(client, "/locks/customers", 64)
	if err != nil {
		return err
	}
	return customers.For("ann@example.org").Do(ctx, func(ctx context.Context, _ *recipes.Hold) error {
		return update(ctx)
	})
}

// end

// fragment recipes-ensembles
func withEnsembles(ctx context.Context, east, west *framework.Client, work func(context.Context) error) error {
	set, err := ensembles.New([]ensembles.Ensemble{{Name: "east", Client: east}, {Name: "west", Client: west}})
	if err != nil {
		return err
	}
	lock, err := set.Lock("order-17", func(client *framework.Client) (recipes.Locker, error) {
		return mutex.New(client, "/locks/order-17")
	})
	if err != nil {
		return err
	}
	return lock.Do(ctx, func(ctx context.Context, _ *recipes.Hold) error {
		return work(ctx)
	})
}

// end

// fragment recipes-condition
func waitFor(ctx context.Context, mu *mutex.Mutex, changed *condition.Condition, ready func() bool) error {
	hold, err := mu.Acquire(ctx)
	if err != nil {
		return err
	}
	for !ready() {
		if hold, err = changed.Wait(ctx, hold); err != nil { // releases mu while it waits
			return err
		}
	}
	return hold.Release()
}

func signal(ctx context.Context, mu *mutex.Mutex, changed *condition.Condition, change func()) error {
	return mu.Do(ctx, func(ctx context.Context, hold *recipes.Hold) error {
		change()
		return changed.Signal(ctx, hold)
	})
}

// end

// fragment recipes-leader
func lead(ctx context.Context, client *framework.Client, reconcile func(context.Context, int64) error) error {
	e, err := leader.New(client, "/service/leader", leader.WithID("host-3"))
	if err != nil {
		return err
	}
	return e.Run(ctx, func(ctx context.Context, t *leader.Term) error { // for each term, until ctx ends
		return reconcile(ctx, t.Token()) // this ctx ends with the leadership
	})
}

// end

// fragment recipes-counter
func withNumber(ctx context.Context, client *framework.Client, order func(context.Context) error) error {
	orders, err := counter.NewAtomic(client, "/counters/orders")
	if err != nil {
		return err
	}
	number, err := orders.Add(ctx, 1) // applied once; an error says whether it may have been applied
	if err != nil {
		return err
	}
	fmt.Println("order", number)
	return order(ctx)
}

// end

// fragment recipes-cache
func withCache(ctx context.Context, client *framework.Client, use func(context.Context) error) error {
	settings, err := cache.New(client, "/config", cache.WithDepth(1))
	if err != nil {
		return err
	}
	defer settings.Close()
	defer settings.Listen(func(e cache.Event) { fmt.Println(e) })() // each change
	if err := settings.WaitReady(ctx); err != nil {
		return err
	}
	for path, node := range settings.All() { // no request
		fmt.Println(path, string(node.Data))
	}
	return use(ctx)
}

// end

// fragment recipes-persistent
func registered(ctx context.Context, client *framework.Client, serve func(context.Context) error) error {
	node, err := persistent.New(client, "/services/orders/host-3", []byte("10.0.0.3:8080"))
	if err != nil {
		return err
	}
	if err := node.Start(ctx); err != nil {
		return err
	}
	defer node.Close() // deletes the node
	if err := node.WaitReady(ctx); err != nil {
		return err
	}
	return serve(ctx)
}

// end

// fragment recipes-group
func joined(ctx context.Context, client *framework.Client, work func(context.Context) error) error {
	self, err := group.Join(ctx, client, "/workers", "host-3", []byte("10.0.0.3:8080"))
	if err != nil {
		return err
	}
	defer self.Close() // leaves
	members, err := group.Members(ctx, client, "/workers")
	if err != nil {
		return err
	}
	fmt.Println(len(members), "members")
	return work(ctx)
}

// end

// fragment recipes-discovery
func served(ctx context.Context, client *framework.Client, call func(context.Context) error) error {
	registry, err := discovery.New(client, "/services")
	if err != nil {
		return err
	}
	self, err := registry.Register(discovery.Instance{Name: "orders", Address: "10.0.0.3", Port: 8080})
	if err != nil {
		return err
	}
	defer self.Close()
	if err := self.WaitReady(ctx); err != nil { // a client may come
		return err
	}
	orders, err := registry.View("orders") // in another program
	if err != nil {
		return err
	}
	defer orders.Close()
	provider, err := discovery.NewProvider(orders)
	if err != nil {
		return err
	}
	instance, err := provider.Pick(ctx)
	if err != nil {
		return err
	}
	fmt.Println(instance.HostPort())
	return call(ctx)
}

// end

// fragment recipes-barrier
func inStep(ctx context.Context, client *framework.Client, round func(context.Context) error) error {
	rounds, err := barrier.NewCyclic(client, "/jobs/rounds", 3) // three parties
	if err != nil {
		return err
	}
	if _, err := rounds.Await(ctx); err != nil { // until all parties are here
		return err
	}
	return round(ctx)
}

// end

// fragment recipes-inspect
func listed(ctx context.Context, client *framework.Client, report func(context.Context) error) error {
	for object, err := range inspect.Walk(ctx, client, "/") {
		if object == nil {
			return err // the walk has ended before it was complete
		}
		if err == nil {
			fmt.Println(object.Path, object.Kind, object.State, object.Holders, object.Waiters)
		}
	}
	return report(ctx)
}

// end
