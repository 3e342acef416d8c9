package recipes

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework/metrics"
	"github.com/docent-zk/docent/recipes/internal/ownership"
)

// ForeignHold describes an acquired lock of another service, such as Redis or a database, from which
// HoldForeign makes a Hold. Name, Until and Release are required.
type ForeignHold struct {
	// Name appears in errors, logs and metrics.
	Name string
	// Token is the fencing token: a later holder of the lock has a larger one. 0 means that the
	// service has none.
	Token int64
	// Until returns the local time until which the service leaves the lock to this client, as far as
	// is known at the call. Reckon it from before the request that the service has answered, by
	// time.Now().Add: a time that was stored or sent has no monotonic clock, so setting back the clock
	// of this machine would make the hold last longer. A renewal makes it later. If it becomes
	// earlier, the hold ends at the time that it was before; close Lost to end it at once. Several
	// goroutines call Until at once. It must not wait for anything. For a lock without a time limit
	// return a time far ahead.
	Until func() time.Time
	// Lost is closed when the service is known to have taken the lock away. Nil means that there is
	// no such notification.
	Lost <-chan struct{}
	// Reason says why Lost is closed: it becomes a part of Hold.Err. Nil, or a nil error, means that
	// nothing more is known.
	Reason func() error
	// Release releases the lock. It is called once: by Hold.Release, or in the background after a
	// loss, because the service may still leave the lock to its holder. It must return when ctx ends,
	// which is after Within. It must not release a later hold of the same lock. An error that matches
	// ErrForeignLost means that the service had taken the lock away before: Hold.Release returns it.
	// With any other error, Hold.Release returns ErrReleasePending.
	Release func(ctx context.Context) error
	// Within is how long Release may take. 0 means 10 s.
	Within time.Duration
	// Key identifies the lock for Reenter: equal keys are the same lock. It must be comparable, and of
	// a type that is the caller's own. Nil means that the lock does not re-enter.
	Key any
	// Go has fn called in a goroutine of the lock's client, which waits for it when it is closed. It
	// reports false if the client is closed, and then fn is not called and the hold ends. It is called
	// for fn that returns when the hold ends, and for Release after a loss. It must not wait: until it
	// returns, HoldForeign does not, and the parts of a lock of package multilock stay held. If it ends
	// its goroutine, which is one of its own, fn is called in a goroutine that nothing waits for. If it panics,
	// HoldForeign does, or the release of a lock of package multilock, or the process ends. Nil means a
	// goroutine that nothing waits for, for each fn.
	Go func(fn func()) bool
	// Closed is closed when the lock's client is closed, which ends the hold and a Release that is
	// under way. Nil means that the client is never closed.
	Closed <-chan struct{}
	// Logger gets the end of a hold that is lost. Nil means no logs.
	Logger *zap.Logger
	// Metrics gets metrics.LockHold and metrics.LockLosses. The recipe is "foreign", and the path is
	// Name. Nil means none.
	Metrics metrics.Metrics
}

// releaseWithin is the default of ForeignHold.Within.
const releaseWithin = 10 * time.Second

// HoldForeign returns a Hold of a lock that was acquired from another service. With it a program
// makes a Locker for a service that docent does not know. The Hold ends by Release; when Lost or
// Closed is closed, or the time of Until has passed, with ErrForeignLost. It is independent of
// ZooKeeper: it has no node, and Guard fails with ErrUnsupported. Its contexts carry it for Reenter if
// it has a Key. A lock of package multilock that has it as a part ends with any of its parts.
//
// HoldForeign returns an error if Name is empty, a required function is nil, Token or Within is
// negative, Key is not comparable, or the lock has ended by then. In the last case the error matches
// ErrForeignLost, and the lock is released in the background. In the other cases it is not released.
//
// Curator has no counterpart.
func HoldForeign(f ForeignHold) (*Hold, error) {
	if err := f.check(); err != nil {
		return nil, fmt.Errorf("recipes: hold a lock of another service: %w", err)
	}
	h := ownership.NewForeign(f.complete())
	if err := h.Err(); err != nil {
		return nil, fmt.Errorf("acquire %s: %w", f.Name, err)
	}
	return NewHold(h, nil)
}

// Reenter returns another hold of the lock with this ForeignHold.Key, if ctx carries one that is valid:
// if ctx was made by Hold.Context. Both share the lock. The last release releases it. A Locker calls it
// first in each acquire. It reports false if ctx carries no such hold, and for a nil ctx or key.
//
// Curator has no counterpart.
func Reenter(ctx context.Context, key any) (*Hold, bool) {
	if ctx == nil || key == nil || !reflect.ValueOf(key).Comparable() {
		return nil, false
	}
	h, ok := ownership.Reenter(ctx, key)
	if !ok {
		return nil, false
	}
	return &Hold{hold: h}, true
}

func (f ForeignHold) check() error {
	switch {
	case f.Name == "":
		return errors.New("it has no name")
	case f.Until == nil:
		return fmt.Errorf("%s: nil Until", f.Name)
	case f.Release == nil:
		return fmt.Errorf("%s: nil Release", f.Name)
	case f.Token < 0:
		return fmt.Errorf("%s: token %d is negative", f.Name, f.Token)
	case f.Within < 0:
		return fmt.Errorf("%s: Within is %v", f.Name, f.Within)
	case f.Key != nil && !reflect.ValueOf(f.Key).Comparable():
		return fmt.Errorf("%s: Key of type %T is not comparable", f.Name, f.Key)
	}
	return nil
}

// complete returns f with its defaults.
func (f ForeignHold) complete() ownership.Foreign {
	e := ownership.Foreign{
		Name: f.Name, Token: f.Token, Until: f.Until, Lost: f.Lost, Reason: f.Reason, Release: f.Release,
		Within: f.Within, Key: f.Key, Go: f.Go, Closed: f.Closed, Log: f.Logger, Metrics: f.Metrics,
	}
	if e.Within == 0 {
		e.Within = releaseWithin
	}
	if e.Go == nil {
		e.Go = func(fn func()) bool { go fn(); return true }
	}
	if e.Log == nil {
		e.Log = zap.NewNop()
	}
	if e.Metrics == nil {
		e.Metrics = noMetrics{}
	}
	return e
}

type noMetrics struct{}

func (noMetrics) Add(metrics.Instrument, int64, metrics.Labels) {}

func (noMetrics) Record(metrics.Instrument, time.Duration, metrics.Labels) {}
