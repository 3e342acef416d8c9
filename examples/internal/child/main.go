package child

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"
)

// Grace is how long a child may take to end after its stdin has ended.
const Grace = 10 * time.Second

// ErrStopped is the cause with which a child's context ends when its parent stops it or has ended.
var ErrStopped = errors.New("the parent has stopped this process, or has ended")

// Main is the main function of a child. It reads the job from stdin, calls run, and returns the
// exit code. Errors are written to stderr, with name where there is no job.
//
// The context of run ends when stdin does. The operating system closes the pipes of a process in
// any case, so stdin also ends when the parent is killed. It is no failure if run then returns the
// error of its context.
func Main[J any](stdin io.Reader, stderr io.Writer, name string, run func(context.Context, J) error) int {
	signal.Ignore(os.Interrupt) // Ctrl-C goes to all processes of a terminal, and the parent stops its children
	var job J
	if err := json.NewDecoder(stdin).Decode(&job); err != nil {
		if !errors.Is(err, io.EOF) {
			fmt.Fprintf(stderr, "%s without a job: %v\n", name, err)
		}
		return 1
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		cancel(ErrStopped)
		time.AfterFunc(Grace, func() { os.Exit(1) })
	}()
	err := run(ctx, job)
	if err == nil || errors.Is(err, ErrStopped) {
		return 0
	}
	if ctx.Err() == nil {
		fmt.Fprintln(stderr, err)
	}
	return 1
}
