package metrics_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework/metrics"
)

// source reports one lock of its path, and a time.
func source(path string, locks, seconds float64) metrics.Source {
	return func(report func(metrics.Instrument, float64, metrics.Labels)) {
		report(metrics.SessionRemaining, seconds, metrics.Labels{})
		report(metrics.LocksHeld, locks, metrics.Labels{Recipe: "mutex", Path: path})
	}
}

func TestGaugesOfSeveralClientsAreCombined(t *testing.T) {
	var g metrics.Gauges
	require.Empty(t, g.Read(nil))
	for _, read := range []metrics.Source{source("/b", 2, 20), source("/a", 1, 10), source("/b", 3, 30)} {
		defer g.AddSource(read)()
	}
	held := func(path string, n float64) metrics.Reading {
		labels := metrics.Labels{Recipe: "mutex", Path: path}
		return metrics.Reading{Instrument: metrics.LocksHeld, Labels: labels, Value: n}
	}
	remaining := metrics.Reading{Instrument: metrics.SessionRemaining, Value: 10}
	require.Equal(t, []metrics.Reading{held("/a", 1), held("/b", 5), remaining}, g.Read(nil))
	withoutPath := func(l metrics.Labels) metrics.Labels { l.Path = ""; return l }
	require.Equal(t, []metrics.Reading{held("", 6), remaining}, g.Read(withoutPath))
}

func TestRemovedClientsAreNotRead(t *testing.T) {
	var g metrics.Gauges
	require.Panics(t, func() { g.AddSource(nil) })
	remove := g.AddSource(source("/a", 1, 10))
	defer g.AddSource(source("/b", 1, 20))()
	require.Len(t, g.Read(nil), 3)
	remove()
	remove()
	require.Len(t, g.Read(nil), 2)
}

// A read that hangs, such as that of a broken exporter, delays no client.
func TestSourcesAreAddedAndRemovedDuringARead(t *testing.T) {
	var g metrics.Gauges
	reading, free, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	remove := g.AddSource(source("/a", 1, 10))
	go func() {
		defer close(done)
		first := true
		g.Read(func(l metrics.Labels) metrics.Labels {
			if first {
				first = false
				close(reading)
				<-free
			}
			return l
		})
	}()
	<-reading
	other := g.AddSource(source("/b", 1, 10))
	require.Len(t, g.Read(nil), 3)
	remove()
	other()
	require.Empty(t, g.Read(nil))
	close(free)
	<-done
}
