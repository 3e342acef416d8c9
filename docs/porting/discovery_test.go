package porting

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/discovery"
	"github.com/docent-zk/docent/zktest"
)

// fragment service
func offer(
	ctx context.Context, registry *discovery.Registry,
) (*discovery.Registration, error) {
	// registry, err := discovery.New(client, "/services")
	self, err := registry.Register(discovery.Instance{
		Name:    "orders",
		Address: "10.0.0.3",
		Port:    8080,
	})
	if err != nil {
		return nil, err
	}
	ready, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := self.WaitReady(ready); err != nil { // registered
		return nil, errors.Join(err, self.Close())
	}
	return self, nil
}

// end

// fragment service-provider
func useService(
	ctx context.Context, registry *discovery.Registry,
	call func(address string) error,
) error {
	view, err := registry.View("orders")
	if err != nil {
		return err
	}
	defer view.Close()
	orders, err := discovery.NewProvider(view,
		discovery.WithStrategy(discovery.Random()))
	if err != nil {
		return err
	}
	instance, err := orders.Pick(ctx)
	if err != nil {
		return err // never nil without an instance
	}
	if err := call(instance.HostPort()); err != nil {
		orders.Fail(instance)
		return err
	}
	return nil
}

// end

// fragment payload
// Details is the class com.example.Orders.Details in Java.
type Details struct {
	Class string `json:"@class"`
	Zone  string `json:"zone"`
}

func payload(zone string) (json.RawMessage, error) { // of an Instance
	return json.Marshal(Details{"com.example.Orders$Details", zone})
}

// end

func Example_payload() {
	data, err := payload("eu-1")
	fmt.Println(string(data), err)
	// Output:
	// {"@class":"com.example.Orders$Details","zone":"eu-1"} <nil>
}

func Example_service() {
	run(func(ctx context.Context, client *framework.Client, _ *zktest.Server) error {
		registry, err := discovery.New(client, "/services")
		if err != nil {
			return err
		}
		self, err := offer(ctx, registry)
		if err != nil {
			return err
		}
		call := func(address string) error { fmt.Println(address); return nil }
		if err := useService(ctx, registry, call); err != nil {
			return err
		}
		if err := self.Close(); err != nil {
			return err
		}
		fmt.Println(errors.Is(useService(ctx, registry, call), discovery.ErrNoInstance))
		return nil
	})
	// Output:
	// 10.0.0.3:8080
	// true
}
