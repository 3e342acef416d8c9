package program

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
)

// Demo has what demonstrations of lost sessions have in common: the flag -session and a limit of time.
type Demo struct {
	Session time.Duration
	Limit   time.Duration // for the whole demonstration
}

// Define defines the flag. lasts is what lasts as long as the session of a dead process.
func (d *Demo) Define(flags *flag.FlagSet, lasts string) {
	d.Limit = 2 * time.Minute
	flags.DurationVar(&d.Session, "session", 3*time.Second, "session timeout: how long "+lasts+", 1s to 10s")
}

// Begin checks the flag, and returns a context that ends with ctx, or with an error when the time is
// over.
func (d *Demo) Begin(ctx context.Context) (limited context.Context, end context.CancelFunc, err error) {
	if d.Session < time.Second || d.Session > 10*time.Second {
		return nil, nil, fmt.Errorf("-session %v: want 1s to 10s", d.Session)
	}
	limited, end = context.WithTimeoutCause(ctx, d.Limit, fmt.Errorf("it took longer than %v", d.Limit))
	return limited, end, nil
}

// Wait waits until done returns true. The error begins with what is missing.
func Wait(ctx context.Context, missing string, done func() bool) error {
	for !done() {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", missing, context.Cause(ctx))
		}
	}
	return nil
}

// Delete deletes a node. If an answer is lost, it tries again.
func Delete(ctx context.Context, client *framework.Client, path string) error {
	for again := false; ; again = true {
		switch err := client.Delete(ctx, path, -1); {
		case again && errors.Is(err, zk.ErrNoNode):
			return nil // the request was not lost
		case framework.OutcomeOf(err) != framework.Unknown, ctx.Err() != nil:
			return err
		}
	}
}
