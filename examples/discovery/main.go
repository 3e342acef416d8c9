// Discovery starts three instances of an HTTP service, each in a process of its own, and sends
// requests to them all the time. One instance is killed, one is restarted, and the leader of the
// ZooKeeper servers is killed. The program fails if a request is lost. The class of Curator is
// ServiceDiscovery.
//
//	go run ./examples/discovery                          # starts three test servers in this process
//	go run ./examples/discovery -connect 127.0.0.1:2181  # uses real ones, and leaves them alone
//	go run ./examples/discovery -session 6s              # sets how long a dead instance is listed
//
// instance.go shows how a service registers itself. caller.go shows how a client balances its
// requests. demo.go starts the instances and interferes with them.
package main

import (
	"context"
	"flag"
	"io"
	"os"
	"time"

	"github.com/docent-zk/docent/examples/internal/child"
	"github.com/docent-zk/docent/examples/internal/program"
)

func main() {
	if child.IsChild() {
		os.Exit(instanceMain())
	}
	program.MainWithEnsemble(newConfig(flag.CommandLine).run)
}

func instanceMain() int { return child.Main(os.Stdin, os.Stderr, "instance", runInstance) }

// config has the values of the command line.
type config struct {
	program.Demo
	patience time.Duration // of a request, which is lost after that
}

// newConfig defines the flags and returns the config that has their values once flags are parsed.
func newConfig(flags *flag.FlagSet) *config {
	c := &config{patience: 30 * time.Second}
	c.Define(flags, "a dead instance is listed")
	return c
}

// run runs the demonstration. killLeader is nil if the servers are not this program's.
func (c *config) run(ctx context.Context, connect string, killLeader func(), out io.Writer) error {
	ctx, end, err := c.Begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	return runDemo(ctx, *c, connect, killLeader, program.NewReporter(out))
}
