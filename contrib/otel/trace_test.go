package oteldocent_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	oteldocent "github.com/docent-zk/docent/contrib/otel"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/multilock"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
)

const patience = time.Minute

// traced is a client whose locks have spans.
type traced struct {
	t        *testing.T
	srv      *zktest.Server
	client   *framework.Client
	exporter *tracetest.InMemoryExporter
	tracer   trace.Tracer
	ctx      context.Context // with a span
	parent   trace.SpanContext
}

func newTraced(t *testing.T, opts ...sdktrace.TracerProviderOption) *traced {
	t.Helper()
	srv := zktest.Start(t)
	client, err := framework.New(srv.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	exporter := tracetest.NewInMemoryExporter()
	tracer := sdktrace.NewTracerProvider(append(opts, sdktrace.WithSyncer(exporter))...).Tracer("test")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	ctx, span := tracer.Start(ctx, "request")
	return &traced{t, srv, client, exporter, tracer, ctx, span.SpanContext()}
}

// mutex returns a lock with spans.
func (x *traced) mutex(path string) *oteldocent.Locker {
	x.t.Helper()
	mu, err := mutex.New(x.client, path)
	require.NoError(x.t, err)
	return x.locker("mutex", mu)
}

func (x *traced) locker(recipe string, lock recipes.Locker, more ...attribute.KeyValue) *oteldocent.Locker {
	x.t.Helper()
	l, err := oteldocent.NewLocker(x.tracer, recipe, lock, more...)
	require.NoError(x.t, err)
	return l
}

// spans waits until n spans have ended and returns them by name, each as its status and attributes,
// which are sorted.
func (x *traced) spans(n int) map[string]string {
	x.t.Helper()
	require.Eventually(x.t, func() bool { return len(x.exporter.GetSpans()) >= n }, patience, time.Millisecond)
	found := map[string]string{}
	for _, span := range x.exporter.GetSpans() {
		require.Equal(x.t, x.parent.SpanID(), span.Parent.SpanID(), "the parent of %s", span.Name)
		require.Equal(x.t, x.parent.TraceID(), span.SpanContext.TraceID(), span.Name)
		var texts []string
		for _, a := range span.Attributes {
			texts = append(texts, fmt.Sprintf("%s=%s", a.Key, a.Value.String()))
		}
		slices.Sort(texts)
		require.NotContains(x.t, found, span.Name)
		found[span.Name] = fmt.Sprint(span.Status.Code, " ", texts)
	}
	require.Len(x.t, found, n)
	return found
}

// about is the attributes of a hold, and two more.
func (x *traced) about(hold *recipes.Hold, first, last string) string {
	x.t.Helper()
	session, err := x.client.Session(x.ctx)
	require.NoError(x.t, err)
	all := []string{
		"docent.node=" + hold.Path(), "docent.path=/orders/7", "docent.recipe=mutex",
		fmt.Sprintf("docent.session=%#x", session.ID()), fmt.Sprintf("docent.token=%#x", hold.Token()),
	}
	for _, a := range []string{first, last} {
		if a != "" {
			all = append(all, a)
		}
	}
	slices.Sort(all)
	return fmt.Sprint(all)
}

func TestAcquireHoldAndReleaseAreSpans(t *testing.T) {
	x := newTraced(t)
	hold, err := x.mutex("/orders/7").Acquire(x.ctx)
	require.NoError(t, err)
	require.Equal(t, map[string]string{
		"docent.acquire": "Unset " + x.about(hold, "docent.outcome=acquired", ""),
	}, x.spans(1), "the hold has not ended")
	require.NoError(t, hold.Release())
	require.ErrorIs(t, hold.Release(), recipes.ErrNotHeld)
	require.Equal(t, map[string]string{
		"docent.acquire": "Unset " + x.about(hold, "docent.outcome=acquired", ""),
		"docent.hold":    "Unset " + x.about(hold, "docent.cause=released", ""),
		"docent.release": "Unset " + x.about(hold, "docent.cause=released", ""),
	}, x.spans(3), "the second release is no span")
	byName := map[string]tracetest.SpanStub{}
	for _, span := range x.exporter.GetSpans() {
		byName[span.Name] = span
	}
	require.False(t, byName["docent.hold"].StartTime.Before(byName["docent.acquire"].StartTime))
	require.False(t, byName["docent.release"].StartTime.Before(byName["docent.hold"].StartTime))
}

func TestWaitIsPartOfTheAcquire(t *testing.T) {
	x := newTraced(t)
	plain, err := mutex.New(x.client, "/orders/7")
	require.NoError(t, err)
	held, err := plain.Acquire(x.ctx)
	require.NoError(t, err)
	lock, acquired := x.mutex("/orders/7"), make(chan error, 1)
	go func() {
		_, err := lock.Acquire(x.ctx)
		acquired <- err
	}()
	require.Eventually(t, func() bool {
		queue, err := plain.Participants(x.ctx)
		return err == nil && len(queue) == 2
	}, patience, time.Millisecond)
	released := time.Now()
	require.NoError(t, held.Release())
	require.NoError(t, <-acquired)
	x.spans(1)
	span := x.exporter.GetSpans()[0]
	require.True(t, span.StartTime.Before(released), "the span begins before the wait")
	require.True(t, span.EndTime.After(released), "the span ends after the wait")
}

func TestLossIsTheCauseOfTheHoldsEnd(t *testing.T) {
	x := newTraced(t)
	hold, err := x.mutex("/orders/7").TryAcquire(x.ctx)
	require.NoError(t, err)
	x.about(hold, "", "") // while the session lives
	acquired, released := x.about(hold, "docent.outcome=acquired", ""), x.about(hold, "docent.cause=session_lost", "")
	for _, s := range x.srv.Sessions() {
		require.NoError(t, s.Expire())
	}
	require.Equal(t, map[string]string{
		"docent.acquire": "Unset " + acquired, "docent.hold": "Error " + released,
	}, x.spans(2))
	require.ErrorIs(t, hold.Release(), framework.ErrSessionLost)
	require.Equal(t, "Error "+released, x.spans(3)["docent.release"])
}

func TestFailuresOfAnAcquire(t *testing.T) {
	x := newTraced(t)
	plain, err := mutex.New(x.client, "/orders/7")
	require.NoError(t, err)
	_, err = plain.Acquire(x.ctx)
	require.NoError(t, err)
	lock := x.mutex("/orders/7")
	_, err = lock.TryAcquire(x.ctx)
	require.ErrorIs(t, err, recipes.ErrNotAcquired)
	const attributes = "[docent.outcome=%s docent.path=/orders/7 docent.recipe=mutex]"
	require.Equal(t, map[string]string{
		"docent.acquire": "Unset " + fmt.Sprintf(attributes, "not_acquired"),
	}, x.spans(1))
	x.exporter.Reset()
	require.NoError(t, x.client.Close())
	_, err = lock.Acquire(x.ctx)
	require.ErrorIs(t, err, framework.ErrClosed)
	require.Equal(t, map[string]string{
		"docent.acquire": "Error " + fmt.Sprintf(attributes, "failed"),
	}, x.spans(1))
	require.Equal(t, codes.Error, x.exporter.GetSpans()[0].Status.Code)
	require.Equal(t, err.Error(), x.exporter.GetSpans()[0].Status.Description)
}

func TestSeveralLocksHaveSeveralTokens(t *testing.T) {
	x := newTraced(t)
	locks, err := multilock.New(x.client, []string{"/a", "/b"})
	require.NoError(t, err)
	lock := x.locker("multilock", locks, attribute.StringSlice("paths", []string{"/a", "/b"}))
	err = recipes.Do(x.ctx, lock, func(context.Context, *recipes.Hold) error { return nil })
	require.NoError(t, err)
	for name, span := range x.spans(3) {
		require.Regexp(t, `docent\.tokens=\["0x[0-9a-f]+","0x[0-9a-f]+"\] paths=\["/a","/b"\]`, span, name)
		require.NotContains(t, span, "docent.path", name)
	}
}

func TestSpansThatAreNotSampledAreNotTaken(t *testing.T) {
	x := newTraced(t, sdktrace.WithSampler(sdktrace.NeverSample()))
	hold, err := x.mutex("/orders/7").Acquire(x.ctx)
	require.NoError(t, err)
	require.NoError(t, hold.Release())
	require.Empty(t, x.exporter.GetSpans())
}

// breaking is a tracer that ends the goroutine at the start of the spans with a name.
type breaking struct {
	trace.Tracer
	name string
	end  func()
}

func (b breaking) Start(ctx context.Context, name string, opts ...trace.SpanStartOption) (context.Context, trace.Span) {
	if name == b.name {
		b.end()
	}
	return b.Tracer.Start(ctx, name, opts...)
}

// A tracer that panics, or ends the goroutine, leaves no lock that is held.
func TestBrokenTracersLeaveNoHold(t *testing.T) {
	for _, name := range []string{"docent.acquire", "docent.hold", "docent.release"} {
		for ending, end := range map[string]func(){"panic": func() { panic("broken") }, "goexit": runtime.Goexit} {
			t.Run(name+" "+ending, func(t *testing.T) {
				x := newTraced(t)
				tracer := x.tracer
				x.tracer = breaking{tracer, name, end}
				lock := x.mutex("/orders/7")
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					defer func() { _ = recover() }()
					hold, err := lock.Acquire(x.ctx)
					if err == nil {
						_ = hold.Release()
					}
				}()
				<-ended
				x.tracer = tracer
				hold, err := x.mutex("/orders/7").Acquire(x.ctx)
				require.NoError(t, err)
				require.NoError(t, hold.Release())
			})
		}
	}
}

func TestMistakesWithLockersAreErrors(t *testing.T) {
	tracer := tracenoop.NewTracerProvider().Tracer("")
	mu := &mutex.Mutex{}
	_, err := oteldocent.NewLocker(nil, "mutex", mu)
	require.EqualError(t, err, "oteldocent: tracer is nil")
	_, err = oteldocent.NewLocker(tracer, "mutex", nil)
	require.EqualError(t, err, "oteldocent: the lock is nil")
	for _, l := range []*oteldocent.Locker{nil, {}} {
		_, err := l.Acquire(context.Background())
		require.EqualError(t, err, "oteldocent: zero value: call NewLocker")
	}
	l, err := oteldocent.NewLocker(tracer, "mutex", mu)
	require.NoError(t, err)
	var none context.Context
	_, err = l.Acquire(none)
	require.ErrorIs(t, err, framework.ErrNilContext)
	_, err = l.TryAcquire(context.Background())
	require.True(t, errors.Is(err, framework.ErrZeroValue), err)
}
