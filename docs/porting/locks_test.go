package porting

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/multilock"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/recipes/rwlock"
	"github.com/docent-zk/docent/recipes/semaphore"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

// fragment locker
func locked(ctx context.Context, mu *mutex.Mutex, do job) error {
	return recipes.DoWithin(ctx, mu, 10*time.Second,
		func(ctx context.Context, _ *recipes.Hold) error {
			return do(ctx)
		})
}

// end

func Example_locker() {
	run(func(ctx context.Context, client *framework.Client, _ *zktest.Server) error {
		mu, err := mutex.New(client, "/locks/orders")
		if err != nil {
			return err
		}
		return locked(ctx, mu, job(work))
	})
	// Output:
	// working
}

// fragment revocable
func yielding(
	ctx context.Context, mu *mutex.Mutex, jobs <-chan job,
) error {
	return mu.Do(ctx, func(ctx context.Context, hold *recipes.Hold) error {
		for {
			select {
			case <-hold.Revoked():
				return nil // a client asks for the lock: release it
			case do := <-jobs:
				if err := do(ctx); err != nil {
					return err
				}
			case <-ctx.Done(): // the lock is lost, or ctx has ended
				return context.Cause(ctx)
			}
		}
	})
}

// end

type job func(context.Context) error

// fragment revoke
func takeOver(
	ctx context.Context, client *framework.Client, mu *mutex.Mutex,
) (*recipes.Hold, error) {
	asking, stop := context.WithCancel(ctx)
	defer stop()
	go askOnceQueued(asking, client, mu) // Acquire waits even if this fails
	return mu.Acquire(ctx)
}

func askOnceQueued(
	ctx context.Context, client *framework.Client, mu *mutex.Mutex,
) error {
	for {
		_, _, watch, err := client.ChildrenW(ctx, mu.Path())
		if err != nil {
			return err // zk.ErrNoNode: no client has ever held the lock
		}
		queue, err := mu.Participants(ctx) // the holder first
		if err != nil {
			return err
		}
		session, err := client.Session(ctx)
		if err != nil {
			return err
		}
		own := func(p recipes.Participant) bool { return p.Session == session.ID() }
		switch place := slices.IndexFunc(queue, own); {
		case place == 0:
			return nil // this client holds the lock
		case place > 0:
			return recipes.Revoke(ctx, client, queue[0])
		}
		select {
		case <-watch.Fired(): // the queue has changed
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// end

// The holder acquires the lock again at once, and is behind the client that asks.
func Example_revocation() {
	run(func(ctx context.Context, client *framework.Client, srv *zktest.Server) error {
		mu, err := mutex.New(client, "/locks/orders")
		if err != nil {
			return err
		}
		jobs, yielded := make(chan job), make(chan error)
		again, cancel := context.WithCancel(ctx)
		defer cancel()
		go func() {
			first := yielding(ctx, mu, jobs)
			_, second := mu.Acquire(again)
			yielded <- first
			yielded <- second
		}()
		jobs <- job(work)
		asker := connect(srv)
		defer asker.Close()
		other, err := mutex.New(asker, "/locks/orders")
		if err != nil {
			return err
		}
		hold, err := takeOver(ctx, asker, other)
		if err != nil {
			return err
		}
		cancel()
		fmt.Println("released:", <-yielded)
		fmt.Println("next:", hold.Err() == nil, "acquired again:", errors.Is(<-yielded, context.Canceled))
		return hold.Release()
	})
	// Output:
	// working
	// released: <nil>
	// next: true acquired again: true
}

func TestTakeOverOfALockThatIsFree(t *testing.T) {
	srv := zktest.Start(t)
	client := connect(srv)
	defer client.Close()
	mu, err := mutex.New(client, "/locks/orders")
	require.NoError(t, err)
	for range 2 { // without a node, and with one
		hold, err := takeOver(t.Context(), client, mu)
		require.NoError(t, err)
		require.False(t, isClosed(hold.Revoked()), "it asked itself")
		require.NoError(t, hold.Release())
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// The function has not run, although the error also says that a release is pending.
func TestCombinedLocksThatAreNotAcquired(t *testing.T) {
	for name, locks := range map[string]func(*framework.Client) (recipes.Locker, error){
		"combined": func(client *framework.Client) (recipes.Locker, error) {
			a, errA := mutex.New(client, "/locks/a")
			b, errB := mutex.New(client, "/locks/b")
			if err := errors.Join(errA, errB); err != nil {
				return nil, err
			}
			return multilock.Combine(a, b)
		},
		"in the order of the paths": func(client *framework.Client) (recipes.Locker, error) {
			return multilock.New(client, []string{"/locks/a", "/locks/b"}, multilock.WithPathOrder())
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t)
				busy, err := mutex.New(virtual(t, srv, "b"), "/locks/b")
				require.NoError(t, err)
				hold, err := busy.Acquire(t.Context())
				require.NoError(t, err)
				both, err := locks(virtual(t, srv, "a"))
				require.NoError(t, err)
				slow := srv.On(fault.Match{Client: "a", Op: fault.OpDelete}, fault.Hold())
				err = recipes.DoWithin(t.Context(), both, wait, func(context.Context, *recipes.Hold) error {
					t.Error("the function runs")
					return nil
				})
				slow.Release()
				require.ErrorIs(t, err, recipes.ErrNotAcquired)
				require.ErrorIs(t, err, recipes.ErrReleasePending)
				require.NoError(t, hold.Release())
			})
		})
	}
}

// virtual returns a client in a bubble. It is closed with the test.
func virtual(t *testing.T, srv *zktest.Server, name string) *framework.Client {
	t.Helper()
	client, err := framework.New(srv.MemAddr(), framework.WithDialer(srv.Client(name).DialContext))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}

// fragment downgrade
// The two holds overlap, so Do does not fit.
func refresh(ctx context.Context, rw *rwlock.RWLock) (err error) {
	written, err := rw.Write().Acquire(ctx)
	if err != nil {
		return err
	}
	defer written.Release() // does nothing the second time
	if err := write(written.Context(ctx)); err != nil {
		return err
	}
	// returns at once: the context carries the write hold
	reading, err := rw.Read().Acquire(written.Context(ctx))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, reading.Release()) }()
	if err := written.Release(); err != nil { // lets readers in
		return err
	}
	return read(reading.Context(ctx))
}

// end

var write, read = say("writing"), say("reading")

func Example_downgrade() {
	run(func(ctx context.Context, client *framework.Client, _ *zktest.Server) error {
		rw, err := rwlock.New(client, "/locks/catalogue")
		if err != nil {
			return err
		}
		return refresh(ctx, rw)
	})
	// Output:
	// writing
	// reading
}

// fragment upgrade
func update(ctx context.Context, rw *rwlock.RWLock) error {
	return rw.Read().Do(ctx, func(ctx context.Context, _ *recipes.Hold) error {
		written, err := rw.TryUpgrade(ctx)
		if err != nil {
			return err // rwlock.ErrUpgrade: there are other readers
		}
		return errors.Join(write(written.Context(ctx)), written.Release())
	})
}

// end

func Example_upgrade() {
	run(func(ctx context.Context, client *framework.Client, _ *zktest.Server) error {
		rw, err := rwlock.New(client, "/locks/catalogue")
		if err != nil {
			return err
		}
		if err := update(ctx, rw); err != nil {
			return err
		}
		other, err := rw.Read().Acquire(ctx)
		if err != nil {
			return err
		}
		fmt.Println("with another reader:", errors.Is(update(ctx, rw), rwlock.ErrUpgrade))
		return other.Release()
	})
	// Output:
	// writing
	// with another reader: true
}

// fragment semaphore
func export(ctx context.Context, client *framework.Client) error {
	exports, err := semaphore.New(client, "/limits/exports", 5)
	if err != nil {
		return err
	}
	return exports.Do(ctx, func(ctx context.Context, _ *recipes.Hold) error {
		return work(ctx)
	})
}

// end

// fragment leases
func exportAll(
	ctx context.Context, exports *semaphore.Semaphore,
) (err error) {
	waiting, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	// Do takes one permit. AcquireN takes all of them or none.
	three, err := exports.AcquireN(waiting, 3)
	if errors.Is(err, recipes.ErrNotAcquired) && ctx.Err() == nil {
		return nil // fewer were free for ten seconds
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, three.Release()) }()
	return work(three.Context(ctx))
}

// end

func Example_permits() {
	run(func(ctx context.Context, client *framework.Client, srv *zktest.Server) error {
		exports, err := semaphore.New(client, "/limits/exports", 5)
		if err != nil {
			return err
		}
		err = errors.Join(export(ctx, client), exportAll(ctx, exports))
		fmt.Printf("left: %q\n", children(srv, "/limits/exports/leases"))
		return err
	})
	// Output:
	// working
	// working
	// left: []
}

func children(srv *zktest.Server, path string) []string {
	names, err := srv.Children(path)
	if err != nil {
		panic(err)
	}
	return names
}

func Example_sharedLimit() {
	run(func(ctx context.Context, client *framework.Client, srv *zktest.Server) error {
		// fragment shared-limit
		exports, err := semaphore.New(client, "/limits/exports", 5,
			semaphore.WithSharedLimit("/config/exports"))
		if err != nil {
			return err
		}
		if err := exports.SetLimit(ctx, 8); err != nil {
			return err
		}
		// end
		node, err := srv.Get("/config/exports")
		fmt.Println(node, err)
		return nil
	})
	// Output:
	// [0 0 0 8] <nil>
}

// fragment semaphore-mutex
func once(ctx context.Context, client *framework.Client) error {
	mu, err := semaphore.NewMutex(client, "/locks/report")
	if err != nil {
		return err
	}
	hold, err := mu.Acquire(ctx)
	if err != nil {
		return err
	}
	done := make(chan error)
	go func() { // any goroutine may use and release the hold
		done <- errors.Join(work(hold.Context(ctx)), hold.Release())
	}()
	return <-done
}

// end

func Example_semaphoreMutex() {
	run(func(ctx context.Context, client *framework.Client, srv *zktest.Server) error {
		err := once(ctx, client)
		fmt.Printf("left: %q\n", children(srv, "/locks/report/leases"))
		return err
	})
	// Output:
	// working
	// left: []
}

// fragment multilock
func transfer(ctx context.Context, client *framework.Client) error {
	both, err := multilock.New(client,
		[]string{"/locks/stock", "/locks/till"})
	if err != nil {
		return err
	}
	// ten seconds for the wait for both
	return recipes.DoWithin(ctx, both, 10*time.Second,
		func(ctx context.Context, _ *recipes.Hold) error {
			return work(ctx)
		})
}

// end

// fragment multilock-of
func moveStock(
	ctx context.Context, mu *mutex.Mutex, rw *rwlock.RWLock,
) error {
	both, err := multilock.Combine(mu, rw.Read()) // in this order
	if err != nil {
		return err
	}
	return both.Do(ctx, func(ctx context.Context, _ *recipes.Hold) error {
		return work(ctx)
	})
}

// end

func Example_multiLock() {
	run(func(ctx context.Context, client *framework.Client, _ *zktest.Server) error {
		mu, err := mutex.New(client, "/locks/stock")
		if err != nil {
			return err
		}
		rw, err := rwlock.New(client, "/locks/catalogue")
		if err != nil {
			return err
		}
		return errors.Join(transfer(ctx, client), moveStock(ctx, mu, rw))
	})
	// Output:
	// working
	// working
}
