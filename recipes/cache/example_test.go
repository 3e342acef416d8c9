package cache_test

import (
	"context"
	"fmt"
	"log"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/cache"
	"github.com/docent-zk/docent/zktest"
)

func Example() {
	srv, err := zktest.New() // a server in this process
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	client, err := framework.New(srv.Addr())
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	ctx := context.Background()
	for _, node := range []string{"/config/db", "/config/cache"} {
		if _, err := client.Create(ctx, node, []byte("host-1"), framework.Parents()); err != nil {
			log.Fatal(err)
		}
	}

	c, err := cache.New(client, "/config", cache.WithDepth(1))
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	if err := c.WaitReady(ctx); err != nil {
		log.Fatal(err)
	}
	for path, node := range c.All() {
		fmt.Printf("%s=%s\n", path, node.Data)
	}
	// Output:
	// /config=
	// /config/cache=host-1
	// /config/db=host-1
}
