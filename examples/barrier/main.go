// Barrier starts three workers, each in a process of its own, which wait for each other: at a gate
// until their work is ready, inside a double barrier while they work at the same time, and in rounds.
// One worker is killed while it waits, and one while it works. The program fails if a worker is ahead
// of the others. The classes of Curator are DistributedBarrier and DistributedDoubleBarrier.
//
//	go run ./examples/barrier                          # starts a test server in this process
//	go run ./examples/barrier -connect 127.0.0.1:2181  # uses a real one
//	go run ./examples/barrier -session 6s              # sets how long a dead worker counts as present
//
// worker.go shows how a worker waits. demo.go starts the workers and kills two.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/docent-zk/docent/examples/internal/child"
	"github.com/docent-zk/docent/examples/internal/program"
)

func main() {
	if child.IsChild() {
		os.Exit(workerMain())
	}
	program.Main(newConfig(flag.CommandLine).run)
}

func workerMain() int { return child.Main(os.Stdin, os.Stderr, "worker", runWorker) }

// config has the values of the command line.
type config struct {
	session time.Duration
	limit   time.Duration // for the whole demonstration
}

// newConfig defines the flags and returns the config that has their values once flags are parsed.
func newConfig(flags *flag.FlagSet) *config {
	c := &config{limit: 2 * time.Minute}
	flags.DurationVar(&c.session, "session", 3*time.Second,
		"session timeout: how long a dead worker counts as present, 1s to 10s")
	return c
}

// run runs the demonstration.
func (c *config) run(ctx context.Context, connect string, out io.Writer) error {
	if c.session < time.Second || c.session > 10*time.Second {
		return fmt.Errorf("-session %v: want 1s to 10s", c.session)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.limit, fmt.Errorf("it took longer than %v", c.limit))
	defer cancel()
	return runDemo(ctx, *c, connect, program.NewReporter(out))
}
