package retry

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

var (
	errNilContext = errors.New("retry: nil context")
	errNilFunc    = errors.New("retry: nil function")
)

// Do calls fn, and calls it again while it fails with a retryable error and p allows another
// attempt. The elapsed time given to p runs on the monotonic clock from the start of the first
// attempt. A nil p means [Never]. A nil retryable means that every error is retryable, except those
// that only report the end of ctx.
//
// Do ends in one of these ways:
//
//   - fn succeeds: Do returns nil.
//   - fn fails with an error that is not retryable: Do returns this error unchanged.
//   - p allows no further attempt: Do returns the last error of fn, wrapped with the number of
//     attempts and the time they took. After only one attempt it returns the error unchanged.
//   - ctx ends while fn runs or during a wait: the error matches ctx.Err(), context.Cause(ctx) and
//     the last error of fn. If fn itself returns the error of the ended ctx, it counts as
//     interrupted, and the last error is the error of the attempt before.
//   - ctx has a deadline and the next wait would not end before it: Do returns at once. The error
//     matches context.DeadlineExceeded and the last error of fn. Note that ctx.Err() is still nil
//     then: do not call Do again in a loop that only checks the context.
//   - ctx has ended before the first attempt: Do does not call fn. The error matches ctx.Err() and
//     context.Cause(ctx).
//   - ctx or fn is nil: Do returns an error that says so.
//
// The context given to fn is ctx, marked with the running loop. A Do under that context calls its
// fn exactly once and returns its error unchanged. It uses neither its policy nor its retryable:
// the outer loop decides. The mark loses its effect when the outer Do returns.
//
// Curator: RetryLoop.callWithRetry.
func Do(ctx context.Context, p Policy, retryable func(error) bool, fn func(context.Context) error) error {
	switch {
	case ctx == nil:
		return errNilContext
	case fn == nil:
		return errNilFunc
	case ctx.Err() != nil:
		return fmt.Errorf("%w before the first attempt", withCause(ctx, ctx.Err()))
	case inRunningLoop(ctx):
		return fn(ctx)
	}
	l := newLoop(p, retryable)
	defer l.returned.Store(true)
	return l.run(ctx, fn)
}

// loop is a running Do. Other goroutines may use only returned.
type loop struct {
	policy    Policy
	retryable func(error) bool
	start     time.Time
	attempts  int         // calls of fn so far
	last      error       // of the last attempt that was not interrupted by the end of ctx
	returned  atomic.Bool // set when Do returns; contexts may outlive it
}

type loopKey struct{}

// Ungoverned returns a context without the mark of a running Do. Use it in an operation that waits
// for something and has to retry through failures while it waits. Called inside another Do, it
// would otherwise fail at the first error.
func Ungoverned(ctx context.Context) context.Context {
	return context.WithValue(ctx, loopKey{}, (*loop)(nil))
}

// inRunningLoop reports whether ctx comes from a Do that is still running.
func inRunningLoop(ctx context.Context) bool {
	l, ok := ctx.Value(loopKey{}).(*loop)
	return ok && l != nil && !l.returned.Load()
}

func newLoop(p Policy, retryable func(error) bool) *loop {
	if p == nil {
		p = Never()
	}
	if retryable == nil {
		retryable = func(error) bool { return true }
	}
	return &loop{policy: p, retryable: retryable, start: time.Now()}
}

func (l *loop) run(ctx context.Context, fn func(context.Context) error) error {
	marked := context.WithValue(ctx, loopKey{}, l)
	for {
		err := fn(marked)
		l.attempts++
		if err == nil {
			return nil
		}
		wait, end := l.decide(ctx, err)
		if end != nil {
			return end
		}
		pause(ctx, wait)
		if ctx.Err() != nil {
			return l.ended(ctx, ctx.Err())
		}
	}
}

// decide decides what follows a failed attempt. It returns the wait before the next attempt, or the
// error that Do returns.
func (l *loop) decide(ctx context.Context, err error) (wait time.Duration, end error) {
	switch {
	case interrupted(ctx, err):
		return 0, l.ended(ctx, err)
	case !l.retryable(err):
		return 0, err
	}
	l.last = err
	if ctx.Err() != nil {
		return 0, l.ended(ctx, ctx.Err())
	}
	return l.next(ctx)
}

// next asks the policy and checks the deadline of ctx.
func (l *loop) next(ctx context.Context) (wait time.Duration, end error) {
	elapsed := time.Since(l.start)
	wait, ok := l.policy(l.attempts-1, elapsed)
	if !ok {
		return 0, l.gaveUp(elapsed)
	}
	if deadline, ok := ctx.Deadline(); ok && wait >= time.Until(deadline) {
		return 0, fmt.Errorf("%w by the next wait (%v) after %s: %w",
			context.DeadlineExceeded, wait, l.count(), l.last)
	}
	return wait, nil
}

func (l *loop) gaveUp(elapsed time.Duration) error {
	if l.attempts == 1 {
		return l.last
	}
	return fmt.Errorf("gave up after %s in %v: %w", l.count(), elapsed.Round(time.Millisecond), l.last)
}

// ended returns the error of Do after the end of ctx. stop is the error of ctx, or an error of fn
// that reports it.
func (l *loop) ended(ctx context.Context, stop error) error {
	stop = withCause(ctx, stop)
	if l.last == nil { // the only attempt was interrupted: there is nothing to add
		return stop
	}
	return fmt.Errorf("%w after %s: %w", stop, l.count(), l.last)
}

func (l *loop) count() string {
	if l.attempts == 1 {
		return "1 attempt"
	}
	return fmt.Sprintf("%d attempts", l.attempts)
}

// interrupted reports whether err only reports the end of ctx. A time-out of fn itself while ctx
// lives does not.
func interrupted(ctx context.Context, err error) bool {
	return ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx)))
}

// withCause returns stop, wrapped to match the error and the cause of the ended ctx if it does not
// match them yet.
func withCause(ctx context.Context, stop error) error {
	for _, also := range []error{ctx.Err(), context.Cause(ctx)} {
		if !errors.Is(stop, also) {
			stop = fmt.Errorf("%w (%w)", stop, also)
		}
	}
	return stop
}

// pause waits until the time has passed or ctx has ended.
func pause(ctx context.Context, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
