// Mutex takes a lock that any number of processes can share, works under it, and gives it back.
//
//	go run ./examples/mutex                          # is its own ZooKeeper server, for tests: nobody else wants the lock
//	go run ./examples/mutex -connect 127.0.0.1:2181  # uses a real one: start it twice at the same time to see the second one wait
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
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
)

func main() {
	connect := flag.String("connect", "", "ZooKeeper servers, `host:port[,host:port][/chroot]`; without it this process is the server")
	flag.Parse()
	if flag.NArg() > 0 {
		log.Fatalf("unexpected argument %q", flag.Arg(0))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt) // Ctrl-C leaves the line, or gives the lock back
	context.AfterFunc(ctx, stop)                                          // and a second one ends the program
	err := runOn(ctx, *connect, os.Stdout, os.Stderr)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

// runOn is run, on a server in this process if none is given.
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
	hold, err := mu.Acquire(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hold.Release()) }() // tells if the lock was lost before the work was done
	ctx = hold.Context(ctx)                                   // ends if the lock is lost
	fmt.Fprintf(out, "holding %s, token %d\n", hold.Path(), hold.Token())
	return work(ctx, hold.Token())
}

// work is what only one process may do at a time. It stops when ctx ends, and would give the token to whatever it writes to, so that a
// write that comes too late can be refused.
func work(ctx context.Context, _ int64) error {
	select {
	case <-time.After(time.Second):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
