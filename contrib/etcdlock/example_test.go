package etcdlock_test

import (
	"context"
	"fmt"
	"log"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/docent-zk/docent/contrib/etcdlock"
	"github.com/docent-zk/docent/recipes"
)

func Example() {
	servers, err := clientv3.New(clientv3.Config{
		Endpoints:         []string{etcd.addr}, // of the test
		DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 2 * time.Second,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer servers.Close()
	client, err := etcdlock.NewClient(servers)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	lock, err := etcdlock.New(client, "locks/orders")
	if err != nil {
		log.Fatal(err)
	}
	err = lock.Do(context.Background(), func(ctx context.Context, hold *recipes.Hold) error {
		fmt.Println("valid:", hold.Err() == nil, "token:", hold.Token() > 0)
		_, err := lock.TryAcquire(ctx)
		fmt.Println(err)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// valid: true token: true
	// acquire locks/orders: recipes: not acquired: held by another client
}

// A transaction is applied only while the hold's key exists.
func ExampleClient_Cmp() {
	servers, err := clientv3.New(clientv3.Config{Endpoints: []string{etcd.addr}})
	if err != nil {
		log.Fatal(err)
	}
	defer servers.Close()
	client, err := etcdlock.NewClient(servers)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	lock, err := etcdlock.New(client, "locks/counter")
	if err != nil {
		log.Fatal(err)
	}
	err = lock.Do(context.Background(), func(ctx context.Context, hold *recipes.Hold) error {
		cmp, err := client.Cmp(hold)
		if err != nil {
			return err
		}
		done, err := servers.Txn(ctx).If(cmp).Then(clientv3.OpPut("counter", "7")).Commit()
		if err != nil {
			return err
		}
		fmt.Println("applied:", done.Succeeded)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: applied: true
}
