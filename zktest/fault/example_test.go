package fault_test

import (
	"context"
	"fmt"
	"log"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

// The second write of a node fails once. A proxy of package zktest/proxy takes the same rules.
func Example() {
	server, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	client, err := framework.New(server.Addr())
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	ctx := context.Background()
	if _, err := client.Create(ctx, "/limit", nil); err != nil {
		log.Fatal(err)
	}

	rule := server.On(fault.Match{Op: fault.OpSetData, Path: "/limit", Skip: 1}, fault.Fail(zktest.NoAuth))
	for range 3 {
		_, err := client.Set(ctx, "/limit", []byte("5"), -1)
		fmt.Println(err)
	}
	fmt.Println("hits:", rule.Hits())
	// Output:
	// <nil>
	// set /limit: zk: no permission (ACL)
	// <nil>
	// hits: 1
}
