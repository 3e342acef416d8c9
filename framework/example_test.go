package framework_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/zktest"
)

// connect returns a client of a test server. A program calls framework.New with its own servers.
func connect() (client *framework.Client, stop func()) {
	server, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	client, err = framework.New(server.Addr())
	if err != nil {
		log.Fatal(err)
	}
	return client, func() {
		client.Close()
		server.Close()
	}
}

func Example() {
	client, stop := connect()
	defer stop()
	ctx := context.Background()

	path, err := client.Create(ctx, "/config/limit", []byte("5"), framework.Parents())
	if err != nil {
		log.Fatal(err)
	}
	data, stat, err := client.Get(ctx, path)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s is %s\n", path, data)
	if _, err := client.Set(ctx, path, []byte("6"), stat.Version); err != nil {
		log.Fatal(err)
	}
	_, err = client.Set(ctx, path, []byte("7"), stat.Version) // another program might have set it meanwhile
	fmt.Println(errors.Is(err, zk.ErrBadVersion), framework.OutcomeOf(err))
	// Output:
	// /config/limit is 5
	// true not applied
}

// All operations of a transaction are applied, or none.
func ExampleClient_Multi() {
	client, stop := connect()
	defer stop()
	ctx := context.Background()

	_, err := client.Multi(ctx,
		framework.CreateOp("/orders", nil),
		framework.CreateOp("/orders/7", []byte("tea")),
		framework.CheckOp("/customers", 0), // there is none
	)
	fmt.Println(errors.Is(err, zk.ErrNoNode))
	_, err = client.Exists(ctx, "/orders")
	fmt.Println(errors.Is(err, zk.ErrNoNode))
	// Output:
	// true
	// true
}

// An ephemeral node belongs to one session. What is done through a Session is never repeated in the next
// one.
func ExampleClient_Session() {
	client, stop := connect()
	defer stop()
	ctx := context.Background()

	session, err := client.Session(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := session.Create(ctx, "/worker", nil, framework.Ephemeral()); err != nil {
		log.Fatal(err)
	}
	_, stat, err := client.Get(ctx, "/worker")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(stat.EphemeralOwner == session.ID(), session.Err())
	// Output: true <nil>
}
