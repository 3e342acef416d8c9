package ownership

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/framework/metrics"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/errtext"
)

// Foreign is an acquired lock of another service.
type Foreign struct {
	Client  *framework.Client
	Session *framework.Session // of the client: the hold ends with it
	Name    string             // for errors and measurements

	Lost    <-chan struct{}                 // closed when the service takes the lock away; nil: it cannot report that
	Until   func() time.Time                // when the other service ends the hold; nil: at Release
	Release func(ctx context.Context) error // called once, unless the client is closed first
}

// NewForeign returns a hold of a lock of another service. It ends with the client's session,
// too. Its token is 0, and it has no node.
func NewForeign(e Foreign) *Hold {
	x := &foreign{e, make(chan struct{})}
	o := newOwnership(x)
	h := o.newHoldLocked()
	if !bridge.OfSession(e.Session).Go(func() { x.monitor(o) }) {
		o.loseIfLost()
	}
	return h
}

// foreignRecipe is what measurements and logs call the kind of lock.
const foreignRecipe = "foreign"

// foreign is a Foreign as a resource.
type foreign struct {
	Foreign
	stopped chan struct{} // closed when the ownership has ended
}

// monitor ends the ownership when the session or the other service does.
func (x *foreign) monitor(o *ownership) {
	for {
		o.loseIfLost()
		var due <-chan time.Time
		if x.Until != nil {
			due = time.After(left(x.Until()))
		}
		select {
		case <-x.stopped:
			return
		case <-x.Session.Done():
		case <-x.Lost:
		case <-due:
		}
	}
}

func (x *foreign) session() *framework.Session { return x.Session }
func (x *foreign) locks() []Lock               { return []Lock{{Path: x.Name}} }
func (x *foreign) paths() []string             { return nil }
func (x *foreign) parts() []*Hold              { return nil }
func (x *foreign) stopLocked()                 { close(x.stopped) }

func (x *foreign) validUntil() time.Time {
	until := x.Session.ValidUntil()
	if x.Until != nil {
		if theirs := x.Until(); theirs.Before(until) {
			return theirs
		}
	}
	return until
}

// left returns how much time there is until then, by the clock that says less: the monotonic one
// may stop while a machine is suspended, and the wall clock may be set.
func left(until time.Time) time.Duration {
	now := time.Now()
	return min(until.Sub(now), until.Round(0).Sub(now.Round(0)))
}

func (x *foreign) check() error {
	switch {
	case isClosed(x.Lost):
		return fmt.Errorf("%w: %s", ErrForeignLost, x.Name)
	case x.Until != nil && left(x.Until()) <= 0:
		return fmt.Errorf("%w: %s: time limit reached", ErrForeignLost, x.Name)
	}
	return x.Session.Err()
}

// abandon releases what the other service may still leave to its holder, in the background.
func (x *foreign) abandon(reason error) {
	log := x.Client.Logger().Named(foreignRecipe).With(zap.String("path", x.Name))
	// The log comes last: it is code of the program, which may panic.
	defer log.Log(levelOf(reason), "hold ended", zap.Error(reason))
	bridge.Of(x.Client).Go(func() {
		if err := x.release(); err != nil {
			log.Warn("a lost lock of another service could not be released: it ends by its time limit", zap.Error(err))
		}
	})
}

// release ends its wait when the client is closed, which ends all else that is under way, too.
func (x *foreign) release() error {
	ctx, cancel := context.WithTimeout(context.Background(), x.Session.Timeout())
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-x.Client.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	defer func() { cancel(); <-watched }()
	if err := x.Release(ctx); err != nil {
		return fmt.Errorf("release %s: %w", x.Name, errtext.Because(ErrReleasePending, err))
	}
	return nil
}

// carry does nothing: re-entry is the other service's.
func (x *foreign) carry(ctx context.Context, _ *Hold) context.Context { return ctx }

func (x *foreign) measure(held time.Duration, err error) {
	measure(bridge.Of(x.Client).Metrics(), metrics.Labels{Recipe: foreignRecipe, Path: x.Name}, held, err)
}

func (x *foreign) addHeld(n int64) {
	bridge.Of(x.Client).AddHeld(n, metrics.Labels{Recipe: foreignRecipe, Path: x.Name})
}
