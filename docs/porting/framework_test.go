package porting

import (
	"context"
	"errors"
	"fmt"
	"path"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

func Example_builder() {
	run(func(ctx context.Context, _ *framework.Client, srv *zktest.Server) error {
		servers := srv.Addr()
		onlyFor := func(path string) []zk.ACL { return zk.DigestACL(zk.PermAll, "orders", "secret") }
		if err := srv.Create("/shop", nil); err != nil {
			return err
		}
		// fragment builder
		client, err := framework.New(servers,
			framework.WithNamespace("shop"),
			framework.WithSessionTimeout(40*time.Second),
			framework.WithConnectTimeout(5*time.Second),
			framework.WithRetry(retry.Exponential(time.Second, 3)),
			framework.WithAuth("digest", []byte("orders:secret")),
			framework.WithACL(onlyFor),
			framework.WithLossPolicy(framework.UntilDeadline))
		if err != nil {
			return err
		}
		// end
		defer client.Close()
		path, err := client.Create(ctx, "/orders", nil)
		fmt.Println(path, err)
		fmt.Print(srv.Tree())
		return nil
	})
	// Output:
	// /orders <nil>
	// /shop
	// /shop/orders acl [{31 digest orders:08sob9dMDb87qFrxEU6Yzq8j3HU=}]
}

func Example_operations() {
	run(func(ctx context.Context, client *framework.Client, srv *zktest.Server) error {
		data, newer := []byte("a"), []byte("b")
		// fragment operations
		path, err := client.Create(ctx, "/jobs/job-", data,
			framework.Parents(), framework.Ephemeral(),
			framework.Sequential(), framework.Protected())
		if err != nil {
			return err
		}
		read, stat, err := client.Get(ctx, path)
		if err != nil {
			return err
		}
		if _, err := client.Set(ctx, path, newer, stat.Version); err != nil {
			return err
		}
		names, _, err := client.Children(ctx, "/jobs")
		if err != nil {
			return err
		}
		if err := client.DeleteGuaranteed(ctx, path); err != nil {
			return err
		}
		_, err = client.Exists(ctx, path)
		deleted := errors.Is(err, zk.ErrNoNode)
		// end
		fmt.Printf("read %q at version %d, one of %d, deleted: %v\n", read, stat.Version, len(names), deleted)
		return nil
	})
	// Output:
	// read "a" at version 0, one of 1, deleted: true
}

// fragment create-or-set
func put(
	ctx context.Context, client *framework.Client, path string, data []byte,
) error {
	_, err := client.Create(ctx, path, data,
		framework.OrSet(), framework.Parents())
	return err
}

// end

// fragment parents
func createStaying(
	ctx context.Context, client *framework.Client, node string, data []byte,
) error {
	_, err := client.Create(ctx, node, data)
	if !errors.Is(err, zk.ErrNoNode) || node == "/" {
		return err // for "/": the chroot does not exist
	}
	err = createStaying(ctx, client, path.Dir(node), nil)
	if err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return err
	}
	_, err = client.Create(ctx, node, data)
	return err
}

// end

// fragment delete-all
func deleteAll(
	ctx context.Context, client *framework.Client, path string,
) error {
	return ifThere(client.DeleteRecursive(ctx, path))
}

func ifThere(err error) error { // ignores that the node is missing
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}

// end

func Example_trees() {
	run(func(ctx context.Context, client *framework.Client, srv *zktest.Server) error {
		err := errors.Join(
			put(ctx, client, "/app/config", []byte("old")),
			put(ctx, client, "/app/config", []byte("new")),
			put(ctx, client, "/app/a/b", nil),
			createStaying(ctx, client, "/stock/shoes/red", []byte("7")))
		fmt.Print(srv.Tree())
		err = errors.Join(err,
			deleteAll(ctx, client, "/app"),
			deleteAll(ctx, client, "/app"),
			deleteAll(ctx, client, "/stock"))
		fmt.Printf("left: %q\n", srv.Tree())
		return err
	})
	// Output:
	// /app container
	// /app/a container
	// /app/a/b
	// /app/config "new"
	// /stock
	// /stock/shoes
	// /stock/shoes/red "7"
	// left: ""
}

func TestCreateStayingWithoutTheChroot(t *testing.T) {
	srv := zktest.Start(t)
	for chroot, want := range map[string]error{"/app": nil, "/none/app": zk.ErrNoNode} {
		client, err := framework.New(srv.Addr() + chroot)
		require.NoError(t, err)
		defer client.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err = createStaying(ctx, client, "/stock/shoes", nil)
		require.ErrorIs(t, err, want)
		require.NoError(t, ctx.Err(), "it asked until the deadline")
	}
	require.Equal(t, "/app\n/app/stock\n/app/stock/shoes\n", srv.Tree())
}

func Example_transaction() {
	run(func(ctx context.Context, client *framework.Client, srv *zktest.Server) error {
		data, old := []byte("new"), int32(0)
		err := errors.Join(srv.Create("/config", nil), srv.Create("/draft", nil))
		if err != nil {
			return err
		}
		// fragment transaction
		results, err := client.Multi(ctx,
			framework.CheckOp("/config", old),
			framework.SetOp("/config", data, -1),
			framework.CreateOp("/history-", data, framework.Sequential()),
			framework.DeleteOp("/draft", -1))
		if err != nil {
			return err // results say which operation failed
		}
		entry := results[2].Path
		// end
		fmt.Println(entry, results[1].Stat.Version)
		fmt.Print(srv.Tree())
		return nil
	})
	// Output:
	// /history-0000000002 1
	// /config "new"
	// /history-0000000002 "new"
}

// fragment watch
func followNode(
	ctx context.Context, client *framework.Client, path string, changed func([]byte),
) error {
	for {
		data, _, watch, err := client.GetW(ctx, path)
		if client.Outlast(ctx, err) {
			continue
		}
		if err != nil {
			return err // zk.ErrNoNode: the node does not exist
		}
		changed(data)
		select {
		case <-watch.Fired(): // read again
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// end

func Example_watch() {
	run(func(ctx context.Context, client *framework.Client, srv *zktest.Server) error {
		if err := srv.Create("/config", []byte("old")); err != nil {
			return err
		}
		err := followNode(ctx, client, "/config", func(data []byte) {
			fmt.Printf("%s\n", data)
			if string(data) == "old" {
				_ = srv.Set("/config", []byte("new"))
			} else {
				_ = srv.Delete("/config")
			}
		})
		fmt.Println("deleted:", errors.Is(err, zk.ErrNoNode))
		return nil
	})
	// Output:
	// old
	// new
	// deleted: true
}

func Example_background() {
	run(func(ctx context.Context, client *framework.Client, _ *zktest.Server) error {
		callback := func(path string, err error) { fmt.Println(path, err) }
		// fragment background
		done := make(chan struct{})
		go func() {
			defer close(done)
			path, err := client.Create(ctx, "/report", nil)
			callback(path, err)
		}()
		// end
		<-done
		return nil
	})
	// Output:
	// /report <nil>
}

func Example_backgroundOrder() {
	run(func(ctx context.Context, client *framework.Client, srv *zktest.Server) error {
		failed := func(err error) { fmt.Println("failed:", err) }
		// fragment background-order
		ops, done := make(chan job, 100), make(chan struct{})
		go func() {
			defer close(done)
			for do := range ops { // one after another, in the order of the sends
				if err := do(ctx); err != nil {
					failed(err)
				}
			}
		}()
		ops <- func(ctx context.Context) error {
			_, err := client.Create(ctx, "/report", nil)
			return err
		}
		ops <- func(ctx context.Context) error { // begins after the create
			_, err := client.Create(ctx, "/report/page", nil)
			return err
		}
		close(ops)
		// end
		<-done
		fmt.Print(srv.Tree())
		return nil
	})
	// Output:
	// /report
	// /report/page
}

func Example_retryLoop() {
	run(func(ctx context.Context, client *framework.Client, srv *zktest.Server) error {
		if err := srv.Create("/config", []byte("data")); err != nil {
			return err
		}
		srv.On(fault.Match{Op: fault.OpGetData, Times: 2}, fault.DropBefore())
		policy := retry.Times(3, 10*time.Millisecond)
		var data []byte
		// fragment retry-loop
		err := retry.Do(ctx, policy, framework.IsTransient,
			func(ctx context.Context) (err error) {
				data, _, err = client.Get(ctx, "/config")
				return err
			})
		// end
		fmt.Printf("%s %v\n", data, err)
		return nil
	})
	// Output:
	// data <nil>
}
