// Package program has what the examples share, so that each of them is about locks only: the flag
// -connect, an in-process server if the flag is missing, Ctrl-C, and errors that an example
// expects.
package program

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"

	"github.com/docent-zk/docent/zktest"
)

// Run is an example. It connects to the servers that connect names, and returns early when ctx
// ends.
type Run func(ctx context.Context, connect string, out io.Writer) error

// Main is the main function of an example. The example may define flags before it calls Main. Main
// does not return if the example fails.
func Main(run Run) {
	connect := flag.String("connect", "",
		"ZooKeeper servers, `host:port[,host:port][/chroot]`; without it this process is the server")
	flag.Parse()
	if flag.NArg() > 0 {
		log.Fatalf("unexpected argument %q", flag.Arg(0))
	}
	// The first Ctrl-C ends waits and releases the locks. The second one ends the program.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop)
	err := runOn(ctx, *connect, os.Stdout, os.Stderr, run)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

// runOn calls run. If connect is empty, it first starts a server in this process.
func runOn(ctx context.Context, connect string, out, progress io.Writer, run Run) error {
	if connect == "" {
		srv, err := zktest.New()
		if err != nil {
			return err
		}
		defer srv.Close()
		connect = srv.Addr()
		const started = "started an in-process ZooKeeper server (package zktest, not the real one) at %s\n"
		fmt.Fprintf(progress, started, connect)
	}
	return run(ctx, connect, out)
}

// Expect returns nil if err matches want, the error that an example wants to show.
func Expect(err, want error) error {
	switch {
	case errors.Is(err, want):
		return nil
	case err == nil:
		return fmt.Errorf("no error, where this was expected: %w", want)
	}
	return err
}
