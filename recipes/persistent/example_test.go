package persistent_test

import (
	"context"
	"fmt"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/persistent"
	"github.com/docent-zk/docent/zktest"
)

// A server registers its address. The session is lost, and the address comes back.
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

	node, err := persistent.New(client, "/services/orders/host-3", []byte("10.0.0.3:8080"))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background() // signal.NotifyContext in a program
	if err := node.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	defer node.Close()
	if err := node.WaitReady(ctx); err != nil { // it is there
		fmt.Println(err)
		return
	}

	session, err := client.Session(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = srv.Sessions()[0].Expire() // as after a long outage
	<-session.Done()
	_ = node.SetData([]byte("10.0.0.3:9090"))
	if err := node.WaitReady(ctx); err != nil { // it is there again
		fmt.Println(err)
		return
	}
	data, _, err := client.Get(ctx, node.Path())
	fmt.Printf("%s %s %v\n", node.Path(), data, err)
	// Output:
	// /services/orders/host-3 10.0.0.3:9090 <nil>
}
