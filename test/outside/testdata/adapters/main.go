// Adapters uses each module below contrib. Its argument is the address of a ZooKeeper server.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/alicebob/miniredis/v2"
	_ "github.com/jackc/pgx/v5/stdlib"
	registry "github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"
	sdk "go.opentelemetry.io/otel/sdk/metric"

	"github.com/docent-zk/docent/contrib/etcdlock"
	oteldocent "github.com/docent-zk/docent/contrib/otel"
	promdocent "github.com/docent-zk/docent/contrib/prometheus"
	"github.com/docent-zk/docent/contrib/redislock"
	"github.com/docent-zk/docent/contrib/sqllock"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/framework/metrics"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
)

func main() {
	for _, use := range []func() error{prometheus, otel, redisLock, etcdLock, sqlLock} {
		if err := use(); err != nil {
			log.Fatal(err)
		}
	}
}

func prometheus() error {
	adapter, err := promdocent.New(registry.NewRegistry())
	if err != nil {
		return err
	}
	return measured("prometheus", adapter)
}

func otel() error {
	adapter, err := oteldocent.New(sdk.NewMeterProvider().Meter("docent"))
	if err != nil {
		return err
	}
	return measured("otel", adapter)
}

// measured acquires a lock of ZooKeeper with an adapter of metrics.
func measured(name string, adapter metrics.Metrics) (err error) {
	client, err := framework.New(os.Args[1], framework.WithMetrics(adapter))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	lock, err := mutex.New(client, "/locks/"+name)
	if err != nil {
		return err
	}
	return acquire(name, lock)
}

func acquire(name string, lock recipes.Locker) error {
	return recipes.Do(context.Background(), lock, func(_ context.Context, hold *recipes.Hold) error {
		_, err := fmt.Println(name, hold.Token() > 0)
		return err
	})
}

func redisLock() error {
	server, err := miniredis.Run()
	if err != nil {
		return err
	}
	defer server.Close()
	options := &redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: true}
	client, err := redislock.NewClient(redis.NewClient(options))
	if err != nil {
		return err
	}
	defer client.Close()
	lock, err := redislock.New(client, "orders")
	if err != nil {
		return err
	}
	return acquire("redislock", lock)
}

// There is no server of etcd: nothing is asked of it.
func etcdLock() (err error) {
	servers, err := clientv3.New(clientv3.Config{Endpoints: []string{"127.0.0.1:1"}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, servers.Close()) }()
	client, err := etcdlock.NewClient(servers)
	if err != nil {
		return err
	}
	defer client.Close()
	_, err = etcdlock.New(client, "locks/orders")
	fmt.Println("etcdlock", err == nil)
	return err
}

// There is no database: nothing is asked of it.
func sqlLock() (err error) {
	db, err := sql.Open("pgx", "postgres://127.0.0.1:1/orders")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	client, err := sqllock.NewClient(db, sqllock.PostgreSQL)
	if err != nil {
		return err
	}
	defer client.Close()
	_, err = sqllock.New(client, "orders")
	fmt.Println("sqllock", err == nil)
	return err
}
