package striped_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/striped"
	"github.com/docent-zk/docent/zktest"
)

// One key is locked, then two at once.
func Example() {
	srv, err := zktest.New() // in a program: the real servers
	if err != nil {
		panic(err)
	}
	defer srv.Close()
	client, err := framework.New(srv.Addr())
	if err != nil {
		panic(err)
	}
	defer client.Close()

	ctx := context.Background()
	locks, err := striped.New(client, "/accounts/locks", 64)
	if err != nil {
		fmt.Println(err)
		return
	}
	err = locks.For("Ann").Do(ctx, func(ctx context.Context, hold *recipes.Hold) error {
		fmt.Println("Ann:", len(hold.Paths()), "stripe")
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	err = locks.ForAll("Ann", "Bob").Do(ctx, func(ctx context.Context, hold *recipes.Hold) error {
		fmt.Println("Ann and Bob:", len(hold.Paths()), "stripes")
		_, err := locks.For("Ann").TryAcquire(context.Background()) // not with the context of the hold
		fmt.Println("busy:", errors.Is(err, recipes.ErrNotAcquired))
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// Ann: 1 stripe
	// Ann and Bob: 2 stripes
	// busy: true
}

// The number of stripes is changed from 64 to 256 while programs run. This is the step between: the
// program excludes those with 64 and those with 256.
func ExampleWithPrevious() {
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
	locks, err := striped.New(client, "/accounts/locks", 256, striped.WithPrevious(64))
	if err != nil {
		fmt.Println(err)
		return
	}
	hold, err := locks.For("Ann").Acquire(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(hold.Paths()), "stripes,", len(hold.Tokens()), "token")
	fmt.Println(hold.Release())
	// Output:
	// 2 stripes, 1 token
	// <nil>
}
