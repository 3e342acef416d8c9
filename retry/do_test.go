package retry

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	errClosed = errors.New("zk: connection closed")
	errNoNode = errors.New("zk: node does not exist")
	errCause  = errors.New("client closed")
)

// opError is an example of the error types that callers look for with errors.As.
type opError struct{ attempt int }

func (e *opError) Error() string { return fmt.Sprintf("op %d failed", e.attempt) }

// script is a function for Do that returns its errors in turn, and then always the last one.
type script struct {
	errs  []error
	calls int
	times []time.Time
}

func (s *script) run(context.Context) error {
	err := s.errs[min(s.calls, len(s.errs)-1)]
	s.calls++
	s.times = append(s.times, time.Now())
	return err
}

func failing(errs ...error) *script { return &script{errs: errs} }

func TestDoStopsAtTheFirstSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := failing(errClosed, errClosed, nil)
		start := time.Now()
		require.NoError(t, Do(t.Context(), Times(5, time.Second), nil, s.run))
		require.Equal(t, 3, s.calls)
		require.Equal(t, 2*time.Second, time.Since(start))
	})
}

func TestDoDoesNotWaitWhenTheFirstAttemptSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		require.NoError(t, Do(t.Context(), Forever(time.Hour), nil, failing(nil).run))
		require.Zero(t, time.Since(start))
	})
}

func TestDoReturnsAnErrorThatIsNotRetryableAsItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := failing(errClosed, errNoNode)
		retryable := func(err error) bool { return errors.Is(err, errClosed) }
		err := Do(t.Context(), Times(5, time.Second), retryable, s.run)
		require.Same(t, errNoNode, err)
		require.Equal(t, 2, s.calls)
	})
}

func TestDoGivesUpWithTheLastErrorAndTheCountOfAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := failing(errNoNode, errNoNode, errNoNode, &opError{attempt: 3})
		err := Do(t.Context(), Times(3, 400*time.Millisecond), nil, s.run)
		require.EqualError(t, err, "gave up after 4 attempts in 1.2s: op 3 failed")
		require.Equal(t, 4, s.calls)
		var op *opError
		require.ErrorAs(t, err, &op)
		require.Equal(t, 3, op.attempt)
		require.NotErrorIs(t, err, errNoNode)
	})
}

func TestDoReturnsTheErrorOfAnOnlyAttemptAsItIs(t *testing.T) {
	for name, p := range map[string]Policy{"never": Never(), "nil": nil, "zero times": Times(0, time.Second)} {
		t.Run(name, func(t *testing.T) {
			s := failing(errClosed)
			require.Same(t, errClosed, Do(t.Context(), p, nil, s.run))
			require.Equal(t, 1, s.calls)
		})
	}
}

func TestDoAsksThePolicyWithTheAttemptAndTheElapsedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var attempts []int
		var elapsed []time.Duration
		p := func(attempt int, e time.Duration) (time.Duration, bool) {
			attempts, elapsed = append(attempts, attempt), append(elapsed, e)
			return time.Duration(attempt+1) * time.Second, attempt < 2
		}
		err := Do(t.Context(), p, nil, func(context.Context) error {
			time.Sleep(100 * time.Millisecond) // the time of an attempt
			return errClosed
		})
		require.ErrorIs(t, err, errClosed)
		require.Equal(t, []int{0, 1, 2}, attempts)
		want := []time.Duration{100 * time.Millisecond, 1200 * time.Millisecond, 3300 * time.Millisecond}
		require.Equal(t, want, elapsed)
	})
}

func TestDoUntilElapsedComparesTheTimeBeforeTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := failing(errClosed)
		start := time.Now()
		err := Do(t.Context(), UntilElapsed(3*time.Second, 2*time.Second), nil, s.run)
		require.EqualError(t, err, "gave up after 3 attempts in 4s: zk: connection closed")
		require.Equal(t, 4*time.Second, time.Since(start))
	})
}

func TestDoWaitsExactlyAsThePolicySays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := func(attempt int, _ time.Duration) (time.Duration, bool) {
			return []time.Duration{time.Second, 0, -time.Second}[min(attempt, 2)], attempt < 3
		}
		s := failing(errClosed)
		start := time.Now()
		require.ErrorIs(t, Do(t.Context(), p, nil, s.run), errClosed)
		second := start.Add(time.Second)
		require.Equal(t, []time.Time{start, second, second, second}, s.times)
	})
}

func TestDoDoesNotCallUnderAContextThatHasEnded(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errCause)
	err := Do(ctx, Times(5, time.Second), nil, failing(nil).run)
	require.EqualError(t, err, "context canceled (client closed) before the first attempt")
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, errCause)

	ctx, stop := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer stop()
	s := failing(nil)
	err = Do(ctx, Times(5, time.Second), nil, s.run)
	require.EqualError(t, err, "context deadline exceeded before the first attempt")
	require.Zero(t, s.calls)
}

func TestDoWakesWhenTheContextEndsDuringAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		start := time.Now()
		time.AfterFunc(2500*time.Millisecond, func() { cancel(errCause) })
		s := failing(errNoNode, errNoNode, errClosed)
		err := Do(ctx, Forever(time.Second), nil, s.run)
		require.EqualError(t, err, "context canceled (client closed) after 3 attempts: zk: connection closed")
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, errCause)
		require.ErrorIs(t, err, errClosed)
		require.Equal(t, 2500*time.Millisecond, time.Since(start))
	})
}

func TestDoEndsWhenTheContextEndedDuringAnAttempt(t *testing.T) {
	tests := []struct {
		name  string
		errs  []error // the last one is returned when ctx has ended
		want  string
		match []error
	}{
		{"fn reports a real error", []error{errNoNode, errClosed},
			"context canceled (client closed) after 2 attempts: zk: connection closed", []error{errClosed}},
		{"fn reports the context's error", []error{errClosed, context.Canceled},
			"context canceled (client closed) after 2 attempts: zk: connection closed", []error{errClosed}},
		{"fn reports the cause", []error{errClosed, errCause},
			"client closed (context canceled) after 2 attempts: zk: connection closed", []error{errClosed}},
		{"fn wraps the context's error", []error{errClosed, fmt.Errorf("get /a: %w", context.Canceled)},
			"get /a: context canceled (client closed) after 2 attempts: zk: connection closed",
			[]error{errClosed}},
		{"the first attempt reports a real error", []error{errClosed},
			"context canceled (client closed) after 1 attempt: zk: connection closed", []error{errClosed}},
		{"the first attempt reports the context's error", []error{fmt.Errorf("get /a: %w", context.Canceled)},
			"get /a: context canceled (client closed)", nil},
		{"the first attempt reports the error and the cause",
			[]error{fmt.Errorf("get /a: %w: %w", context.Canceled, errCause)},
			"get /a: context canceled: client closed", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				s := failing(tt.errs...)
				err := Do(ctx, Forever(time.Second), nil, func(ctx context.Context) error {
					err := s.run(ctx)
					if s.calls == len(s.errs) {
						cancel(errCause)
					}
					return err
				})
				require.EqualError(t, err, tt.want)
				require.Equal(t, len(tt.errs), s.calls)
				for _, match := range append(tt.match, context.Canceled, errCause) {
					require.ErrorIs(t, err, match)
				}
			})
		})
	}
}

func TestDoPrefersAnErrorThatIsNotRetryableToTheEndOfTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	never := func(error) bool { return false }
	err := Do(ctx, Forever(time.Second), never, func(context.Context) error {
		cancel()
		return errNoNode
	})
	require.Same(t, errNoNode, err)
}

func TestDoReturnsASuccessThatRacesWithTheEndOfTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	require.NoError(t, Do(ctx, Forever(time.Second), nil, func(context.Context) error {
		cancel()
		return nil
	}))
}

func TestDoRetriesATimeOutOfTheAttemptItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := failing(context.DeadlineExceeded, context.Canceled, nil)
		require.NoError(t, Do(t.Context(), Times(5, time.Second), nil, s.run))
		require.Equal(t, 3, s.calls)
	})
}

func TestDoDoesNotBeginAWaitBeyondTheDeadline(t *testing.T) {
	tests := []struct {
		name    string
		timeout time.Duration
		calls   int
		took    time.Duration
		want    string
	}{
		{"the first wait is too long", 9 * time.Second, 1, 0,
			"context deadline exceeded by the next wait (10s) after 1 attempt: zk: connection closed"},
		{"the third wait is too long", 29 * time.Second, 3, 20 * time.Second,
			"context deadline exceeded by the next wait (10s) after 3 attempts: zk: connection closed"},
		{"a wait that ends with the deadline", 20 * time.Second, 2, 10 * time.Second,
			"context deadline exceeded by the next wait (10s) after 2 attempts: zk: connection closed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), tt.timeout)
				defer cancel()
				start := time.Now()
				s := failing(errClosed)
				err := Do(ctx, Forever(10*time.Second), nil, s.run)
				require.EqualError(t, err, tt.want)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorIs(t, err, errClosed)
				require.NoError(t, ctx.Err(), "the deadline has not passed yet")
				require.Equal(t, tt.calls, s.calls)
				require.Equal(t, tt.took, time.Since(start))
			})
		})
	}
}

func TestDoAnswersNilArgumentsWithAnError(t *testing.T) {
	var none context.Context
	require.EqualError(t, Do(none, Never(), nil, failing(nil).run), "retry: nil context")
	require.EqualError(t, Do(t.Context(), Never(), nil, nil), "retry: nil function")
}

// nest calls fn in depth nested loops.
func nest(ctx context.Context, depth int, p Policy, fn func(context.Context) error) error {
	if depth == 0 {
		return fn(ctx)
	}
	return Do(ctx, p, nil, func(ctx context.Context) error { return nest(ctx, depth-1, p, fn) })
}

func TestNestedLoopsDoNotMultiply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := failing(errClosed)
		err := nest(t.Context(), 3, Times(5, time.Second), s.run)
		require.EqualError(t, err, "gave up after 6 attempts in 5s: zk: connection closed")
		require.Equal(t, 6, s.calls)
	})
}

func TestNestedLoopsAreFoundThroughDerivedContexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := failing(errClosed)
		err := Do(t.Context(), Once(time.Second), nil, func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			return Do(ctx, Times(5, time.Second), nil, s.run)
		})
		require.ErrorIs(t, err, errClosed)
		require.Equal(t, 2, s.calls)
	})
}

func TestNestedLoopNeverCallsUnderAContextThatHasEnded(t *testing.T) {
	s := failing(nil)
	err := Do(t.Context(), Never(), nil, func(ctx context.Context) error {
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		return Do(ctx, Never(), nil, s.run)
	})
	require.EqualError(t, err, "context canceled before the first attempt")
	require.Zero(t, s.calls)
}

func TestContextThatOutlivesItsLoopIsOrdinaryAgain(t *testing.T) {
	ended := map[string]func(keep func(context.Context) error) error{
		"success": func(keep func(context.Context) error) error {
			return Do(t.Context(), Never(), nil, keep)
		},
		"panic": func(keep func(context.Context) error) (err error) {
			defer func() { _ = recover() }()
			return Do(t.Context(), Never(), nil, func(ctx context.Context) error {
				_ = keep(ctx)
				panic("fn")
			})
		},
	}
	for name, outer := range ended {
		t.Run(name, func(t *testing.T) {
			var kept context.Context
			require.NoError(t, outer(func(ctx context.Context) error { kept = ctx; return nil }))
			s := failing(errClosed)
			require.ErrorIs(t, nest(kept, 2, Times(5, 0), s.run), errClosed)
			require.Equal(t, 6, s.calls)
		})
	}
}

func TestSiblingLoopsHaveTheirOwnRetries(t *testing.T) {
	for range 2 {
		s := failing(errClosed)
		require.ErrorIs(t, Do(t.Context(), Times(2, 0), nil, s.run), errClosed)
		require.Equal(t, 3, s.calls)
	}
}

func TestContextOfTheAttemptKeepsValuesAndDeadline(t *testing.T) {
	type key struct{}
	ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), key{}, "value"), time.Hour)
	defer cancel()
	want, _ := ctx.Deadline()
	require.NoError(t, Do(ctx, Never(), nil, func(ctx context.Context) error {
		got, ok := ctx.Deadline()
		require.True(t, ok)
		require.Equal(t, want, got)
		require.Equal(t, "value", ctx.Value(key{}))
		return nil
	}))
}

func TestUngovernedContextBeginsALoopOfItsOwn(t *testing.T) {
	calls := 0
	err := Do(t.Context(), Times(2, 0), nil, func(ctx context.Context) error {
		return Do(Ungoverned(ctx), Times(3, 0), nil, func(ctx context.Context) error {
			return Do(ctx, Times(5, 0), nil, func(context.Context) error {
				calls++
				return errors.New("no")
			})
		})
	})
	require.Error(t, err)
	require.Equal(t, 3*4, calls, "the middle loop retries, and the innermost leaves retries to it")
}
