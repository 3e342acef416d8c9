package queue

import (
	"cmp"
	"context"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/ctxerr"
)

// Turn is a place at the front of the line, for an Admission. It is over once its node is gone.
type Turn struct {
	place *place
	alarm *alarm // nil: it must not wait
}

// Session is that of the place.
func (t *Turn) Session() *framework.Session { return t.place.session }

// Leave is the operation that gives up the place. It refuses, with zk.ErrBadVersion, if somebody has written to it since it was read.
func (t *Turn) Leave() framework.Op { return framework.DeleteOp(t.place.path(), t.place.version) }

// Read reads the place again.
func (t *Turn) Read(ctx context.Context) error {
	t.place.watch = nil
	return t.place.watchOwn(ctx)
}

// Data is what was read of the place; nil if that has not been necessary.
func (t *Turn) Data() []byte { return t.place.data }

// MayWait reports whether the caller waits for others.
func (t *Turn) MayWait() bool { return t.alarm != nil }

// Await waits until one of the watches has fired, at most two, or there may be trouble with the place itself. It fails with ErrVanished
// when the turn is over.
func (t *Turn) Await(ctx context.Context, watches ...*framework.Watch) error {
	t.alarm.start()
	return cmp.Or(t.place.rest(ctx, watches...), t.place.session.Err())
}

// outlastAgain is the pause after a trouble that a place outlasts, beyond that which operations make.
const outlastAgain = 100 * time.Millisecond

// Outlast returns ErrAgain, after a while, if err is trouble with the connection, which those who wait outlast as long as the session
// lasts; otherwise err.
func (t *Turn) Outlast(ctx context.Context, err error) error {
	if !t.MayWait() || ctx.Err() != nil || !framework.IsTransient(err) || t.place.session.Err() != nil {
		return err
	}
	select {
	case <-time.After(outlastAgain):
		return ErrAgain
	case <-ctx.Done():
		return ctxerr.Of(ctx)
	}
}
