package porting

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/barrier"
	"github.com/docent-zk/docent/recipes/counter"
	"github.com/docent-zk/docent/recipes/group"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/recipes/persistent"
	"github.com/docent-zk/docent/zktest"
)

func Example_counter() {
	run(func(ctx context.Context, client *framework.Client, _ *zktest.Server) error {
		// fragment counter
		orders, err := counter.NewAtomic(client, "/counters/orders",
			counter.WithLock("/locks/orders"))
		if err != nil {
			return err
		}
		next, err := orders.Add(ctx, 1)
		if err != nil {
			return err
		}
		fmt.Println(next)
		// end
		return nil
	})
	// Output:
	// 1
}

func Example_sharedCount() {
	run(func(ctx context.Context, client *framework.Client, _ *zktest.Server) error {
		// fragment shared-count
		limit, err := counter.NewCount(client, "/config/limit", 5)
		if err != nil {
			return err
		}
		now, err := limit.GetVersioned(ctx)
		if err != nil {
			return err
		}
		now, wrote, err := limit.CompareAndSet(ctx, now, now.Value+1)
		if err != nil {
			return err
		}
		fmt.Println(wrote, now.Value) // false: another process was faster
		// end
		return nil
	})
	// Output:
	// true 6
}

// fragment count-copy
// copyOf returns a function that has the number at hand, until ctx ends.
func copyOf(
	ctx context.Context, count *counter.Count,
) (get func() (int32, error), err error) {
	last, err := count.Get(ctx)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var failed error
	go func() {
		for now, err := range count.Observe(ctx) {
			mu.Lock()
			if failed = err; err == nil {
				last = now
			}
			mu.Unlock()
		}
	}()
	return func() (int32, error) {
		mu.Lock()
		defer mu.Unlock()
		return last, failed // with an error, the last number that was known
	}, nil
}

// end

func TestCopyOfACountFollowsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		client, err := framework.New(srv.MemAddr(), framework.WithDialer(srv.Client("a").DialContext))
		require.NoError(t, err)
		limit, err := counter.NewCount(client, "/config/limit", 5)
		require.NoError(t, err)
		get, err := copyOf(t.Context(), limit)
		require.NoError(t, err)
		synctest.Wait() // the first number is observed before any call of get: a race with copyOf shows
		n, err := get()
		require.NoError(t, err)
		require.EqualValues(t, 5, n)
		require.NoError(t, limit.Set(t.Context(), 6))
		synctest.Wait()
		n, err = get()
		require.NoError(t, err)
		require.EqualValues(t, 6, n)
		require.NoError(t, client.Close())
		synctest.Wait()
		n, err = get()
		require.ErrorIs(t, err, framework.ErrClosed)
		require.EqualValues(t, 6, n)
	})
}

// fragment initialize
func initialize(
	ctx context.Context, client *framework.Client, path string, first int64,
) (bool, error) {
	data := binary.BigEndian.AppendUint64(nil, uint64(first))
	_, err := client.Create(ctx, path, data, framework.Parents())
	if errors.Is(err, zk.ErrNodeExists) {
		return false, nil
	}
	return err == nil, err
}

// end

func Example_initialize() {
	run(func(ctx context.Context, client *framework.Client, _ *zktest.Server) error {
		for range 2 {
			fmt.Println(initialize(ctx, client, "/counters/orders", 0))
		}
		fmt.Println(initialize(ctx, client, "/counters/returns", -7))
		returns, err := counter.NewAtomic(client, "/counters/returns")
		if err != nil {
			return err
		}
		fmt.Println(returns.Get(ctx))
		return nil
	})
	// Output:
	// true <nil>
	// false <nil>
	// true <nil>
	// -7 <nil>
}

// A time that is over is an error of the call, and not of the caller's context.
func TestBarrierThatIsNotPassedInTime(t *testing.T) {
	srv := zktest.Start(t)
	client := connect(srv)
	defer client.Close()
	closed, err := barrier.New(client, "/barriers/start")
	require.NoError(t, err)
	require.NoError(t, closed.Set(t.Context()))
	round, err := barrier.NewDouble(client, "/barriers/round-7", 2)
	require.NoError(t, err)
	limited, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, entered := round.Enter(limited)
	for _, err := range []error{closed.Wait(limited), entered} {
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, recipes.ErrNotAcquired)
	}
	require.NoError(t, t.Context().Err())
}

func Example_barrier() {
	run(func(ctx context.Context, client *framework.Client, _ *zktest.Server) error {
		// fragment barrier
		start, err := barrier.New(client, "/barriers/start")
		if err != nil {
			return err
		}
		if err := start.Set(ctx); err != nil {
			return err
		}
		passed := make(chan error)
		go func() { passed <- start.Wait(ctx) }() // in other processes
		if err := start.Remove(ctx); err != nil {
			return err
		}
		// end
		fmt.Println(<-passed)
		return nil
	})
	// Output:
	// <nil>
}

// fragment double-barrier
func takePart(ctx context.Context, client *framework.Client) error {
	round, err := barrier.NewDouble(client, "/barriers/round-7", 5)
	if err != nil {
		return err
	}
	entry, err := round.Enter(ctx)
	if err != nil {
		return err
	}
	if err := work(ctx); err != nil {
		return errors.Join(err, entry.Leave(ctx))
	}
	return entry.Leave(ctx)
}

// end

func Example_doubleBarrier() {
	run(func(ctx context.Context, client *framework.Client, srv *zktest.Server) error {
		left := make(chan error)
		for range 5 {
			go func() { left <- takePart(ctx, client) }()
		}
		var err error
		for range 5 {
			err = errors.Join(err, <-left)
		}
		fmt.Println("left:", srv.Exists("/barriers/round-7/ready"))
		return err
	})
	// Output:
	// working
	// working
	// working
	// working
	// working
	// left: false
}

// fragment persistent-node
func register(
	ctx context.Context, client *framework.Client, address string,
) (*persistent.Node, error) {
	node, err := persistent.New(client, "/services/host-3", []byte(address))
	if err != nil {
		return nil, err
	}
	if err := node.Start(ctx); err != nil { // until ctx ends or Close
		return nil, err
	}
	ready, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := node.WaitReady(ready); err != nil { // until it is there
		return nil, errors.Join(err, node.Close())
	}
	return node, nil
}

// end

func Example_persistentNode() {
	run(func(ctx context.Context, client *framework.Client, srv *zktest.Server) error {
		node, err := register(ctx, client, "10.0.0.3:8080")
		if err != nil {
			return err
		}
		fmt.Print(srv.Exists("/services/host-3"), " ")
		err = node.Close()
		fmt.Println(srv.Exists("/services/host-3"))
		return err
	})
	// Output:
	// true false
}

// fragment membership
func beMember(
	ctx context.Context, client *framework.Client, changed func(group.Change),
) error {
	member, err := group.Join(ctx, client, "/group", "host-3", nil)
	if err != nil {
		return err
	}
	defer member.Close()
	members, err := group.Members(ctx, client, "/group")
	if err != nil {
		return err
	}
	fmt.Println(len(members), "members")
	for change, err := range group.Observe(ctx, client, "/group") {
		if framework.IsTransient(err) {
			continue // the changes follow when the group is known again
		}
		if err != nil {
			return err
		}
		changed(change)
	}
	return context.Cause(ctx)
}

// end

func Example_membership() {
	run(func(ctx context.Context, client *framework.Client, _ *zktest.Server) error {
		ctx, stop := context.WithCancel(ctx)
		err := beMember(ctx, client, func(c group.Change) {
			fmt.Println(c.Kind, c.Member.ID)
			stop()
		})
		fmt.Println(errors.Is(err, context.Canceled))
		return nil
	})
	// Output:
	// 1 members
	// added host-3
	// true
}

// fragment test-server
func TestWorkEndsWithTheLock(t *testing.T) {
	srv := zktest.Start(t) // TestingServer; closes itself
	client, err := framework.New(srv.Addr())
	require.NoError(t, err)
	defer client.Close()
	mu, err := mutex.New(client, "/locks/orders")
	require.NoError(t, err)
	hold, err := mu.Acquire(t.Context())
	require.NoError(t, err)
	require.NoError(t, srv.Sessions()[0].Expire()) // KillSession
	<-hold.Done()
	require.ErrorIs(t, hold.Err(), framework.ErrSessionLost)
}

// end
