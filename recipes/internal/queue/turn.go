package queue

import (
	"context"

	"github.com/docent-zk/docent/framework"
)

// Turn is a place at the front of the line, for an Admission. It is over once its node is gone.
type Turn struct {
	lock  *Lock
	place *place
	alarm *alarm // nil: it must not wait
}

// Session is that of the place.
func (t *Turn) Session() *framework.Session { return t.place.session }

// Node is the node of the place.
func (t *Turn) Node() string { return t.place.path() }

// MayWait reports whether the caller waits for others.
func (t *Turn) MayWait() bool { return t.alarm != nil }

// Await waits until one of the watches has fired, at most two, or there may be trouble with the place itself. It fails with ErrVanished when
// the turn is over.
func (t *Turn) Await(ctx context.Context, watches ...*framework.Watch) error {
	t.alarm.start()
	if err := t.place.rest(ctx, watches...); err != nil {
		return waited(ctx, err)
	}
	return t.place.session.Err()
}
