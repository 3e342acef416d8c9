package leader_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/leader"
	"github.com/docent-zk/docent/zktest"
)

// connect makes a client of a server for tests. A program that stands for election has framework.New("zk1:2181,zk2:2181,zk3:2181").
func connect() (client *framework.Client, closeAll func()) {
	srv, err := zktest.New()
	if err != nil {
		panic(err)
	}
	client, err = framework.New(srv.Addr())
	if err != nil {
		panic(err)
	}
	return client, func() { _ = client.Close(); srv.Close() }
}

// A function that runs wherever we lead, and for as long as we do.
func ExampleElection_Run() {
	client, closeAll := connect()
	defer closeAll()
	e, err := leader.New(client, "/service/leader", leader.WithID("host-3"))
	if err != nil {
		fmt.Println(err)
		return
	}

	ctx, stop := context.WithCancel(context.Background()) // signal.NotifyContext in a program
	defer stop()
	terms := 0
	err = e.Run(ctx, func(ctx context.Context, t *leader.Term) error {
		terms++
		fmt.Println("term", terms, "is valid:", t.Err() == nil)
		if terms == 1 {
			return nil // another leads, or we do again
		}
		stop()
		<-ctx.Done() // the leadership is lost, or somebody wants us to stop
		return context.Cause(ctx)
	})
	fmt.Println("stopped:", errors.Is(err, context.Canceled))
	// Output:
	// term 1 is valid: true
	// term 2 is valid: true
	// stopped: true
}

// A candidate that stands in the background, as a part of something that is started and closed.
func ExampleLatch() {
	client, closeAll := connect()
	defer closeAll()
	l, err := leader.NewLatch(client, "/service/leader", leader.WithID("host-3"), leader.WithCloseMode(leader.NotifyLeader))
	if err != nil {
		fmt.Println(err)
		return
	}
	l.Listen(func(c leader.Change) {
		if c.Err != nil {
			fmt.Println("the term has ended:", c.Err)
		}
	})
	ctx := context.Background()
	if err := l.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}

	t, err := l.Await(ctx) // or go on, and ask l.Term now and then
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = t.Guard(ctx, framework.CreateOp("/service/state", []byte("mine"))) // only while we lead
	fmt.Println("written:", err == nil, "leads:", l.Term() != nil)
	fmt.Println("closed:", l.Close())
	fmt.Println("leads:", l.Term() != nil)
	// Output:
	// written: true leads: true
	// the term has ended: recipes: not held
	// closed: <nil>
	// leads: false
}

// Who does not stand for election sees who leads, now and whenever that changes.
func ExampleObserve() {
	client, closeAll := connect()
	defer closeAll()
	l, err := leader.NewLatch(client, "/service/leader", leader.WithID("host-3"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Close()

	ctx := context.Background()
	for who, err := range leader.Observe(ctx, client, "/service/leader") {
		switch {
		case err != nil:
			fmt.Println("not known:", err) // the sequence goes on if that may pass
		case !who.Leader:
			fmt.Println("nobody leads")
			_ = l.Start(ctx)
		default:
			fmt.Println(who.ID, "leads")
			return
		}
	}
	// Output:
	// nobody leads
	// host-3 leads
}
