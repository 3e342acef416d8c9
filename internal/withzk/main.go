// Withzk starts real servers, runs a command that finds their connection string in the variable
// ZOOKEEPER, and stops them when it has ended:
//
//	go run ./internal/withzk 3 go test ./framework/... ./recipes/...
//
// So all packages of a test use the same servers, instead of starting some for each.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/docent-zk/docent/internal/sharedzk"
)

func main() {
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "withzk:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// run returns the exit status of the command.
func run(args []string) (code int, err error) {
	if len(args) < 2 {
		return 0, errors.New("want a number of servers, and a command")
	}
	servers, err := strconv.Atoi(args[0])
	if err != nil {
		return 0, fmt.Errorf("%q: want a number of servers", args[0])
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	e, err := sharedzk.New(ctx, servers)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	cmd := exec.CommandContext(ctx, args[1], args[2:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Env = append(os.Environ(), "ZOOKEEPER="+e.Connect())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = cmd.Run()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return ended.ExitCode(), nil
	}
	return 0, err
}
