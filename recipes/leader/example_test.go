package leader_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/leader"
	"github.com/docent-zk/docent/zktest"
)

// connect returns a client of a test server. A program calls
// framework.New("zk1:2181,zk2:2181,zk3:2181").
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

// The function runs while this program leads.
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
			return nil // then another candidate leads, or this one again
		}
		stop()
		<-ctx.Done() // the leadership is lost, or Run has to return
		return context.Cause(ctx)
	})
	fmt.Println("stopped:", errors.Is(err, context.Canceled))
	// Output:
	// term 1 is valid: true
	// term 2 is valid: true
	// stopped: true
}

// A Latch is a candidate in the background, as a part of a program that is started and closed.
func ExampleLatch() {
	client, closeAll := connect()
	defer closeAll()
	l, err := leader.NewLatch(client, "/service/leader", leader.WithID("host-3"))
	if err != nil {
		fmt.Println(err)
		return
	}
	ended := make(chan error, 1)
	l.Listen(func(c leader.Change) { // on a goroutine of its own
		if c.Err != nil {
			ended <- c.Err
		}
	})
	ctx := context.Background()
	if err := l.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}

	t, err := l.Await(ctx) // or call l.Term now and then
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = t.Guard(ctx, framework.CreateOp("/service/state", []byte("mine"))) // applied only while this program leads
	fmt.Println("written:", err == nil, "leads:", l.Term() != nil)
	fmt.Println("closed:", l.Close())
	fmt.Println("leads:", l.Term() != nil)
	fmt.Println("the term has ended:", <-ended)
	// Output:
	// written: true leads: true
	// closed: <nil>
	// leads: false
	// the term has ended: recipes: not held
}

// A program that is no candidate observes the leader and each change.
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
	for participant, err := range leader.Observe(ctx, client, "/service/leader") {
		switch {
		case err != nil:
			fmt.Println("not known:", err) // the sequence continues after a temporary error
		case !participant.Holds:
			fmt.Println("no candidate leads")
			_ = l.Start(ctx)
		default:
			fmt.Printf("%s leads\n", participant.Data)
			return
		}
	}
	// Output:
	// no candidate leads
	// host-3 leads
}
