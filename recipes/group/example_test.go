package group_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/group"
	"github.com/docent-zk/docent/zktest"
)

// Two processes join a group, and one of them leaves.
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
	first, err := group.Join(ctx, client, "/workers", "host-3", []byte("10.0.0.3:8080"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer first.Close()
	second, err := group.Join(ctx, client, "/workers", "host-4", []byte("10.0.0.4:8080"))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = group.Join(ctx, client, "/workers", "host-3", nil)
	fmt.Println(errors.Is(err, group.ErrIDInUse))

	for change, err := range group.Observe(ctx, client, "/workers") { // another goroutine in a program
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(change.Kind, change.Member.ID, string(change.Member.Payload))
		if change.Member.ID == "host-4" && change.Kind == group.Added {
			_ = second.Close()
		}
		if change.Kind == group.Removed {
			break
		}
	}
	// Output:
	// true
	// added host-3 10.0.0.3:8080
	// added host-4 10.0.0.4:8080
	// removed host-4 10.0.0.4:8080
}
