package multilock

import (
	"context"
	"errors"
	"fmt"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/ctxerr"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/internal/check"
	"github.com/docent-zk/docent/recipes/internal/ownership"
)

// Foreign returns a lock of another service, such as Redis, which Combine can hold together with
// locks of docent. Use it while some programs know only the other service. Name appears in errors
// and metrics.
//
// Take acquires the lock. If wait is true, it waits until ctx ends, otherwise it does not wait for
// other holders. If another client has the lock, its error should match recipes.ErrNotAcquired. A
// lock that has ended when take returns is an error, too.
//
// The hold is one of recipes.HoldForeign that depends on the client, too. It ends when the
// ForeignHold ends, with recipes.ErrForeignLost, and when the client's session ends, with the
// session's error. Of the ForeignHold only Token, Until, Lost, Reason and Release are used, and Until
// may be nil: then the lock has no time limit. Guard does not ask the other service. Release may take
// as long as the session timeout. If the client is closed before Release is called, the lock is kept
// until the other service's time limit. So give it a time limit, no longer than the work can wait.
//
// Foreign returns an error for a nil or unusable client, an empty name and a nil function. Curator
// has no counterpart.
func Foreign(
	c *framework.Client, name string, take func(ctx context.Context, wait bool) (recipes.ForeignHold, error),
) (recipes.Locker, error) {
	err := bridge.Of(c).Validate()
	switch {
	case err != nil:
	case name == "":
		err = errors.New("a foreign lock needs a name")
	case take == nil:
		err = fmt.Errorf("foreign lock %q: nil function", name)
	}
	if err != nil {
		return nil, fmt.Errorf("new lock of another service: %w", err)
	}
	return &foreign{c, name, take}, nil
}

type foreign struct {
	client *framework.Client
	name   string
	take   func(ctx context.Context, wait bool) (recipes.ForeignHold, error)
}

func (f *foreign) Acquire(ctx context.Context) (*recipes.Hold, error) { return f.acquire(ctx, true) }

func (f *foreign) TryAcquire(ctx context.Context) (*recipes.Hold, error) {
	return f.acquire(ctx, false)
}

func (f *foreign) acquire(ctx context.Context, wait bool) (*recipes.Hold, error) {
	if err := check.Call(ctx, "multilock", "Foreign", true); err != nil {
		return nil, err
	}
	session, err := f.client.Session(ctx)
	if err != nil {
		return nil, f.failed(ctx, err)
	}
	held, err := f.take(ctx, wait)
	if err == nil && held.Release == nil {
		err = errors.New("the acquired lock has no Release function")
	}
	if err != nil {
		return nil, f.failed(ctx, err)
	}
	hold := f.hold(session, held)
	switch err := hold.Err(); {
	case ctx.Err() != nil:
		return nil, f.failed(ctx, undo(ctx, []*ownership.Hold{hold}))
	case errors.Is(err, recipes.ErrForeignLost):
		return nil, f.failed(ctx, err)
	}
	return recipes.NewHold(hold, nil)
}

// hold makes the hold of an acquired lock.
func (f *foreign) hold(session *framework.Session, held recipes.ForeignHold) *ownership.Hold {
	client := bridge.Of(f.client)
	return ownership.NewForeign(ownership.Foreign{
		Name: f.name, Token: held.Token, Session: session,
		Lost: held.Lost, Reason: held.Reason, Until: held.Until, Release: held.Release, Within: session.Timeout(),
		Closed: f.client.Done(), Go: client.Go, Log: f.client.Logger(),
		Metrics: client.Metrics(), AddHeld: client.AddHeld,
	})
}

// failed adds the name to err, and the error of ctx if ctx has ended and err does not match it.
func (f *foreign) failed(ctx context.Context, err error) error {
	return fmt.Errorf("acquire %s: %w", f.name, ctxerr.With(ctx, err))
}
