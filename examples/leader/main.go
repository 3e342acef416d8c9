// Leader starts three candidates, each in a process of its own, that lead one after the other. One
// of them resigns, one is killed while it leads, and one is paused for so long that another one is
// elected. The program fails if there are two leaders at the same time, or if a later leader has a
// smaller token. The class of Curator is LeaderSelector.
//
//	go run ./examples/leader                          # starts a test server in this process
//	go run ./examples/leader -connect 127.0.0.1:2181  # uses a real one
//	go run ./examples/leader -session 6s              # sets how long a dead leader stays the leader
//
// candidate.go shows how a program takes part in an election and leads. demo.go starts the
// candidates, interferes with them, and observes the election without taking part. resource.go
// detects a broken election.
package main

import (
	"context"
	"flag"
	"io"
	"os"

	"github.com/docent-zk/docent/examples/internal/child"
	"github.com/docent-zk/docent/examples/internal/program"
)

func main() {
	if child.IsChild() {
		os.Exit(candidateMain())
	}
	program.Main(newConfig(flag.CommandLine).run)
}

func candidateMain() int { return child.Main(os.Stdin, os.Stderr, "candidate", runCandidate) }

// config has the values of the command line.
type config struct{ program.Demo }

// newConfig defines the flags and returns the config that has their values once flags are parsed.
func newConfig(flags *flag.FlagSet) *config {
	c := &config{}
	c.Define(flags, "a dead candidate stays the leader")
	return c
}

func (c *config) run(ctx context.Context, connect string, out io.Writer) error {
	ctx, end, err := c.Begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	return runDemo(ctx, connect, c.Session, program.NewReporter(out))
}
