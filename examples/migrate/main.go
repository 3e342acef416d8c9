// Migrate moves programs from a lock on Redis to a lock on ZooKeeper, and back, while they work. It
// follows the steps of docs/migration.md. The programs run in this process, each with clients of its
// own. They use a resource that reports two uses at once, and tokens that do not grow.
//
//	go run -C examples/migrate .  # starts a test server of each service in this process
//	go run -C examples/migrate . -connect 127.0.0.1:2181 -redis 127.0.0.1:6379
//
// locks.go is what changes in a program. resource.go is what changes in the resource. fleet.go replaces
// programs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/alicebob/miniredis/v2"

	"github.com/docent-zk/docent/examples/internal/program"
	"github.com/docent-zk/docent/fence"
)

func main() {
	redis := flag.String("redis", "", "address of Redis, `host:port`; without it this process is the server")
	program.Main(func(ctx context.Context, connect string, out io.Writer) error {
		address := *redis
		if address == "" {
			srv, err := miniredis.Run()
			if err != nil {
				return err
			}
			defer srv.Close()
			address = srv.Addr()
			fmt.Fprintf(os.Stderr, "started an in-process Redis (miniredis, not the real one) at %s\n", address)
		}
		return run(ctx, services{zookeeper: connect, redis: address}, out)
	})
}

// programs is how many programs there are.
const programs = 3

// run moves the programs to ZooKeeper, and back to Redis.
func run(ctx context.Context, s services, out io.Writer) (err error) {
	r := &resource{}
	f := newFleet(s, r, program.NewReporter(out))
	defer func() { err = errors.Join(err, f.stop()) }()

	r.require(ofRedis) // before the first step
	if err := f.replaceAll(ctx, holdsOld); err != nil {
		return err
	}
	early := r.last()
	for _, step := range []func() error{
		func() error { return f.replaceAll(ctx, holdsBoth) },
		func() error {
			return f.refused("a late write of a program that held Redis only", early, fence.ErrStale)
		},
		func() error { return f.require(ofZooKeeper) }, // now that all programs hold both
		func() error {
			noLongerSent := tokens{redis: r.last().redis + 1}
			return f.refused("a write without a token of ZooKeeper", noLongerSent, errMissing)
		},
		func() error { return f.replaceAll(ctx, holdsNew) },

		func() error { f.report.Line("and back"); return nil },
		func() error { return f.replaceAll(ctx, holdsBoth) },
		func() error { return f.require(ofRedis) },
		func() error { return f.replaceAll(ctx, holdsOld) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	if err := f.stop(); err != nil {
		return err
	}
	f.report.Line("%d writes by %d programs: no two at once, and the tokens of each service have only grown",
		r.writes(), f.started)
	return nil
}
