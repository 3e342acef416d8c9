// Package program is what the examples have in common, so that each of them is about locks and nothing else: the flag -connect, a server
// for those who give none, Ctrl-C, and errors that are part of the story.
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

// Run is an example. It connects to the servers that connect names, and ends early when ctx does.
type Run func(ctx context.Context, connect string, out io.Writer) error

// Main is the main function of an example, which may have defined flags of its own. It does not return if the example fails.
func Main(run Run) {
	connect := flag.String("connect", "", "ZooKeeper servers, `host:port[,host:port][/chroot]`; without it this process is the server")
	flag.Parse()
	if flag.NArg() > 0 {
		log.Fatalf("unexpected argument %q", flag.Arg(0))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt) // Ctrl-C leaves the lines, and gives the locks back
	context.AfterFunc(ctx, stop)                                          // and a second one ends the program
	err := runOn(ctx, *connect, os.Stdout, os.Stderr, run)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

// runOn is run, on a server in this process if none is given.
func runOn(ctx context.Context, connect string, out, progress io.Writer, run Run) error {
	if connect == "" {
		srv, err := zktest.New()
		if err != nil {
			return err
		}
		defer srv.Close()
		connect = srv.Addr()
		fmt.Fprintf(progress, "started an in-process ZooKeeper server (package zktest, not the real one) at %s\n", connect)
	}
	return run(ctx, connect, out)
}

// Expect is nil if err matches want, which is what an example wants to show.
func Expect(err, want error) error {
	switch {
	case errors.Is(err, want):
		return nil
	case err == nil:
		return fmt.Errorf("no error, where this was expected: %w", want)
	}
	return err
}
