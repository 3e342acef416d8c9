// Command docent takes locks and leads elections from the command line: it runs another command
// while it holds a lock on ZooKeeper, or while it leads. It also shows all locks, takes them away, sets
// limits and counters, looks for what is wrong, and shows locks on a page.
//
//	docent lock /locks/backup -- backup.sh /data
//	docent elect /service/leader -- worker --active
//	docent ls /locks
//	docent show /locks/backup
//	docent break /locks/backup
//	docent limit /limits/exports 5
//	docent counter /counters/orders add 1
//	docent doctor
//	docent serve /locks
//
// docs/operations.md describes it, and docent --help does.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/urfave/cli/v3"

	"github.com/docent-zk/docent/cmd/docent/internal/supervise"
)

func main() {
	code := run(os.Args, os.Stdout, os.Stderr)
	if code == exitSignal+int(syscall.SIGINT) {
		supervise.EndByInterrupt()
	}
	os.Exit(code)
}

// run carries out a command line, and returns the exit code.
func run(args []string, out, errs io.Writer) int {
	ours, command := split(args)
	code := exitFine
	root := rootCommand(command, &code)
	root.Writer, root.ErrWriter = out, errs
	if err := root.Run(context.Background(), ours); err != nil {
		_, _ = fmt.Fprintln(errs, "docent:", err)
		return codeOf(err)
	}
	return code
}

// completionFlag is what completions of shells add to the line that is to be completed.
const completionFlag = "--generate-shell-completion"

// split returns the arguments before the first "--", and those behind it: the command to run.
func split(args []string) (ours, command []string) {
	at := slices.Index(args, "--")
	if at < 0 || args[len(args)-1] == completionFlag {
		return args, nil
	}
	return args[:at], args[at+1:]
}

// rootCommand returns the command docent. Its subcommands set the exit code, and run command.
func rootCommand(command []string, code *int) *cli.Command {
	others := []*cli.Command{
		lsCommand(), showCommand(), watchCommand(), sessionCommand(), revokeCommand(), breakCommand(),
		limitCommand(), counterCommand(), doctorCommand(), serveCommand(),
	}
	for _, c := range others {
		c.Before = func(ctx context.Context, c *cli.Command) (context.Context, error) {
			if command != nil {
				return ctx, usagef("%s runs no command: leave out --", c.FullName())
			}
			return ctx, nil
		}
	}
	root := &cli.Command{
		Name:  "docent",
		Usage: "locks and leader election on ZooKeeper",
		Description: text(`
			docent runs commands under locks on Apache ZooKeeper, shows locks, and takes them away. The locks are
			those of docent's Go library and of Apache Curator. It also shows those of kazoo, changes limits of
			semaphores and counters, and looks for what is wrong with the servers.

			The servers, and how to reach them, come from flags, from the environment, or from a configuration
			file: a JSON object with the names of the flags, such as {"connect": "zk1:2181,zk2:2181"}.`),
		Flags:                 connectionFlags(),
		HideHelpCommand:       true,
		HideVersion:           true,
		EnableShellCompletion: true,
		ConfigureShellCompletionCommand: func(c *cli.Command) {
			c.Hidden = false
			c.Usage = "print a completion script for a shell: bash, zsh, fish or pwsh"
		},
		Commands:       append([]*cli.Command{lockCommand(command, code), electCommand(command, code)}, others...),
		ExitErrHandler: func(context.Context, *cli.Command, error) {}, // run prints errors
		Action: func(_ context.Context, c *cli.Command) error {
			if c.Args().Present() {
				return usagef("%q: no such command: see docent --help", c.Args().First())
			}
			return cli.ShowRootCommandHelp(c)
		},
	}
	refuseUsage(root)
	return root
}

// refuseUsage makes all commands return errors in their flags as such, without printing them.
func refuseUsage(c *cli.Command) {
	c.OnUsageError = func(_ context.Context, c *cli.Command, err error, _ bool) error {
		return usagef("%w: see %s --help", err, c.FullName())
	}
	for _, sub := range c.Commands {
		refuseUsage(sub)
	}
}

// text removes the indentation of a text in the source, and the first newline.
func text(s string) string {
	lines := strings.Split(strings.TrimPrefix(s, "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, "\t\t\t")
	}
	return strings.Join(lines, "\n")
}
