package recipes

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework"
)

// Foreign is a lock of another service that somebody has, as a hold is made of it. It is for recipes.
type Foreign struct {
	Client  *framework.Client
	Session *framework.Session // of the client: the hold ends with it
	Name    string             // for errors and measurements

	Lost    <-chan struct{}                 // closed when the other service has taken the lock away; nil: nobody tells
	Until   func() time.Time                // how long the other service leaves it to us; nil: until we release it
	Release func(ctx context.Context) error // gives it back; it is called once, unless the client is closed first
}

// NewForeign makes a hold of a lock of another service. It ends with the client's session, too. Its token is 0, and it has no node. It is
// for recipes.
func NewForeign(f Foreign) *Hold {
	e := &foreign{f, make(chan struct{})}
	t := newTenure(e)
	h := t.newLevel()
	if !f.Session.Go(func() { e.monitor(t) }) {
		t.check()
	}
	return h
}

// foreignRecipe is what measurements and logs call the kind of lock.
const foreignRecipe = "foreign"

// foreign is a Foreign as an estate.
type foreign struct {
	Foreign
	over chan struct{} // closed when the tenure is
}

// monitor ends the tenure when the session or the other service does.
func (f *foreign) monitor(t *tenure) {
	for {
		t.check()
		var due <-chan time.Time
		if f.Until != nil {
			due = time.After(left(f.Until()))
		}
		select {
		case <-f.over:
			return
		case <-f.Session.Done():
		case <-f.Lost:
		case <-due:
		}
	}
}

func (f *foreign) session() *framework.Session { return f.Session }
func (f *foreign) locks() []Lock               { return []Lock{{Path: f.Name}} }
func (f *foreign) paths() []string             { return nil }
func (f *foreign) parts() []*Hold              { return nil }
func (f *foreign) attend()                     {}
func (f *foreign) rest()                       { close(f.over) }

func (f *foreign) validUntil() time.Time {
	until := f.Session.ValidUntil()
	if f.Until != nil {
		if theirs := f.Until(); theirs.Before(until) {
			return theirs
		}
	}
	return until
}

// left is how much time there is until then, by the clock that says less: the monotonic one may stop while a machine is suspended, and the
// wall clock may be set.
func left(until time.Time) time.Duration {
	now := time.Now()
	return min(until.Sub(now), until.Round(0).Sub(now.Round(0)))
}

func (f *foreign) trouble() error {
	switch {
	case isClosed(f.Lost):
		return fmt.Errorf("%w: %s", ErrForeignLost, f.Name)
	case f.Until != nil && left(f.Until()) <= 0:
		return fmt.Errorf("%w: %s: its time has run out", ErrForeignLost, f.Name)
	}
	return f.Session.Err()
}

// forsake gives back what the other service may still leave to us, in the background: nobody needs it any more.
func (f *foreign) forsake(reason error) {
	log := f.Client.Logger().Named(foreignRecipe).With(zap.String("path", f.Name))
	defer log.Log(levelOf(reason), "hold ended", zap.Error(reason)) // last: it is code of the program's, which may panic
	f.Client.Go(func() {
		if err := f.giveUp(); err != nil {
			log.Warn("a lock of another service is left to its time there", zap.Error(err))
		}
	})
}

// giveUp does not wait any more once the client is closed, which ends all else that is under way, too.
func (f *foreign) giveUp() error {
	ctx, cancel := context.WithTimeout(context.Background(), f.Session.Timeout())
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-f.Client.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	defer func() { cancel(); <-watched }()
	if err := f.Release(ctx); err != nil {
		return fmt.Errorf("release %s: %w: %w", f.Name, ErrReleasePending, err)
	}
	return nil
}

// carry does nothing: nobody knows what re-entry is over there.
func (f *foreign) carry(ctx context.Context, _ *Hold) context.Context { return ctx }

func (f *foreign) measure(held time.Duration, err error) {
	measure(f.Client.Metrics(), framework.Labels{Recipe: foreignRecipe, Path: f.Name}, held, err)
}
