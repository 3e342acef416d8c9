package etcdlock_test

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/docent-zk/docent/contrib/etcdlock"
	"github.com/docent-zk/docent/recipes"
)

// This function is on the page README.md.
var _ = withLock

// fragment etcd-lock
func withLock(ctx context.Context, endpoints []string, write func(context.Context, int64) error) error {
	etcd, err := clientv3.New(clientv3.Config{
		Endpoints: endpoints, DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 2 * time.Second,
	})
	if err != nil {
		return err
	}
	defer etcd.Close()
	client, err := etcdlock.NewClient(etcd)
	if err != nil {
		return err
	}
	defer client.Close()
	lock, err := etcdlock.New(client, "locks/orders")
	if err != nil {
		return err
	}
	return lock.Do(ctx, func(ctx context.Context, hold *recipes.Hold) error {
		return write(ctx, hold.Token()) // ctx ends with the hold
	})
}

// end
