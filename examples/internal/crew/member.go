package crew

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

// Grace is how long a member whose parent is gone takes to leave in good order.
const Grace = 10 * time.Second

// ErrFarewell is the cause of the end of a member's context.
var ErrFarewell = errors.New("the parent has gone, or wants no more")

// Main is the main function of a member, whom others call by the name of what it is; it returns the exit code. The first thing on stdin is
// its job; the end of stdin means that the parent has gone, however that happened, for the system closes a process's pipes even if it
// is killed. For a member whose run returns the context's error then, all is well.
func Main[J any](stdin io.Reader, stderr io.Writer, name string, run func(context.Context, J) error) int {
	signal.Ignore(os.Interrupt) // Ctrl-C goes to all processes of a terminal; the parent says what to do then
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
		cancel(ErrFarewell)
		time.AfterFunc(Grace, func() { os.Exit(1) })
	}()
	err := run(ctx, job)
	if err == nil || errors.Is(err, ErrFarewell) {
		return 0
	}
	if ctx.Err() == nil {
		fmt.Fprintln(stderr, err)
	}
	return 1
}
