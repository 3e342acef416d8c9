package proxy_test

import (
	"fmt"
	"log"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/proxy"
)

// The server creates the node, and its answer is lost. In a test, proxy.Start(t, address) also closes the
// proxy. The server may be a real one.
func Example() {
	server, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	between, err := proxy.New(server.Addr())
	if err != nil {
		log.Fatal(err)
	}
	defer between.Close()
	conn, events, err := zk.Connect([]string{between.Addr()}, 10*time.Second, zk.WithLogger(silent{}))
	if err != nil {
		log.Fatal(err)
	}

	lost := between.On(fault.Match{Op: fault.OpCreate, Path: "/orders"}, fault.DropAfter())
	_, err = conn.Create("/orders", nil, 0, zk.WorldACL(zk.PermAll))
	fmt.Println(err)
	fmt.Println("lost:", lost.Hits(), "created:", server.Exists("/orders"))
	conn.Close()
	for range events { // until the client's goroutines have ended
	}
	// Output:
	// zk: connection closed
	// lost: 1 created: true
}

// silent is a logger of the driver.
type silent struct{}

func (silent) Printf(string, ...any) {}
