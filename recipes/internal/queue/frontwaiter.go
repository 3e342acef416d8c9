package queue

import (
	"cmp"
	"context"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/recipes/internal/enqueue"
)

// FrontWaiter is a waiter at the front of its queue, for a Gate. Its calls fail once its node is
// deleted.
type FrontWaiter struct {
	waiter   *waiter
	observer Observer // dontWait: the caller must not wait
}

// Session returns the session of the node.
func (f *FrontWaiter) Session() *framework.Session { return f.waiter.session }

// DeleteOp returns the operation that deletes the node. It fails with zk.ErrBadVersion if
// another client has written to the node since it was read.
func (f *FrontWaiter) DeleteOp() framework.Op {
	f.waiter.deleting.Store(true)
	return framework.DeleteOp(f.waiter.path, f.waiter.version)
}

// Reread reads the node again.
func (f *FrontWaiter) Reread(ctx context.Context) error {
	f.waiter.ownWatch = nil
	return f.waiter.watchOwn(ctx)
}

// Data returns the data that was read of the node; nil if the node was not read.
func (f *FrontWaiter) Data() []byte { return f.waiter.data }

// MayWait reports whether the caller waits for other holders.
func (f *FrontWaiter) MayWait() bool { return f.observer != dontWait }

// Wait waits until one of the watches, or that of the own node, has fired. A watch may be nil. Wait
// returns ErrOwnNodeDeleted if the own node was deleted.
func (f *FrontWaiter) Wait(ctx context.Context, first, second *framework.Watch) error {
	f.observer.Waits(OwnNodes{f.waiter})
	return cmp.Or(f.waiter.waitAny(ctx, first, second), f.waiter.session.Err())
}

// retryPause is the pause of PauseForRetry, beyond those that the operations make.
const retryPause = 100 * time.Millisecond

// PauseForRetry returns ErrRetry, after a pause, if err is a transient error and the session lasts:
// a waiter keeps its node through an outage. Otherwise it returns err.
func (f *FrontWaiter) PauseForRetry(ctx context.Context, err error) error {
	if !f.MayWait() || ctx.Err() != nil || !framework.IsTransient(err) || f.waiter.session.Err() != nil {
		return err
	}
	select {
	case <-time.After(retryPause):
		return enqueue.ErrRetry
	case <-ctx.Done():
		return ctxerr.Of(ctx)
	}
}
