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
	"github.com/docent-zk/docent/recipes/internal/check"
	"github.com/docent-zk/docent/recipes/internal/ownership"
)

// ForeignHold is an acquired lock of another service.
type ForeignHold struct {
	// Until returns the time until which the other service leaves the lock to this client, as far
	// as is known at the call. A renewal may move it. Several goroutines call it at once. Nil means
	// that the lock has no time limit.
	Until func() time.Time
	// Lost is closed when the other service is known to have taken the lock away. Nil means that
	// there is no such notification.
	Lost <-chan struct{}
	// Release releases the lock. It must not be nil. It is called once, possibly in the background.
	// It must return when ctx ends. ctx ends after the session timeout, or when the client is
	// closed, which waits for Release.
	Release func(ctx context.Context) error
}

// Foreign returns a lock of another service, such as Redis, which Combine can hold together with
// locks of docent. Use it while some programs know only the other service. Name appears in errors
// and metrics.
//
// Take acquires the lock. If wait is true, it waits until ctx ends, otherwise it does not wait for
// other holders. If another client has the lock, its error should match recipes.ErrNotAcquired. A
// lock that has ended when take returns is an error, too.
//
// The hold ends when the ForeignHold ends, with recipes.ErrForeignLost, and when the client's
// session ends, with the session's error. Its token is 0, and Guard does not ask the other service.
// If the client is closed before Release is called, the lock is kept until the other service's time
// limit. So give it a time limit, no longer than the work can wait.
//
// Foreign returns an error for a nil or unusable client, an empty name and a nil function. Curator
// has no counterpart.
func Foreign(
	c *framework.Client, name string, take func(ctx context.Context, wait bool) (ForeignHold, error),
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
	take   func(ctx context.Context, wait bool) (ForeignHold, error)
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
	hold := ownership.NewForeign(ownership.Foreign{
		Client: f.client, Session: session, Name: f.name, Lost: held.Lost, Until: held.Until, Release: held.Release,
	})
	switch err := hold.Err(); {
	case ctx.Err() != nil:
		return nil, f.failed(ctx, undo(ctx, []*ownership.Hold{hold}))
	case errors.Is(err, recipes.ErrForeignLost):
		return nil, f.failed(ctx, err)
	}
	return recipes.NewHold(hold, nil)
}

// failed adds the name to err, and the error of ctx if ctx has ended and err does not match it.
func (f *foreign) failed(ctx context.Context, err error) error {
	return fmt.Errorf("acquire %s: %w", f.name, ctxerr.With(ctx, err))
}
