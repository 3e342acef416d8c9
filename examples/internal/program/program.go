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
	"strings"
	"time"

	"github.com/docent-zk/docent/zktest"
)

// Run is an example. It connects to the servers that connect names, and returns early when ctx
// ends.
type Run func(ctx context.Context, connect string, out io.Writer) error

// Main is the main function of an example. The example may define flags before it calls Main. Main
// does not return if the example fails.
func Main(run Run) {
	main(func(ctx context.Context, connect string) error { return runOn(ctx, connect, os.Stdout, os.Stderr, run) })
}

// MainWithEnsemble is Main for an example that kills the ZooKeeper leader. Without -connect the
// servers are an [Ensemble] in this process. Otherwise run gets nil instead of its KillLeader.
func MainWithEnsemble(run func(ctx context.Context, connect string, killLeader func(), out io.Writer) error) {
	main(func(ctx context.Context, connect string) error {
		if connect != "" {
			return run(ctx, connect, nil, os.Stdout)
		}
		e, err := NewEnsemble()
		if err != nil {
			return err
		}
		defer e.Close()
		fmt.Fprintf(os.Stderr, "started three in-process ZooKeeper servers (package zktest, not the real one) at %s\n",
			e.Connect())
		return run(ctx, e.Connect(), e.KillLeader, os.Stdout)
	})
}

// Ensemble is three servers in this process.
type Ensemble struct {
	*zktest.Server
	connect string
}

// NewEnsemble starts three servers.
func NewEnsemble() (*Ensemble, error) {
	srv, err := zktest.New()
	if err != nil {
		return nil, err
	}
	addrs := []string{srv.Addr()}
	for range 2 {
		addrs = append(addrs, srv.Follower(time.Millisecond).Addr())
	}
	return &Ensemble{srv, strings.Join(addrs, ",")}, nil
}

// Connect returns the addresses of all servers.
func (e *Ensemble) Connect() string { return e.connect }

// KillLeader ends the work of the leader, which follows again at once. The servers elect a leader.
func (e *Ensemble) KillLeader() { e.Leader().Restart() }

// main runs an example on the servers of the flag -connect, which may be empty.
func main(run func(ctx context.Context, connect string) error) {
	connect := flag.String("connect", "",
		"ZooKeeper servers, `host:port[,host:port][/chroot]`; without it this process is the server")
	flag.Parse()
	if flag.NArg() > 0 {
		log.Fatalf("unexpected argument %q", flag.Arg(0))
	}
	// The first Ctrl-C ends waits and releases the locks. The second one ends the program.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop)
	err := run(ctx, *connect)
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
