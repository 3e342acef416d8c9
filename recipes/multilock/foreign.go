package multilock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/internal/ownership"
	"github.com/docent-zk/docent/recipes/internal/queue"
)

// Grip is a lock of another service that we have.
type Grip struct {
	// Until is how long the other service leaves the lock to us, as far as is known when it is asked: who renews it moves that on. It is
	// called by several goroutines at once. Nil: until it is released.
	Until func() time.Time
	// Lost is closed when we know that the other service has taken the lock away. Nil: nobody tells.
	Lost <-chan struct{}
	// Release gives the lock back. It is needed, is called once, in the background too, and must return when ctx ends: after the session
	// timeout, or when the client is closed, which waits for it.
	Release func(ctx context.Context) error
}

// Foreign makes a lock of another service, such as Redis, one that Of can hold together with locks of docent: for the time in which
// some of a fleet know only the other service. Take acquires it: if wait is true it waits until ctx ends, otherwise for nobody; where
// somebody else has the lock its error should match recipes.ErrNotAcquired. What is over when take returns is an error, too. Name is for
// errors and measurements.
//
// What it holds ends with what Grip says and with the client's session, as everything that is held together ends together:
// recipes.ErrForeignLost, or the session's error. Its token is 0, and Guard does not ask the other service. If the client is closed before
// Release has been called, the lock is left to the time that the other service gives it; so give it one, and do not make it longer
// than the work can wait. Foreign refuses a nil or zero client, an empty name and a nil function. Curator has no counterpart.
func Foreign(c *framework.Client, name string, take func(ctx context.Context, wait bool) (Grip, error)) (Lock, error) {
	err := bridge.Of(c).Validate()
	switch {
	case err != nil:
	case name == "":
		err = errors.New("a foreign lock needs a name")
	case take == nil:
		err = fmt.Errorf("foreign lock %q: nil function", name)
	}
	if err != nil {
		return nil, fmt.Errorf("multilock: %w", err)
	}
	return &foreign{c, name, take}, nil
}

type foreign struct {
	client *framework.Client
	name   string
	take   func(ctx context.Context, wait bool) (Grip, error)
}

func (f *foreign) Acquire(ctx context.Context) (*recipes.Hold, error) { return f.acquire(ctx, true) }
func (f *foreign) TryAcquire(ctx context.Context) (*recipes.Hold, error) {
	return f.acquire(ctx, false)
}

func (f *foreign) acquire(ctx context.Context, wait bool) (*recipes.Hold, error) {
	if err := queue.CheckCall(ctx, "multilock", "Foreign", true); err != nil {
		return nil, err
	}
	session, err := f.client.Session(ctx)
	if err != nil {
		return nil, f.failed(ctx, err)
	}
	grip, err := f.take(ctx, wait)
	if err == nil && grip.Release == nil {
		err = errors.New("what was taken has no Release")
	}
	if err != nil {
		return nil, f.failed(ctx, err)
	}
	hold := ownership.NewExternal(ownership.External{
		Client: f.client, Session: session, Name: f.name, Lost: grip.Lost, Until: grip.Until, Release: grip.Release,
	})
	switch err := hold.Err(); {
	case ctx.Err() != nil:
		return nil, f.failed(ctx, undo(ctx, []*ownership.Hold{hold}))
	case errors.Is(err, recipes.ErrForeignLost):
		return nil, f.failed(ctx, err)
	}
	return recipes.NewHold(hold, nil)
}

// failed also says that ctx has ended, if err does not.
func (f *foreign) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
		err = errors.Join(ctxerr.Of(ctx), err)
	}
	return fmt.Errorf("acquire %s: %w", f.name, err)
}
