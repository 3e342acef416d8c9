package oteldocent

import (
	"context"
	"errors"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/framework/metrics"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/logfield"
	"github.com/docent-zk/docent/recipes"
)

// Locker is a recipes.Locker whose acquires, holds and releases are spans. It is safe for concurrent
// use. The zero value fails to acquire.
type Locker struct {
	tracer     trace.Tracer
	lock       recipes.Locker
	attributes []attribute.KeyValue
}

var errZeroLocker = errors.New("oteldocent: zero value: call NewLocker")

// NewLocker returns lock with spans. recipe is the value of the attribute docent.recipe: the metrics
// have mutex, rwlock-read, rwlock-write, semaphore, semaphore-mutex and multilock. more are further
// attributes of all spans. docent.path is among them by itself if lock has a method Path. NewLocker
// returns an error if tracer or lock is nil.
//
// Each acquire is a span docent.acquire, which has the time of the wait, with docent.outcome. Each
// hold is a span docent.hold from then to its end, however it ends, with docent.cause. Each first
// Release is a span docent.release, which has the time that the deletion of the node takes, with
// docent.cause. The parent of all three is the span of the context given to the acquire. The work
// under the lock is therefore beside them, not below.
//
// What is acquired is in docent.node, docent.session, docent.token (docent.tokens for several
// locks), with ids in hexadecimal as in the logs. A failed acquire, a loss and a failed release have
// the status Error. An acquire whose wait ended because of other holders has not.
//
// A hold is released as always, by recipes.Hold.Release. If the lock becomes part of another one, by
// multilock.Combine, it has no span docent.release. A hold that is not sampled costs no more than
// the span of its acquire.
func NewLocker(
	tracer trace.Tracer, recipe string, lock recipes.Locker, more ...attribute.KeyValue,
) (*Locker, error) {
	switch {
	case tracer == nil:
		return nil, errors.New("oteldocent: tracer is nil")
	case lock == nil:
		return nil, errors.New("oteldocent: the lock is nil")
	}
	attributes := []attribute.KeyValue{attribute.String("docent.recipe", recipe)}
	if one, ok := lock.(interface{ Path() string }); ok {
		attributes = append(attributes, attribute.String("docent.path", one.Path()))
	}
	return &Locker{tracer, lock, append(attributes, more...)}, nil
}

// Acquire acquires the lock by its Acquire.
func (l *Locker) Acquire(ctx context.Context) (*recipes.Hold, error) {
	return l.acquire(ctx, recipes.Locker.Acquire)
}

// TryAcquire acquires the lock by its TryAcquire.
func (l *Locker) TryAcquire(ctx context.Context) (*recipes.Hold, error) {
	return l.acquire(ctx, recipes.Locker.TryAcquire)
}

func (l *Locker) acquire(
	ctx context.Context, call func(recipes.Locker, context.Context) (*recipes.Hold, error),
) (hold *recipes.Hold, err error) {
	switch {
	case l == nil || l.lock == nil:
		return nil, errZeroLocker
	case ctx == nil:
		return nil, framework.ErrNilContext
	}
	within, span := l.start(ctx, "docent.acquire")
	defer span.End()
	returned := false
	defer func() { // spans are code of the program, which may panic
		if !returned && hold != nil {
			_ = hold.Release()
		}
	}()
	hold, err = call(l.lock, within)
	span.SetAttributes(attribute.String("docent.outcome", outcomeOf(err)))
	if err == nil {
		about := describe(hold)
		span.SetAttributes(about...)
		l.traceHold(context.WithoutCancel(ctx), hold, about)
	} else if !errors.Is(err, recipes.ErrNotAcquired) {
		fail(span, err)
	}
	returned = true
	return hold, err
}

func (l *Locker) start(ctx context.Context, name string, more ...attribute.KeyValue) (context.Context, trace.Span) {
	return l.tracer.Start(ctx, name, trace.WithAttributes(slices.Concat(l.attributes, more)...))
}

// traceHold starts the span of a hold, which has the attributes about. A goroutine ends it when the hold has ended.
func (l *Locker) traceHold(ctx context.Context, hold *recipes.Hold, about []attribute.KeyValue) {
	_, span := l.start(ctx, "docent.hold", about...)
	if !span.IsRecording() {
		return
	}
	held := hold.Context(context.Background())
	context.AfterFunc(held, func() {
		defer span.End()
		reason := context.Cause(held)
		span.SetAttributes(attribute.String("docent.cause", causeOf(reason)))
		if !errors.Is(reason, recipes.ErrNotHeld) {
			fail(span, reason)
		}
	})
	bridge.AroundRelease(hold, func(release func() error) error {
		if errors.Is(hold.Err(), recipes.ErrNotHeld) {
			return release() // it was released before: nothing is done
		}
		return l.release(ctx, about, release)
	})
}

// release calls release, whatever the tracer does.
func (l *Locker) release(
	ctx context.Context, about []attribute.KeyValue, release func() error,
) (err error) {
	called := false
	defer func() {
		if !called {
			_ = release()
		}
	}()
	_, span := l.start(ctx, "docent.release", about...)
	defer span.End()
	called = true
	err = release()
	span.SetAttributes(attribute.String("docent.cause", causeOf(err)))
	if err != nil {
		fail(span, err)
	}
	return err
}

func fail(span trace.Span, err error) { span.SetStatus(codes.Error, err.Error()) }

// describe returns what was acquired.
func describe(hold *recipes.Hold) []attribute.KeyValue {
	all := []attribute.KeyValue{attribute.String("docent.node", hold.Path())}
	if session := bridge.HoldSession(hold); session != nil {
		all = append(all, attribute.String("docent.session", logfield.Hex(session.ID()).String()))
	}
	tokens := hold.Tokens()
	if len(tokens) == 1 {
		return append(all, attribute.String("docent.token", logfield.Hex(tokens[0]).String()))
	}
	texts := make([]string, len(tokens))
	for i, token := range tokens {
		texts[i] = logfield.Hex(token).String()
	}
	return append(all, attribute.StringSlice("docent.tokens", texts))
}

func outcomeOf(err error) string {
	switch {
	case err == nil:
		return metrics.OutcomeAcquired
	case errors.Is(err, recipes.ErrNotAcquired):
		return metrics.OutcomeNotAcquired
	}
	return metrics.OutcomeFailed
}

// causes name the reasons of losses, as in the metrics. A reason may match several, so they are in order.
var causes = []struct {
	reason error
	name   string
}{
	{recipes.ErrNodeDeleted, metrics.CauseNodeDeleted},
	{recipes.ErrForeignLost, metrics.CauseForeignLost},
	{framework.ErrClosed, metrics.CauseClosed},
	{framework.ErrSuspended, metrics.CauseSuspended},
	{framework.ErrSessionLost, metrics.CauseSessionLost},
}

func causeOf(reason error) string {
	for _, c := range causes {
		if errors.Is(reason, c.reason) {
			return c.name
		}
	}
	return metrics.CauseReleased
}
