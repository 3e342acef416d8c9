// Cache is a program whose settings are nodes of ZooKeeper. It follows their changes while it runs. One
// setting is changed, one is set to nonsense, one is deleted, and the leader of the ZooKeeper servers is
// killed. The program fails if it ever works without valid settings. The class of Curator is
// CuratorCache.
//
//	go run ./examples/cache                          # starts three test servers in this process
//	go run ./examples/cache -connect 127.0.0.1:2181  # uses real ones, and leaves them alone
//
// settings.go shows how a program keeps its settings current. demo.go changes them.
package main

import (
	"context"
	"flag"
	"io"

	"github.com/docent-zk/docent/examples/internal/program"
)

func main() { program.MainWithEnsemble(newConfig(flag.CommandLine).run) }

// config has the values of the command line.
type config struct{ program.Demo }

// newConfig defines the flags and returns the config that has their values once flags are parsed.
func newConfig(flags *flag.FlagSet) *config {
	c := &config{}
	c.Define(flags, "a lost connection may be mended in the same session")
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
