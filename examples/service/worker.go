package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
)

// job is what must not run in two processes at the same time. It returns soon after ctx has ended: the
// lock is lost then, or the service has no more time. A job that writes sends the token with each write.
// An error that does not come from a loss ends the service.
type job func(ctx context.Context, token int64) error

// sleepFor returns a job that takes a time.
func sleepFor(d time.Duration) job {
	return func(ctx context.Context, _ int64) error {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// worker runs one job after another, each under a hold of its own, so that the other processes have their
// turns.
type worker struct {
	logger *slog.Logger
	client *framework.Client
	lock   recipes.Locker
	job    job
	grace  time.Duration
}

// errGrace is the cause with which a job ends that goes on for too long after the end of the service.
var errGrace = errors.New("the job has not ended within the grace period")

// run works until ctx ends. Then it finishes the job that has begun. It goes on after outages and lost
// sessions. It returns nil after the end of ctx, and otherwise errors that no retry can mend.
func (w *worker) run(ctx context.Context) error {
	for {
		err := w.turn(ctx)
		switch {
		case ctx.Err() != nil:
			if err != nil && !errors.Is(err, context.Cause(ctx)) {
				w.logger.Warn("the last job was not finished", "error", err)
			}
			return nil
		case err == nil:
		case w.client.Outlast(ctx, err): // waits until there is a connection
			w.logger.Warn("the job is tried again", "error", err)
		case errors.Is(err, recipes.ErrNodeDeleted): // by an operator
			w.logger.Warn("the lock was taken away", "error", err)
		case ctx.Err() == nil:
			return err
		}
	}
}

// turn waits for the lock and runs the job.
func (w *worker) turn(ctx context.Context) (err error) {
	hold, err := w.lock.Acquire(ctx) // the end of ctx ends the wait
	if err != nil {
		return err
	}
	defer func() {
		// A loss before the end of the job is an error of Release. A release without an answer is none for
		// the job: it is finished, and the lock will be free a little later.
		if released := hold.Release(); !errors.Is(released, recipes.ErrReleasePending) {
			err = errors.Join(err, released)
		}
	}()
	working, cancel := withGrace(ctx, w.grace)
	defer cancel()
	log := w.logger.With("token", fmt.Sprintf("%#x", hold.Token())) // as in the log of the client
	log.Info("the job begins")
	if err := w.job(hold.Context(working), hold.Token()); err != nil {
		return fmt.Errorf("job: %w", err)
	}
	log.Info("the job is done")
	return nil
}

// withGrace returns a context that outlives parent by d.
func withGrace(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(parent))
	stop := context.AfterFunc(parent, func() {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel(errGrace)
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		stop()
		cancel(context.Canceled)
	}
}
