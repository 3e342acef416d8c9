package queue

import (
	"cmp"
	"context"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/ctxerr"
)

// Turn is a place at the front of the line, for an Admission. It is over once its node is gone.
type FrontWaiter struct {
	waiter *waiter
	warner *waitWarner // nil: it must not wait
}

// Session is that of the place.
func (f *FrontWaiter) Session() *framework.Session { return f.waiter.session }

// Leave is the operation that gives up the place. It refuses, with zk.ErrBadVersion, if somebody has written to it since it was read.
func (f *FrontWaiter) DeleteOp() framework.Op {
	return framework.DeleteOp(f.waiter.path(), f.waiter.version)
}

// Read reads the place again.
func (f *FrontWaiter) Reread(ctx context.Context) error {
	f.waiter.ownWatch = nil
	return f.waiter.watchOwn(ctx)
}

// Data is what was read of the place; nil if that has not been necessary.
func (f *FrontWaiter) Data() []byte { return f.waiter.data }

// MayWait reports whether the caller waits for others.
func (f *FrontWaiter) MayWait() bool { return f.warner != nil }

// Await waits until one of the watches has fired, at most two, or there may be trouble with the place itself. It fails with ErrVanished
// when the turn is over.
func (f *FrontWaiter) Wait(ctx context.Context, watches ...*framework.Watch) error {
	f.warner.start()
	return cmp.Or(f.waiter.waitAny(ctx, watches...), f.waiter.session.Err())
}

// outlastAgain is the pause after a trouble that a place outlasts, beyond that which operations make.
const retryPause = 100 * time.Millisecond

// Outlast returns ErrAgain, after a while, if err is trouble with the connection, which those who wait outlast as long as the session
// lasts; otherwise err.
func (f *FrontWaiter) Retry(ctx context.Context, err error) error {
	if !f.MayWait() || ctx.Err() != nil || !framework.IsTransient(err) || f.waiter.session.Err() != nil {
		return err
	}
	select {
	case <-time.After(retryPause):
		return ErrRetry
	case <-ctx.Done():
		return ctxerr.Of(ctx)
	}
}
