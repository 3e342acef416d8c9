// Mutex acquires a lock that any number of processes can share, works under it, and releases it.
//
//	go run ./examples/mutex                          # starts a test server in this process
//	go run ./examples/mutex -connect 127.0.0.1:2181  # uses a real one; a second process waits
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
)

func main() {
	connect := flag.String("connect", "",
		"ZooKeeper servers, `host:port[,host:port][/chroot]`; without it this process is the server")
	flag.Parse()
	if flag.NArg() > 0 {
		log.Fatalf("unexpected argument %q", flag.Arg(0))
	}
	// The first Ctrl-C ends the wait or releases the lock. The second one ends the program.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop)
	err := runOn(ctx, *connect, os.Stdout, os.Stderr)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

// runOn calls run. If connect is empty, it first starts a server in this process.
func runOn(ctx context.Context, connect string, out, progress io.Writer) error {
	if connect == "" {
		srv, err := zktest.New()
		if err != nil {
			return err
		}
		defer srv.Close()
		connect = srv.Addr()
		fmt.Fprintln(progress, "started an in-process ZooKeeper server (package zktest, not the real one)")
	}
	fmt.Fprintln(progress, "asking", connect, "for the lock")
	return run(ctx, connect, out)
}

func run(ctx context.Context, connect string, out io.Writer) (err error) {
	client, err := framework.New(connect)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	mu, err := mutex.New(client, "/docent-examples/mutex")
	if err != nil {
		return err
	}
	return mu.Do(ctx, func(ctx context.Context, hold *recipes.Hold) error { // this ctx ends if the lock is lost
		fmt.Fprintf(out, "holding %s, token %d\n", hold.Path(), hold.Token())
		return work(ctx, hold.Token())
	}) // also reports a loss before the end of the work
}

// work is what only one process may do at a time. It stops when ctx ends. Real work would send the
// token with each write, so that the resource can refuse a late write.
func work(ctx context.Context, _ int64) error {
	select {
	case <-time.After(time.Second):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
