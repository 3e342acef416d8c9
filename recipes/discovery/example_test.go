package discovery_test

import (
	"context"
	"fmt"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/discovery"
	"github.com/docent-zk/docent/zktest"
)

// Two instances of a service are registered. A provider picks one for each request, and leaves out
// the one that fails.
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
	if err := serveAndUse(context.Background(), client); err != nil {
		fmt.Println(err)
	}
	// Output:
	// orders/a is at 10.0.0.1:8080
	// orders/b is at 10.0.0.2:8080
	// 10.0.0.2:8080
	// 10.0.0.2:8080
}

func serveAndUse(ctx context.Context, client *framework.Client) error {
	registry, err := discovery.New(client, "/services")
	if err != nil {
		return err
	}
	for id, address := range map[string]string{"a": "10.0.0.1", "b": "10.0.0.2"} {
		self, err := registry.Register(discovery.Instance{Name: "orders", ID: id, Address: address, Port: 8080})
		if err != nil {
			return err
		}
		defer self.Close()
		if err := self.WaitReady(ctx); err != nil {
			return err
		}
	}

	orders, err := registry.View("orders")
	if err != nil {
		return err
	}
	defer orders.Close()
	provider, err := discovery.NewProvider(orders, discovery.WithFailures(1, 10*time.Second))
	if err != nil {
		return err
	}
	if err := orders.WaitReady(ctx); err != nil {
		return err
	}
	for _, instance := range orders.Instances() {
		fmt.Printf("%s/%s is at %s\n", instance.Name, instance.ID, instance.HostPort())
		if instance.ID == "a" {
			provider.Fail(instance) // a request to it has failed
		}
	}
	for range 2 {
		instance, err := provider.Pick(ctx)
		if err != nil {
			return err
		}
		fmt.Println(instance.HostPort())
	}
	return nil
}
