package metrics

import (
	"cmp"
	"slices"
	"strings"
	"sync"
)

// GaugeReader is a Metrics that also reads the instruments of the kinds GaugeSum and GaugeMin,
// whenever it reports. An adapter implements it by embedding a Gauges. The gauges of a client are not
// measured if its Metrics is not a GaugeReader.
type GaugeReader interface {
	Metrics
	// AddSource is called once by framework.New, and remove by Client.Close. Neither may block, nor
	// wait for a read.
	AddSource(read Source) (remove func())
}

// Source reports the present values of one client. It makes no request and does not wait. It may be
// called concurrently, and also once more after it was removed.
type Source func(report func(i Instrument, value float64, l Labels))

// Reading is the value of a gauge, of all clients together.
type Reading struct {
	Instrument Instrument
	Labels     Labels
	Value      float64 // a number, or seconds
}

// Gauges reads the gauges of all clients that share an adapter. The zero value has no clients. It is
// safe for concurrent use, and must not be copied.
type Gauges struct {
	mu      sync.Mutex
	sources map[*Source]struct{}
}

// AddSource implements GaugeReader. It panics if read is nil.
func (g *Gauges) AddSource(read Source) (remove func()) {
	if read == nil {
		panic("metrics: AddSource: nil function")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sources == nil {
		g.sources = map[*Source]struct{}{}
	}
	source := &read
	g.sources[source] = struct{}{}
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.sources, source)
	}
}

// Read returns the present values of all clients. It changes the labels by relabel first, so values
// whose labels become equal are combined; nil: it does not change them. The order is that of
// Instruments, then that of the labels.
func (g *Gauges) Read(relabel func(Labels) Labels) []Reading {
	type series struct {
		instrument Instrument
		labels     Labels
	}
	values := map[series]float64{}
	for _, read := range g.all() {
		read(func(i Instrument, value float64, l Labels) {
			if relabel != nil {
				l = relabel(l)
			}
			s := series{i, l}
			other, combine := values[s]
			switch {
			case combine && i.Kind() == GaugeMin:
				value = min(value, other)
			case combine:
				value += other
			}
			values[s] = value
		})
	}
	readings := make([]Reading, 0, len(values))
	for s, value := range values {
		readings = append(readings, Reading{s.instrument, s.labels, value})
	}
	slices.SortFunc(readings, func(a, b Reading) int {
		return cmp.Or(cmp.Compare(a.Instrument, b.Instrument), compareLabels(a.Labels, b.Labels))
	})
	return readings
}

// all returns the sources. No lock is held while they are read, so that a read delays no client.
func (g *Gauges) all() []Source {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := make([]Source, 0, len(g.sources))
	for source := range g.sources {
		all = append(all, *source)
	}
	return all
}

func compareLabels(a, b Labels) int {
	return cmp.Or(
		strings.Compare(a.Recipe, b.Recipe), strings.Compare(a.Path, b.Path),
		strings.Compare(a.Outcome, b.Outcome), strings.Compare(a.Cause, b.Cause),
		strings.Compare(a.State, b.State),
	)
}
