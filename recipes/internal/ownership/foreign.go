package ownership

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/framework/metrics"
	"github.com/docent-zk/docent/internal/errtext"
	"github.com/docent-zk/docent/internal/signal"
)

// Foreign is an acquired lock of another service.
type Foreign struct {
	Name  string // for errors, logs and measurements
	Token int64  // 0: there is none

	Lost    <-chan struct{}                 // closed when the service takes the lock away; nil: it cannot report that
	Reason  func() error                    // why; nil: not known
	Until   func() time.Time                // when the service ends the hold
	Release func(ctx context.Context) error // called once, unless Closed is closed first
	Within  time.Duration                   // how long Release may take
	Key     any                             // by which it is re-entered; nil: it is not

	Closed  <-chan struct{}      // ends all that is under way; nil: nothing does
	Go      func(fn func()) bool // calls fn in the background, unless it reports false: the client is closed
	Log     *zap.Logger          // for the end of the hold
	Metrics metrics.Metrics      // the end of the hold
}

// NewForeign returns a hold of a lock of another service. It has no node.
func NewForeign(e Foreign) *Hold {
	x := &foreign{e, make(chan struct{})}
	o := newOwnership(x)
	h := o.newHoldLocked()
	if !x.background(func() { x.monitor(o) }) {
		x.Closed = signal.Closed // perhaps it is closed a moment later
		o.lose(x.check())
	}
	return h
}

// ForeignRecipe is what measurements and logs call the kind of lock.
const ForeignRecipe = "foreign"

// foreign is a Foreign as a resource.
type foreign struct {
	Foreign
	stopped chan struct{} // closed when the ownership has ended
}

// monitor ends the ownership when the service does.
func (x *foreign) monitor(o *ownership) {
	// Code of the program may end the goroutine. Then nothing would notice the loss.
	defer func() { o.lose(fmt.Errorf("%w: %s: nothing watches it", ErrForeignLost, x.Name)) }()
	for {
		o.endIfLost()
		select {
		case <-x.stopped:
			return
		case <-x.Closed:
		case <-x.Lost:
		case <-time.After(left(x.Until())):
		}
	}
}

func (x *foreign) session() *framework.Session { return nil }
func (x *foreign) locks() []Lock               { return []Lock{{Path: x.Name, Key: x.Key, Token: x.Token}} }
func (x *foreign) paths() []string             { return nil }
func (x *foreign) parts() []*Hold              { return nil }
func (x *foreign) stopLocked()                 { close(x.stopped) }

func (x *foreign) validUntil() time.Time { return x.Until() }

// background calls Go in a goroutine of its own. If Go ends that, fn is called in another one. A panic of Go is
// one of the caller instead.
func (x *foreign) background(fn func()) bool {
	var called atomic.Bool
	once := func() {
		if called.CompareAndSwap(false, true) {
			fn()
		}
	}
	type end struct {
		begun    bool
		panicked any
	}
	result := make(chan end, 1)
	go func() {
		begun, ended := true, true
		defer func() {
			panicked := recover()
			if ended && panicked == nil {
				go once()
			}
			result <- end{begun, panicked}
		}()
		begun, ended = x.Go(once), false
	}()
	e := <-result
	if e.panicked != nil {
		panic(e.panicked)
	}
	return e.begun
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
		return x.lost()
	case left(x.Until()) <= 0:
		return fmt.Errorf("%w: %s: time limit reached", ErrForeignLost, x.Name)
	case isClosed(x.Closed):
		return fmt.Errorf("%w: %s: closed", ErrForeignLost, x.Name)
	}
	return nil
}

// lost is the error after Lost is closed.
func (x *foreign) lost() error {
	err := fmt.Errorf("%w: %s", ErrForeignLost, x.Name)
	if x.Reason != nil {
		if reason := x.Reason(); reason != nil {
			return fmt.Errorf("%w: %w", err, reason)
		}
	}
	return err
}

// abandon releases what the other service may still leave to its holder, in the background.
func (x *foreign) abandon(error) {
	x.background(func() {
		if err := x.release(); err != nil {
			x.logger().Warn("a lost lock of another service could not be released: it ends by its time limit",
				zap.Error(err))
		}
	})
}

func (x *foreign) logLoss(reason error) {
	x.logger().Log(levelOf(reason), "hold ended", zap.Error(reason))
}

func (x *foreign) logger() *zap.Logger {
	return x.Log.Named(ForeignRecipe).With(zap.String("path", x.Name))
}

// release ends its wait when Closed is closed, which ends all else that is under way, too.
func (x *foreign) release() error {
	ctx, cancel := context.WithTimeout(context.Background(), x.Within)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-x.Closed:
			cancel()
		case <-ctx.Done():
		}
	}()
	defer func() { cancel(); <-watched }()
	err := x.Release(ctx)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrForeignLost):
		return fmt.Errorf("release %s: %w", x.Name, err)
	}
	return fmt.Errorf("release %s: %w", x.Name, errtext.Because(ErrReleasePending, err))
}

func (x *foreign) carry(ctx context.Context, h *Hold) context.Context {
	if x.Key == nil {
		return ctx
	}
	return context.WithValue(ctx, holdKey{x.Key}, h)
}

func (x *foreign) measure(held time.Duration, err error) {
	measure(x.Metrics, metrics.Labels{Recipe: ForeignRecipe, Path: x.Name}, held, err)
}

// addHeld does nothing: a client of ZooKeeper reports the number, and there is none.
func (x *foreign) addHeld(int64) {}
