// Leader has three candidates, each a process of its own, who lead in turns: one of them resigns, one is killed while it leads, one is paused
// for so long that another has to take over. The program checks all the time that the election does what it promises: it fails if there
// are ever two leaders at once, or if a later one has a smaller token. Curator: LeaderSelector.
//
//	go run ./examples/leader                          # is its own ZooKeeper server, for tests
//	go run ./examples/leader -connect 127.0.0.1:2181  # uses a real one
//	go run ./examples/leader -session 6s              # it takes that long until the servers give up somebody who is silent
//
// Where to look: candidate.go is how a program stands for election, and leads; story.go is the course of events, and how those who do
// not stand see who leads; witness.go finds out about broken elections.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/docent-zk/docent/examples/internal/crew"
	"github.com/docent-zk/docent/examples/internal/program"
)

func main() {
	if crew.IsMember() {
		os.Exit(candidateMain())
	}
	program.Main(newConfig(flag.CommandLine).run)
}

func candidateMain() int { return crew.Main(os.Stdin, os.Stderr, "candidate", candidacy) }

// config is what the command line says.
type config struct {
	session time.Duration
	limit   time.Duration // for the whole story
}

// newConfig is one whose numbers come from flags that are still to be parsed.
func newConfig(flags *flag.FlagSet) *config {
	c := &config{limit: 2 * time.Minute}
	flags.DurationVar(&c.session, "session", 3*time.Second, "session timeout: how long one who is dead stays the leader, 1s to 10s")
	return c
}

func (c *config) run(ctx context.Context, connect string, out io.Writer) error {
	if c.session < time.Second || c.session > 10*time.Second {
		return fmt.Errorf("-session %v: want 1s to 10s", c.session)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.limit, fmt.Errorf("it took longer than %v", c.limit))
	defer cancel()
	return tell(ctx, connect, c.session, program.NewNarrator(out))
}
