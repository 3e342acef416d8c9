// Singleton-cron runs a job once for each tick of a clock, although several processes could run it.
// They elect a leader, and the leader runs the job. Two leaders are killed during a tick, one
// before its effect and one after. The program fails unless each tick has its effect exactly once,
// and prints which process ran it.
//
//	go run ./examples/singleton-cron                          # starts a test server in this process
//	go run ./examples/singleton-cron -connect 127.0.0.1:2181  # uses a real one
//	go run ./examples/singleton-cron -processes 5 -ticks 20 -every 500ms
//
// scheduler.go shows how a program runs such a job, and says what "exactly once" can mean. store.go
// is where the effects go; it refuses late requests. demo.go starts the processes and kills two of
// them.
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
		os.Exit(schedulerMain())
	}
	program.Main(newConfig(flag.CommandLine).run)
}

// config has the values of the command line.
type config struct {
	program.Demo
	processes int
	ticks     int
	every     time.Duration // from one tick to the next
	slack     time.Duration // for the whole demonstration, beyond the ticks
}

// newConfig defines the flags and returns the config that has their values once flags are parsed.
func newConfig(flags *flag.FlagSet) *config {
	c := &config{slack: 2 * time.Minute}
	flags.IntVar(&c.processes, "processes", 3, "how many processes could run the job, 2 to 10")
	flags.IntVar(&c.ticks, "ticks", 12, "how many ticks there are, 6 to 1000")
	flags.DurationVar(&c.every, "every", time.Second, "time from one tick to the next, 10ms to 1m")
	c.Define(flags, "a dead process stays the leader")
	return c
}

func (c *config) check() error {
	switch {
	case c.processes < 2 || c.processes > 10:
		return fmt.Errorf("-processes %d: want 2 to 10, so that one can die and another can go on", c.processes)
	case c.ticks < 6 || c.ticks > 1000:
		return fmt.Errorf("-ticks %d: want 6 to 1000", c.ticks)
	case c.every < 10*time.Millisecond || c.every > time.Minute:
		return fmt.Errorf("-every %v: want 10ms to 1m", c.every)
	}
	return nil
}

func (c *config) run(ctx context.Context, connect string, out io.Writer) error {
	if err := c.check(); err != nil {
		return err
	}
	c.Limit = time.Duration(c.ticks)*c.every + c.slack
	ctx, end, err := c.Begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	return runDemo(ctx, connect, *c, program.NewReporter(out))
}
