// Persistent registers the address of a server, which is a process of its own, in a node. An operator
// deletes the node by mistake, the leader of the ZooKeeper servers is killed, the server is paused until
// its session has expired, and at last the server stops. The program fails if the node is not there
// while the server works, or is there after it has stopped. The class of Curator is PersistentNode.
//
//	go run ./examples/persistent                          # starts three test servers in this process
//	go run ./examples/persistent -connect 127.0.0.1:2181  # uses real ones, and leaves them alone
//	go run ./examples/persistent -session 6s              # sets how long the node of a dead server stays
//
// registration.go shows how a program keeps its node. demo.go interferes with it.
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
		os.Exit(serverMain())
	}
	program.MainWithEnsemble(newConfig(flag.CommandLine).run)
}

func serverMain() int { return child.Main(os.Stdin, os.Stderr, "server", runServer) }

// config has the values of the command line.
type config struct{ program.Demo }

// newConfig defines the flags and returns the config that has their values once flags are parsed.
func newConfig(flags *flag.FlagSet) *config {
	c := &config{}
	c.Define(flags, "the node of a dead server stays")
	return c
}

// run runs the demonstration. killLeader is nil if the servers are not this program's.
func (c *config) run(ctx context.Context, connect string, killLeader func(), out io.Writer) error {
	ctx, end, err := c.Begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	return runDemo(ctx, c.Session, connect, killLeader, program.NewReporter(out))
}
