// Quickstart shows a lock between processes. Several workers, each in a process of its own, add to
// one record under a lock that ZooKeeper servers keep. One of them is killed while it holds the
// lock. The program exits with 0 only if the lock did what it promises.
//
//	go run ./examples/quickstart                          # starts a test server in this process
//	go run ./examples/quickstart -connect 127.0.0.1:2181  # uses a real one
//	go run ./examples/quickstart -slow                    # waits after each line until it can be read
//
// On a terminal the output has colours. The environment variable NO_COLOR turns them off.
//
// worker.go shows how a program uses the lock. store.go shows how a protected resource refuses late
// requests. demo.go starts the workers, and kill.go kills one of them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/docent-zk/docent/examples/internal/child"
)

func main() {
	if child.IsChild() {
		os.Exit(workerMain(os.Stdin, os.Stderr))
	}
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// The exit codes of this program, besides 0.
const (
	exitFailed      = 1   // exclusion was broken, or the demonstration failed
	exitUsage       = 2   // the command line is wrong
	exitInterrupted = 130 // what shells report for a program that Ctrl-C ended
)

var errInterrupted = errors.New("interrupted")

func run(args []string, stdout, stderr io.Writer) int {
	cfg, err := parse(args, stderr)
	if err == nil {
		err = runUntilInterrupted(cfg, stdout, stderr)
	}
	var usage usageError
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.As(err, &usage):
		fmt.Fprintln(stderr, "quickstart:", err)
		return exitUsage
	case errors.Is(err, errInterrupted):
		fmt.Fprintln(stderr, "quickstart:", err)
		return exitInterrupted
	}
	fmt.Fprintln(stderr, "quickstart: FAILED:", err)
	return exitFailed
}

// runUntilInterrupted runs the demonstration. Ctrl-C ends it in good order. A second Ctrl-C ends
// the program at once; its child processes notice that and end, too.
func runUntilInterrupted(cfg config, stdout, stderr io.Writer) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	signals, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(signals, func() {
		stop()
		cancel(errInterrupted)
	})
	report := newReporter(screen(ctx, cfg, stdout), cfg.workers*cfg.increments)
	return runDemo(ctx, cfg, report, stderr)
}

// config has the values of the command line.
type config struct {
	connect    string // "": this process runs the server
	workers    int
	increments int // by each worker
	session    time.Duration
	slow       bool
	limit      time.Duration // for the whole demonstration
}

// slowLimit is how much longer the demonstration may take with -slow.
const slowLimit = 3 * time.Minute

// usageError is a mistake on the command line.
type usageError struct{ error }

func parse(args []string, stderr io.Writer) (config, error) {
	cfg := config{limit: 2 * time.Minute}
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the caller prints errors
	flags.StringVar(&cfg.connect, "connect", "",
		"ZooKeeper servers to use, `host:port[,host:port][/chroot]`; without it this process is the server")
	flags.IntVar(&cfg.workers, "workers", 4, "how many worker processes, 2 to 20")
	flags.IntVar(&cfg.increments, "increments", 5, "how often each worker adds 1 to the record, 1 to 50")
	flags.DurationVar(&cfg.session, "session", 3*time.Second,
		"session timeout: how long a dead worker keeps the lock, 1s to 1m")
	flags.BoolVar(&cfg.slow, "slow", false, "wait after each line until it can be read")
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(stderr)
		flags.Usage()
		return cfg, err
	}
	if err == nil {
		err = cfg.check(flags.Args())
	}
	if err != nil {
		return cfg, usageError{err}
	}
	if cfg.slow {
		cfg.limit += slowLimit
	}
	return cfg, nil
}

func (c config) check(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unexpected argument %q", rest[0])
	case c.workers < 2 || c.workers > 20:
		return fmt.Errorf("-workers %d: want 2 to 20, so that one can die and another go on", c.workers)
	case c.increments < 1 || c.increments > 50:
		return fmt.Errorf("-increments %d: want 1 to 50", c.increments)
	case c.session < time.Second || c.session > time.Minute:
		return fmt.Errorf("-session %v: want 1s to 1m", c.session)
	}
	return nil
}
