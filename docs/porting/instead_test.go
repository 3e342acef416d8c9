package porting

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/counter"
	"github.com/docent-zk/docent/recipes/group"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/recipes/persistent"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
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

// fragment barrier
func setBarrier(
	ctx context.Context, client *framework.Client, path string,
) error {
	_, err := client.Create(ctx, path, nil, framework.Parents())
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return err
}

func removeBarrier(
	ctx context.Context, client *framework.Client, path string,
) error {
	return ifThere(client.Delete(ctx, path, -1))
}

func waitOnBarrier(
	ctx context.Context, client *framework.Client, path string,
) error {
	for {
		stat, watch, err := client.ExistsW(ctx, path)
		if client.Outlast(ctx, err) {
			continue // as with a watch
		}
		if err != nil || stat == nil {
			return err // nil: the barrier is not set
		}
		select {
		case <-watch.Fired():
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// end

func Example_barrier() {
	run(func(ctx context.Context, client *framework.Client, srv *zktest.Server) error {
		err := errors.Join(setBarrier(ctx, client, "/barriers/start"), setBarrier(ctx, client, "/barriers/start"))
		if err != nil {
			return err
		}
		asked := srv.On(fault.Match{Op: fault.OpExists}, fault.Pass())
		var open atomic.Bool
		passed := make(chan error)
		go func() {
			err := waitOnBarrier(ctx, client, "/barriers/start")
			fmt.Println("passed when it was open:", open.Load())
			passed <- err
		}()
		if err := asked.Wait(ctx); err != nil {
			return err
		}
		for range 3 { // answered after the request of the waiter
			if err := client.Sync(ctx, "/"); err != nil {
				return err
			}
		}
		open.Store(true)
		if err := errors.Join(removeBarrier(ctx, client, "/barriers/start"), <-passed); err != nil {
			return err
		}
		fmt.Println("a removed barrier:", waitOnBarrier(ctx, client, "/barriers/start"))
		return nil
	})
	// Output:
	// passed when it was open: true
	// a removed barrier: <nil>
}

// fragment double-barrier
// enter waits until the barrier has the given number of members. The name must
// be unique among them. The path of the barrier must be unique to the round.
func enter(
	ctx context.Context, client *framework.Client, barrier, name string, members int,
) error {
	for {
		opened, err := arrive(ctx, client, barrier, name, members)
		if opened || err != nil && !client.Outlast(ctx, err) { // as with a watch
			return err
		}
	}
}

// arrive creates the member's node, and the node ready if there are enough
// members. Otherwise it waits for a change.
func arrive(
	ctx context.Context, client *framework.Client, barrier, name string, members int,
) (opened bool, err error) {
	session, err := client.Session(ctx)
	if err != nil {
		return false, err
	}
	own, ready := barrier+"/"+name, barrier+"/ready"
	_, err = session.Create(ctx, own, nil, framework.Ephemeral(), framework.Parents())
	if err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return false, err
	}
	stat, deleted, err := session.ExistsW(ctx, own) // may be of the last session
	if err != nil || stat == nil {
		return false, err
	}
	stat, open, err := session.ExistsW(ctx, ready)
	if err != nil || stat != nil {
		return stat != nil, err
	}
	names, _, err := session.Children(ctx, barrier)
	if err != nil {
		return false, err
	}
	if len(names) >= members {
		_, err = session.Create(ctx, ready, nil)
		if err == nil || errors.Is(err, zk.ErrNodeExists) {
			return true, nil
		}
		return false, ifThere(err)
	}
	select {
	case <-open.Fired():
	case <-deleted.Fired():
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	return false, nil
}

// leave waits until all members have left.
func leave(
	ctx context.Context, client *framework.Client, barrier, name string,
) error {
	for {
		left, err := depart(ctx, client, barrier, name)
		if left || err != nil && !client.Outlast(ctx, err) {
			return err
		}
	}
}

func depart(
	ctx context.Context, client *framework.Client, barrier, name string,
) (left bool, err error) {
	if err := ifThere(client.Delete(ctx, barrier+"/"+name, -1)); err != nil {
		return false, err
	}
	names, _, watch, err := client.ChildrenW(ctx, barrier)
	if err != nil {
		return errors.Is(err, zk.ErrNoNode), ifThere(err)
	}
	if len(names) == 0 || len(names) == 1 && names[0] == "ready" {
		err := ifThere(client.Delete(ctx, barrier+"/ready", -1))
		return err == nil, err
	}
	select {
	case <-watch.Fired():
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	return false, nil
}

// end

func Example_doubleBarrier() {
	run(func(ctx context.Context, client *framework.Client, srv *zktest.Server) error {
		other := connect(srv)
		defer other.Close()
		entered, worked, left := make(chan error), make(chan struct{}), make(chan error)
		go func() {
			entered <- enter(ctx, other, "/barriers/round-7", "host-2", 2)
			<-worked
			left <- leave(ctx, other, "/barriers/round-7", "host-2")
		}()
		err := errors.Join(enter(ctx, client, "/barriers/round-7", "host-1", 2), <-entered)
		fmt.Print(srv.Tree())
		close(worked)
		err = errors.Join(err, leave(ctx, client, "/barriers/round-7", "host-1"), <-left)
		fmt.Println("left:", srv.Exists("/barriers/round-7/ready"))
		return err
	})
	// Output:
	// /barriers container
	// /barriers/round-7 container
	// /barriers/round-7/host-1 ephemeral of s1
	// /barriers/round-7/host-2 ephemeral of s2
	// /barriers/round-7/ready
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
	if err := node.Start(ctx); err != nil {
		return nil, err
	}
	return node, node.WaitReady(ctx) // until it is there
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
