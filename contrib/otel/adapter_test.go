package oteldocent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	oteldocent "github.com/docent-zk/docent/contrib/otel"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/framework/metrics"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
)

// collect returns an adapter, and a function that returns what it has measured, a line for each
// series.
func collect(t *testing.T, opts ...oteldocent.Option) (metrics.Metrics, func() []string) {
	t.Helper()
	reader := sdk.NewManualReader()
	m, err := oteldocent.New(sdk.NewMeterProvider(sdk.WithReader(reader)).Meter("test"), opts...)
	require.NoError(t, err)
	return m, func() (lines []string) {
		var data metricdata.ResourceMetrics
		require.NoError(t, reader.Collect(context.Background(), &data))
		for _, scope := range data.ScopeMetrics {
			for _, m := range scope.Metrics {
				lines = append(lines, series(m)...)
			}
		}
		slices.Sort(lines)
		return lines
	}
}

func series(m metricdata.Metrics) (lines []string) {
	name := m.Name + " " + m.Unit
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			lines = append(lines, fmt.Sprintf("%s monotonic=%v %s %d",
				name, data.IsMonotonic, attributes(p.Attributes), p.Value))
		}
	case metricdata.Gauge[float64]:
		for _, p := range data.DataPoints {
			lines = append(lines, fmt.Sprintf("%s gauge %s %g", name, attributes(p.Attributes), p.Value))
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			lines = append(lines, fmt.Sprintf("%s histogram %s %d of %gs",
				name, attributes(p.Attributes), p.Count, p.Sum))
		}
	default:
		lines = append(lines, fmt.Sprintf("%s %T", name, data))
	}
	return lines
}

func attributes(set attribute.Set) string {
	var all []string
	for _, a := range set.ToSlice() {
		all = append(all, string(a.Key)+"="+a.Value.AsString())
	}
	return "{" + strings.Join(all, " ") + "}"
}

// measure makes measurements with each instrument, with all of its labels. Two clients have gauges.
func measure(m metrics.Metrics) {
	var gauges []metrics.Reading
	for _, i := range metrics.Instruments() {
		var l metrics.Labels
		for _, label := range i.Labels() {
			switch label {
			case "recipe":
				l.Recipe = "mutex"
			case "path":
				l.Path = "/orders/7"
			case "outcome":
				l.Outcome = metrics.OutcomeAcquired
			case "cause":
				l.Cause = metrics.CauseClosed
			case "state":
				l.State = metrics.StateSuspended
			}
		}
		switch i.Kind() {
		case metrics.Histogram:
			m.Record(i, 1500*time.Millisecond, l)
		case metrics.Counter:
			m.Add(i, 3, l)
		case metrics.UpDownCounter:
			m.Add(i, 3, l)
			m.Add(i, -2, l)
		default:
			gauges = append(gauges, metrics.Reading{Instrument: i, Labels: l, Value: 2})
		}
	}
	for range 2 {
		m.(metrics.GaugeReader).AddSource(func(report func(metrics.Instrument, float64, metrics.Labels)) {
			for _, r := range gauges {
				report(r.Instrument, r.Value, r.Labels)
			}
		})
	}
}

func TestNamesUnitsAndAttributes(t *testing.T) {
	m, lines := collect(t)
	measure(m)
	require.Equal(t, []string{
		"docent.client.state {client} monotonic=false {docent.state=suspended} 4",
		"docent.connection.reconnects {connection} monotonic=true {} 3",
		"docent.deletions.pending {deletion} monotonic=false {} 1",
		"docent.lock.held {lock} monotonic=false {docent.recipe=mutex} 4",
		"docent.lock.hold s histogram {docent.cause=closed docent.recipe=mutex} 1 of 1.5s",
		"docent.lock.losses {hold} monotonic=true {docent.cause=closed docent.recipe=mutex} 3",
		"docent.lock.wait s histogram {docent.outcome=acquired docent.recipe=mutex} 1 of 1.5s",
		"docent.lock.waiters {waiter} monotonic=false {docent.recipe=mutex} 1",
		"docent.session.losses {session} monotonic=true {docent.cause=closed} 3",
		"docent.session.remaining s gauge {} 2",
		"docent.session.timeout s gauge {} 2",
	}, lines())
}

func TestOnlyNamedPathsAreAttributes(t *testing.T) {
	m, lines := collect(t, oteldocent.WithPaths(func(path string) string {
		group, found := strings.CutSuffix(path, "/7")
		if !found {
			return ""
		}
		return group
	}))
	m.Add(metrics.LockWaiters, 1, metrics.Labels{Recipe: "mutex", Path: "/orders/7"})
	m.Add(metrics.LockWaiters, 1, metrics.Labels{Recipe: "mutex", Path: "/other"})
	m.Add(metrics.Reconnects, 1, metrics.Labels{})
	require.Equal(t, []string{
		"docent.connection.reconnects {connection} monotonic=true {} 1",
		"docent.lock.waiters {waiter} monotonic=false {docent.path=/orders docent.recipe=mutex} 1",
		"docent.lock.waiters {waiter} monotonic=false {docent.recipe=mutex} 1",
	}, lines())
}

func TestBucketsAreInSeconds(t *testing.T) {
	reader := sdk.NewManualReader()
	m, err := oteldocent.New(sdk.NewMeterProvider(sdk.WithReader(reader)).Meter("test"))
	require.NoError(t, err)
	m.Record(metrics.LockWait, 3*time.Millisecond, metrics.Labels{})
	var data metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(context.Background(), &data))
	point := data.ScopeMetrics[0].Metrics[0].Data.(metricdata.Histogram[float64]).DataPoints[0]
	require.Equal(t, []float64{.001, .0025, .005}, point.Bounds[:3])
	require.Equal(t, []uint64{0, 0, 1}, point.BucketCounts[:3])
}

func TestUnknownInstrumentsAreIgnored(t *testing.T) {
	m, lines := collect(t)
	m.Add(metrics.Instrument(99), 1, metrics.Labels{})
	m.Record(metrics.Instrument(99), 1, metrics.Labels{})
	m.Record(metrics.LockWaiters, 1, metrics.Labels{})
	require.Empty(t, lines())
}

// refusing is a meter that returns an error for each counter.
type refusing struct{ noop.Meter }

func (refusing) Int64Counter(string, ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return nil, errors.New("no counters")
}

// withoutCallbacks is a meter that returns an error for a callback.
type withoutCallbacks struct{ noop.Meter }

func (withoutCallbacks) RegisterCallback(metric.Callback, ...metric.Observable) (metric.Registration, error) {
	return nil, errors.New("no callbacks")
}

func TestMistakesAreErrors(t *testing.T) {
	noPaths := oteldocent.WithPaths(nil)
	for want, mistake := range map[string]struct {
		meter metric.Meter
		opts  []oteldocent.Option
	}{
		"oteldocent: meter is nil":                    {nil, nil},
		"oteldocent: option 0 is nil":                 {noop.Meter{}, []oteldocent.Option{nil}},
		"oteldocent: WithPaths: nil function":         {noop.Meter{}, []oteldocent.Option{noPaths}},
		"oteldocent: docent.lock.losses: no counters": {refusing{}, nil},
		"oteldocent: gauges: no callbacks":            {withoutCallbacks{}, nil},
	} {
		m, err := oteldocent.New(mistake.meter, mistake.opts...)
		require.EqualError(t, err, want)
		require.Nil(t, m)
	}
}

func TestClientsMeasureThroughTheAdapter(t *testing.T) {
	srv := zktest.Start(t)
	m, lines := collect(t)
	client, err := framework.New(srv.Addr(), framework.WithMetrics(m))
	require.NoError(t, err)
	mu, err := mutex.New(client, "/lock")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	hold, err := mu.Acquire(ctx)
	require.NoError(t, err)
	held := strings.Join(lines(), "\n")
	for _, want := range []string{
		"docent.client.state {client} monotonic=false {docent.state=connected} 1",
		"docent.client.state {client} monotonic=false {docent.state=lost} 0",
		"docent.lock.held {lock} monotonic=false {docent.recipe=mutex} 1",
		"docent.session.remaining s gauge {} ",
		"docent.session.timeout s gauge {} 30",
	} {
		require.Contains(t, held, want)
	}
	require.NoError(t, hold.Release())
	require.NoError(t, client.Close())
	require.NotContains(t, strings.Join(lines(), "\n"), "gauge", "a closed client is not read")
	all := strings.Join(lines(), "\n")
	for _, want := range []string{
		"docent.lock.wait s histogram {docent.outcome=acquired docent.recipe=mutex} 1 of ",
		"docent.lock.hold s histogram {docent.cause=released docent.recipe=mutex} 1 of ",
		"docent.lock.waiters {waiter} monotonic=false {docent.recipe=mutex} 0",
		"docent.deletions.pending {deletion} monotonic=false {} 0",
		"docent.session.losses {session} monotonic=true {docent.cause=closed} 1",
	} {
		require.Contains(t, all, want)
	}
}
