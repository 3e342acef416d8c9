package barrier_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/barrier"
	"github.com/docent-zk/docent/zktest"
)

// withClient calls fn with a client of a server in this process. A program connects to the real ones.
func withClient(fn func(ctx context.Context, client *framework.Client) error) {
	srv, err := zktest.New()
	if err != nil {
		panic(err)
	}
	defer srv.Close()
	client, err := framework.New(srv.Addr())
	if err != nil {
		panic(err)
	}
	defer client.Close()
	if err := fn(context.Background(), client); err != nil {
		fmt.Println(err)
	}
}

// One program closes a barrier and opens it when all is ready. The others wait.
func ExampleBarrier() {
	withClient(func(ctx context.Context, client *framework.Client) error {
		gate, err := barrier.New(client, "/jobs/gate")
		if err != nil {
			return err
		}
		if err := gate.Set(ctx); err != nil {
			return err
		}
		passed := make(chan error)
		go func() { passed <- gate.Wait(ctx) }() // another program
		fmt.Println("ready")
		if err := gate.Remove(ctx); err != nil {
			return err
		}
		fmt.Println(<-passed)
		return nil
	})
	// Output:
	// ready
	// <nil>
}

// Three members work inside a double barrier. None leaves before all have worked.
func ExampleDouble() {
	withClient(func(ctx context.Context, client *framework.Client) error {
		double, err := barrier.NewDouble(client, "/jobs/import-7", 3)
		if err != nil {
			return err
		}
		var members sync.WaitGroup
		for range 3 { // each in a program of its own
			members.Go(func() {
				entry, err := double.Enter(ctx)
				if err != nil {
					fmt.Println(err)
					return
				}
				fmt.Println("work")
				if err := entry.Leave(ctx); err != nil {
					fmt.Println(err)
					return
				}
				fmt.Println("all have worked")
			})
		}
		members.Wait()
		return nil
	})
	// Output:
	// work
	// work
	// work
	// all have worked
	// all have worked
	// all have worked
}

// Two parties go through three rounds in step.
func ExampleCyclic() {
	withClient(func(ctx context.Context, client *framework.Client) error {
		rounds, err := barrier.NewCyclic(client, "/jobs/rounds", 2)
		if err != nil {
			return err
		}
		var parties sync.WaitGroup
		for range 2 { // each in a program of its own
			parties.Go(func() {
				for range 3 {
					round, err := rounds.Await(ctx)
					if err != nil {
						fmt.Println(err)
						return
					}
					fmt.Println("round", round)
				}
			})
		}
		parties.Wait()
		return nil
	})
	// Unordered output:
	// round 0
	// round 0
	// round 1
	// round 1
	// round 2
	// round 2
}

// A program waits until three parts of a job are done.
func ExampleCountDown() {
	withClient(func(ctx context.Context, client *framework.Client) error {
		parts, err := barrier.NewCountDown(client, "/jobs/import-7/parts", 3)
		if err != nil {
			return err
		}
		for range 3 { // in other programs
			if err := parts.CountDown(ctx); err != nil {
				return err
			}
		}
		if err := parts.Wait(ctx); err != nil {
			return err
		}
		fmt.Println("all parts are done")
		return parts.Delete(ctx)
	})
	// Output:
	// all parts are done
}
