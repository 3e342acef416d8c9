package promdocent_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	promdocent "github.com/docent-zk/docent/contrib/prometheus"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/framework/metrics"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
)

// newAdapter returns an adapter with a registry of its own. Like New with the registry that checks
// the most, it fails the test for metrics that are not consistent.
func newAdapter(t *testing.T, opts ...promdocent.Option) (metrics.Metrics, *prometheus.Registry) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	m, err := promdocent.New(registry, opts...)
	require.NoError(t, err)
	return m, registry
}

// group names a path by its parent.
func group(path string) string {
	name, found := strings.CutSuffix(path, "/7")
	if !found {
		return ""
	}
	return name
}

// measure makes measurements with each instrument, with all of its labels.
func measure(t *testing.T, m metrics.Metrics) {
	t.Helper()
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
			default:
				require.Fail(t, "the adapter does not know the label "+label)
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
	for range 2 { // clients
		m.(metrics.GaugeReader).AddSource(func(report func(metrics.Instrument, float64, metrics.Labels)) {
			for _, r := range gauges {
				report(r.Instrument, r.Value, r.Labels)
			}
		})
	}
}

// A scrape with each instrument is the one in testdata.
func TestScrape(t *testing.T) {
	m, registry := newAdapter(t, promdocent.WithPaths(group))
	measure(t, m)
	want, err := os.ReadFile("testdata/scrape.txt")
	require.NoError(t, err)
	require.Equal(t, string(want), scrape(registry))
	problems, err := testutil.GatherAndLint(registry)
	require.NoError(t, err)
	require.Empty(t, problems)
}

func TestPathsAreNoLabelUnlessNamed(t *testing.T) {
	m, registry := newAdapter(t)
	measure(t, m)
	require.Contains(t, scrape(registry), "\ndocent_lock_held{recipe=\"mutex\"} 4\n")
	require.NotContains(t, scrape(registry), "path")

	m, registry = newAdapter(t, promdocent.WithPaths(group))
	m.Add(metrics.LockWaiters, 1, metrics.Labels{Recipe: "mutex", Path: "/orders/7"})
	m.Add(metrics.LockWaiters, 1, metrics.Labels{Recipe: "mutex", Path: "/other"})
	require.Contains(t, scrape(registry), "\ndocent_lock_waiters{path=\"/orders\",recipe=\"mutex\"} 1\n")
	require.Contains(t, scrape(registry), "\ndocent_lock_waiters{path=\"\",recipe=\"mutex\"} 1\n")
}

// A lock of another service can have any name.
func TestPathsNeedNotBeText(t *testing.T) {
	m, registry := newAdapter(t, promdocent.WithPaths(func(path string) string { return path }))
	m.Add(metrics.LockWaiters, 1, metrics.Labels{Recipe: "foreign", Path: "a\xffb"})
	require.Contains(t, scrape(registry), "\ndocent_lock_waiters{path=\"a\ufffdb\",recipe=\"foreign\"} 1\n")
}

func TestUnknownInstrumentsAreIgnored(t *testing.T) {
	m, registry := newAdapter(t)
	m.Add(metrics.Instrument(99), 1, metrics.Labels{})
	m.Record(metrics.Instrument(99), 1, metrics.Labels{})
	m.Record(metrics.LockWaiters, 1, metrics.Labels{})
	m.(metrics.GaugeReader).AddSource(func(report func(metrics.Instrument, float64, metrics.Labels)) {
		report(metrics.Instrument(99), 1, metrics.Labels{})
	})
	require.Empty(t, scrape(registry))
}

// refusing is a registerer that returns an error.
type refusing struct{ prometheus.Registerer }

func (refusing) Register(prometheus.Collector) error { return errors.New("no") }

func TestMistakesAreErrors(t *testing.T) {
	registry := prometheus.NewRegistry()
	noPaths := promdocent.WithPaths(nil)
	for want, mistake := range map[string]struct {
		registerer prometheus.Registerer
		opts       []promdocent.Option
	}{
		"promdocent: registerer is nil":       {nil, nil},
		"promdocent: option 0 is nil":         {registry, []promdocent.Option{nil}},
		"promdocent: WithPaths: nil function": {registry, []promdocent.Option{noPaths}},
		"promdocent: no":                      {refusing{}, nil},
	} {
		m, err := promdocent.New(mistake.registerer, mistake.opts...)
		require.EqualError(t, err, want)
		require.Nil(t, m)
	}
	_, err := promdocent.New(registry)
	require.NoError(t, err)
	_, err = promdocent.New(registry)
	require.ErrorAs(t, err, &prometheus.AlreadyRegisteredError{})
}

func TestClientsMeasureThroughTheAdapter(t *testing.T) {
	srv := zktest.Start(t)
	m, registry := newAdapter(t)
	first, err := framework.New(srv.Addr(), framework.WithMetrics(m))
	require.NoError(t, err)
	defer first.Close()
	second, err := framework.New(srv.Addr(), framework.WithMetrics(m))
	require.NoError(t, err)
	defer second.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	require.NoError(t, second.WaitConnected(ctx))
	mu, err := mutex.New(first, "/lock")
	require.NoError(t, err)
	hold, err := mu.Acquire(ctx)
	require.NoError(t, err)
	contains := func(lines ...string) {
		t.Helper()
		got := "\n" + scrape(registry)
		for _, line := range lines {
			require.Contains(t, got, "\n"+line)
		}
	}
	contains(`docent_client_state{state="connected"} 2`+"\n", `docent_lock_held{recipe="mutex"} 1`+"\n",
		"docent_session_timeout_seconds 30\n", "docent_session_remaining_seconds ")
	require.NoError(t, hold.Release())
	require.NotContains(t, scrape(registry), "docent_lock_held")
	require.NoError(t, first.Close())
	require.NoError(t, second.Close())
	contains(`docent_lock_wait_seconds_count{outcome="acquired",recipe="mutex"} 1`+"\n",
		`docent_lock_hold_seconds_count{cause="released",recipe="mutex"} 1`+"\n",
		`docent_lock_waiters{recipe="mutex"} 0`+"\n", "docent_deletions_pending 0\n",
		`docent_session_losses_total{cause="closed"} 2`+"\n")
	require.NotContains(t, scrape(registry), "docent_client_state")
	require.NotContains(t, scrape(registry), "docent_session_remaining")
}
