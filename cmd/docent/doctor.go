package main

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/docent-zk/docent/cmd/docent/internal/doctor"
	"github.com/docent-zk/docent/framework"
)

func doctorCommand() *cli.Command {
	return &cli.Command{
		Name:      "doctor",
		Usage:     "look for what is wrong with the servers, and with the locks on them",
		UsageText: "docent doctor [options] [ROOT]",
		Description: text(`
			docent doctor prints a line for each check, with ok, warn, fail or skip, and what to do. ROOT is / by
			default.

			  server             each server answers alone, is not read-only, and belongs to the same ensemble
			  session timeout    the servers grant what is asked for, and it is enough for their ticks
			  connection         docent connects as other commands do
			  latency            how long the ZooKeeper leader takes to answer
			  features           whether the server is 3.6 or later: persistent watches, containers
			  clock              this machine's against the servers' (--write)
			  ttl nodes          whether nodes can have a time to live (--write)
			  locks              how many objects there are at and below ROOT
			  sequence numbers   directories that run out of numbers for lock nodes
			  layouts            locks with nodes of programs that do not exclude each other
			  abandoned locks    lock nodes that no end of a session deletes
			  semaphores         more permits held than the limit allows
			  permissions        nodes that may not be read

			docent doctor opens a session at each server, and reads. It writes nothing without --write PATH. With it,
			it creates a node at PATH and deletes it, several times, and once more with a time to live of a minute. PATH
			must not exist, and its parent must. The sequence numbers below the parent go on by so many: do not use the
			directory of a lock.

			Examples:
			  docent doctor
			  docent doctor --write /docent-doctor /locks
			  docent doctor -o json /locks

			Exit codes:
			  1    at least one check says fail
			  64   a wrong flag, argument or configuration file
			  128  and the number of a signal that ended docent`),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "write", Usage: "the `PATH` of a temporary node"},
			&cli.IntFlag{Name: "samples", Usage: "measure the latency and the clock `N` times", Value: 10},
			&cli.DurationFlag{
				Name: "wait", Aliases: []string{"w"}, Usage: "the `TIME` that a server has for an answer",
				Value: 5 * time.Second,
			},
			&cli.IntFlag{Name: "max-nodes", Usage: "read at most `N` nodes below ROOT", Value: 100_000},
			outputFlag(),
		},
		Action: examine,
	}
}

// examine carries out docent doctor.
func examine(ctx context.Context, c *cli.Command) error {
	cfg, err := examination(c)
	if err != nil {
		return err
	}
	out, err := outputOf(c)
	if err != nil {
		return err
	}
	return withClient(ctx, c, func(ctx context.Context, client *framework.Client) error {
		cfg.Client, cfg.Servers = client, doctor.ServersOf(c.String("connect"))
		cfg.Timeout = c.Duration("session-timeout")
		if c.Bool("tls") {
			if cfg.TLS, err = tlsSettings(c); err != nil {
				return err
			}
		}
		failed := 0
		var unprinted error
		doctor.Examine(ctx, cfg, func(f doctor.Finding) {
			if f.Result == doctor.Fail {
				failed++
			}
			if unprinted == nil {
				unprinted = out.finding(f)
			}
		})
		switch {
		case unprinted != nil:
			return unprinted
		case failed > 0:
			return coded{fmt.Errorf("checks that failed: %d", failed), exitUnhealthy}
		}
		return nil
	})
}

// examination returns what the command line says.
func examination(c *cli.Command) (doctor.Config, error) {
	cfg := doctor.Config{
		Dial: new(net.Dialer).DialContext, Resolve: net.DefaultResolver.LookupHost,
		Root: "/", MaxNodes: c.Int("max-nodes"), Samples: c.Int("samples"), Patience: c.Duration("wait"),
		Write: c.String("write"),
	}
	switch c.Args().Len() {
	case 0:
	case 1:
		cfg.Root = c.Args().First()
	default:
		return cfg, usagef("want one path, or none: see %s --help", c.FullName())
	}
	if err := framework.CheckPath(cfg.Root); err != nil {
		return cfg, usageError{err}
	}
	switch {
	case c.IsSet("write") && cfg.Write == "/":
		return cfg, usagef("--write /: want a node that does not exist")
	case c.IsSet("write"):
		if err := framework.CheckPath(cfg.Write); err != nil {
			return cfg, usagef("--write: %w", err)
		}
	}
	switch {
	case cfg.Samples < 1:
		return cfg, usagef("--samples %d: want a number that is positive", cfg.Samples)
	case cfg.MaxNodes < 1:
		return cfg, usagef("--max-nodes %d: want a number that is positive", cfg.MaxNodes)
	case cfg.Patience <= 0:
		return cfg, usagef("--wait %v: want a time that is positive", cfg.Patience)
	}
	return cfg, nil
}

// finding prints a finding.
func (o output) finding(f doctor.Finding) error {
	if o.json {
		return o.object(f)
	}
	_, err := fmt.Fprintf(o, "%-4s   %-16s   %s\n", f.Result, f.Check, printable(f.Found))
	for _, path := range f.Paths {
		if err == nil {
			_, err = fmt.Fprintf(o, "%26s   %s\n", "", printable(path))
		}
	}
	if err == nil && f.Advice != "" {
		_, err = fmt.Fprintf(o, "%26s-> %s\n", "", printable(f.Advice))
	}
	return err
}
