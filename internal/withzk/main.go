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
	"time"

	"github.com/docent-zk/docent/zktest/ensemble"
)

const tick = 200 * time.Millisecond // as package testzk has it

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
	// As package testzk has it: a follower may be silent for 12 s on a busy machine, and the servers look for empty
	// containers each hour.
	e, err := ensemble.New(ctx, servers, ensemble.WithTick(tick), ensemble.WithConfig("syncLimit", "60"),
		ensemble.WithProperty("znode.container.checkIntervalMs", "3600000"))
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
