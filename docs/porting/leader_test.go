package porting

import (
	"context"
	"errors"
	"fmt"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/leader"
	"github.com/docent-zk/docent/zktest"
)

// fragment latch
func serve(ctx context.Context, client *framework.Client) (err error) {
	latch, err := leader.NewLatch(client, "/service/leader", leader.WithID("host-3"))
	if err != nil {
		return err
	}
	latch.Listen(func(c leader.Change) {
		if c.Err == nil {
			lead()
		} else {
			follow()
		}
	})
	if err := latch.Start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, latch.Close()) }()
	term, err := latch.Await(ctx)
	if err != nil {
		return err
	}
	return work(term.Context(ctx)) // the context ends with the leadership
}

// end

// told is sent to when the listener of a latch has been told that the latch leads, or does not lead any more.
var told = make(chan struct{}, 2)

func lead()   { fmt.Println("leading"); told <- struct{}{} }
func follow() { fmt.Println("following"); told <- struct{}{} }

func Example_latch() {
	run(func(ctx context.Context, client *framework.Client, _ *zktest.Server) error {
		if err := serve(ctx, client); err != nil {
			return err
		}
		for range 2 {
			select {
			case <-told:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	// Unordered output:
	// leading
	// working
	// following
}

func Example_selector() {
	run(func(ctx context.Context, client *framework.Client, _ *zktest.Server) error {
		ctx, stop := context.WithCancel(ctx)
		reconcile := func(ctx context.Context, _ int64) error {
			fmt.Println("leading")
			stop()
			return context.Cause(ctx)
		}
		// fragment selector
		election, err := leader.New(client, "/service/leader",
			leader.WithID("host-3"))
		if err != nil {
			return err
		}
		done := make(chan error)
		go func() {
			done <- election.Run(ctx,
				func(ctx context.Context, t *leader.Term) error {
					return reconcile(ctx, t.Token()) // until ctx ends
				})
		}()
		// end
		fmt.Println("stopped:", errors.Is(<-done, context.Canceled))
		return nil
	})
	// Output:
	// leading
	// stopped: true
}

func Example_oneTerm() {
	run(func(ctx context.Context, client *framework.Client, _ *zktest.Server) error {
		takeLeadership := func(context.Context, *leader.Term) error { return work(ctx) }
		// fragment one-term
		never := func(error) bool { return false }
		election, err := leader.New(client, "/service/leader",
			leader.WithRequeue(never))
		if err != nil {
			return err
		}
		err = election.Run(ctx, takeLeadership) // leads once; again: Run
		// end
		return err
	})
	// Output:
	// working
}

func Example_participants() {
	run(func(ctx context.Context, client *framework.Client, _ *zktest.Server) error {
		latch, err := leader.NewLatch(client, "/service/leader", leader.WithID("host-3"))
		if err != nil {
			return err
		}
		defer latch.Close()
		if err := latch.Start(ctx); err != nil {
			return err
		}
		if _, err := latch.Await(ctx); err != nil {
			return err
		}
		// fragment participants
		queue, err := latch.Participants(ctx)
		if err != nil {
			return err
		}
		for _, p := range queue { // the leader first
			fmt.Println(string(p.Data), p.Holds)
		}
		for now, err := range leader.Observe(ctx, client, "/service/leader") {
			fmt.Println("now:", string(now.Data), err) // and again after each change
			break
		}
		// end
		return nil
	})
	// Output:
	// host-3 true
	// now: host-3 <nil>
}
