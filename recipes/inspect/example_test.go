package inspect_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/inspect"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/recipes/rwlock"
	"github.com/docent-zk/docent/zktest"
)

// exampleClient returns a client of a server in this process. A program has real servers.
func exampleClient() (client *framework.Client, stop func(), err error) {
	srv, err := zktest.New()
	if err != nil {
		return nil, nil, err
	}
	client, err = framework.New(srv.Addr())
	if err != nil {
		srv.Close()
		return nil, nil, err
	}
	return client, func() {
		client.Close()
		srv.Close()
	}, nil
}

// An operator lists all locks below a path.
func ExampleWalk() {
	client, stop, err := exampleClient()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()
	ctx := context.Background()
	orders, err := mutex.New(client, "/locks/orders")
	if err != nil {
		fmt.Println(err)
		return
	}
	prices, err := rwlock.New(client, "/locks/prices")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, lock := range []recipes.Locker{orders, prices.Read(), prices.Read()} {
		hold, err := lock.Acquire(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer func() { _ = hold.Release() }()
	}

	for object, err := range inspect.Walk(ctx, client, "/locks") {
		if object == nil {
			fmt.Println(err) // the walk has ended before it was complete
			return
		}
		if err != nil {
			fmt.Println(err) // this node may not be read
			continue
		}
		fmt.Println(object.Path, object.Kind, object.State, object.Holders)
	}
	// Output:
	// /locks/orders mutex held 1
	// /locks/prices rwlock held 2
}

// An operator ends the hold of a process that does not answer.
func ExampleBreak() {
	client, stop, err := exampleClient()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()
	ctx := context.Background()
	orders, err := mutex.New(client, "/locks/orders")
	if err != nil {
		fmt.Println(err)
		return
	}
	hold, err := orders.Acquire(ctx) // in another process
	if err != nil {
		fmt.Println(err)
		return
	}

	object, err := inspect.Show(ctx, client, "/locks/orders")
	if err != nil {
		fmt.Println(err)
		return
	}
	token, err := inspect.Break(ctx, client, object.Nodes[0])
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("a resource must refuse the token of the hold:", int64(token) == hold.Token())
	<-hold.Done() // the holder notices a moment later
	fmt.Println(errors.Is(hold.Err(), recipes.ErrNodeDeleted))
	// Output:
	// a resource must refuse the token of the hold: true
	// true
}
