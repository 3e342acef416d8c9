package main

import (
	"context"
	"os/signal"
	"syscall"

	"github.com/urfave/cli/v3"

	"github.com/docent-zk/docent/framework"
)

// withClient calls fn with a client by the flags, and closes the client. A signal that ends programs
// ends ctx, and is the error then. It is for commands that run no other command.
func withClient(ctx context.Context, c *cli.Command, fn func(context.Context, *framework.Client) error) error {
	client, err := newClient(c)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	_, ctx, stop := startRelay(ctx)
	defer stop()
	signal.Reset(syscall.SIGPIPE) // docent ends silently if what reads its output does
	if err := fn(ctx, client); ctx.Err() == nil {
		return err
	}
	return context.Cause(ctx)
}

// onePath returns the only argument, which must be a path.
func onePath(c *cli.Command) (string, error) {
	if c.Args().Len() != 1 {
		return "", usagef("want one path: see %s --help", c.FullName())
	}
	if err := framework.CheckPath(c.Args().First()); err != nil {
		return "", usageError{err}
	}
	return c.Args().First(), nil
}

// atPath returns the action of a command that prints what is at its only argument, a path.
func atPath(print func(context.Context, *framework.Client, string, output) error) cli.ActionFunc {
	return func(ctx context.Context, c *cli.Command) error {
		path, err := onePath(c)
		if err != nil {
			return err
		}
		out, err := outputOf(c)
		if err != nil {
			return err
		}
		return withClient(ctx, c, func(ctx context.Context, client *framework.Client) error {
			return print(ctx, client, path, out)
		})
	}
}
