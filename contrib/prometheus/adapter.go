package promdocent

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/docent-zk/docent/framework/metrics"
	"github.com/docent-zk/docent/internal/option"
)

// Option configures the adapter.
type Option func(*adapter) error

// WithPaths adds the label path. Its value is what name returns for the path of a lock. An empty
// value counts as no label. By default no measurement has it.
//
// The names should be few, because each one is a series of its own. The adapter calls name for each
// measurement of a lock and for each lock that is held at a scrape, concurrently. For the same path,
// name must return the same name each time. Otherwise docent_lock_waiters rises under one name and
// falls under another, and both drift.
func WithPaths(name func(path string) string) Option {
	return func(a *adapter) error {
		if name == nil {
			return errors.New("WithPaths: nil function")
		}
		a.pathName = name
		return nil
	}
}

// adapter is the Collector of all instruments. Only the values in it change after New has returned.
type adapter struct {
	metrics.Gauges
	pathName   func(string) string // nil: there is no label path
	counters   map[metrics.Instrument]*prometheus.CounterVec
	levels     map[metrics.Instrument]*prometheus.GaugeVec
	histograms map[metrics.Instrument]*prometheus.HistogramVec
	gauges     map[metrics.Instrument]*prometheus.Desc
}

// New registers all instruments and returns the adapter for framework.WithMetrics. It returns an
// error if the registerer or an option is nil, and the error of the registerer: one adapter serves
// all clients, and a registry takes no second one. For names or labels in addition use
// prometheus.WrapRegistererWith and WrapRegistererWithPrefix.
func New(registerer prometheus.Registerer, opts ...Option) (metrics.Metrics, error) {
	if registerer == nil {
		return nil, errors.New("promdocent: registerer is nil")
	}
	a := &adapter{
		counters:   map[metrics.Instrument]*prometheus.CounterVec{},
		levels:     map[metrics.Instrument]*prometheus.GaugeVec{},
		histograms: map[metrics.Instrument]*prometheus.HistogramVec{},
		gauges:     map[metrics.Instrument]*prometheus.Desc{},
	}
	if err := option.Apply(a, opts); err != nil {
		return nil, fmt.Errorf("promdocent: %w", err)
	}
	for _, i := range metrics.Instruments() {
		a.add(i)
	}
	if err := registerer.Register(a); err != nil {
		return nil, fmt.Errorf("promdocent: %w", err)
	}
	return a, nil
}

// add makes the instrument. It ignores instruments of an unknown kind.
func (a *adapter) add(i metrics.Instrument) {
	name, help, labels := nameOf(i), i.Description(), a.labelsOf(i)
	switch i.Kind() {
	case metrics.Counter:
		a.counters[i] = prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	case metrics.UpDownCounter:
		a.levels[i] = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	case metrics.Histogram:
		opts := prometheus.HistogramOpts{Name: name, Help: help, Buckets: metrics.Buckets()}
		a.histograms[i] = prometheus.NewHistogramVec(opts, labels)
	case metrics.GaugeSum, metrics.GaugeMin:
		a.gauges[i] = prometheus.NewDesc(name, help, labels, nil)
	}
}

// nameOf returns the name of an instrument in Prometheus.
func nameOf(i metrics.Instrument) string {
	name := strings.ReplaceAll(i.Name(), ".", "_")
	if i.Unit() == "s" {
		name += "_seconds"
	}
	if i.Kind() == metrics.Counter {
		name += "_total"
	}
	return name
}

// labelsOf returns the names of an instrument's labels.
func (a *adapter) labelsOf(i metrics.Instrument) (names []string) {
	for _, name := range i.Labels() {
		if name != "path" || a.pathName != nil {
			names = append(names, name)
		}
	}
	return names
}

// renamed returns the labels with the name of the path, "" without WithPaths. Prometheus takes only
// UTF-8.
func (a *adapter) renamed(l metrics.Labels) metrics.Labels {
	if l.Path != "" && a.pathName != nil {
		l.Path = strings.ToValidUTF8(a.pathName(l.Path), "\ufffd")
	} else {
		l.Path = ""
	}
	return l
}

// values returns the values of the labels that labelsOf names.
func (a *adapter) values(i metrics.Instrument, l metrics.Labels) (values []string) {
	for _, name := range a.labelsOf(i) {
		switch name {
		case "recipe":
			values = append(values, l.Recipe)
		case "path":
			values = append(values, l.Path)
		case "outcome":
			values = append(values, l.Outcome)
		case "cause":
			values = append(values, l.Cause)
		case "state":
			values = append(values, l.State)
		default: // of a later version
			values = append(values, "")
		}
	}
	return values
}

// Add implements metrics.Metrics.
func (a *adapter) Add(i metrics.Instrument, n int64, l metrics.Labels) {
	if c, ok := a.counters[i]; ok {
		c.WithLabelValues(a.values(i, a.renamed(l))...).Add(float64(n))
	} else if g, ok := a.levels[i]; ok {
		g.WithLabelValues(a.values(i, a.renamed(l))...).Add(float64(n))
	}
}

// Record implements metrics.Metrics.
func (a *adapter) Record(i metrics.Instrument, d time.Duration, l metrics.Labels) {
	if h, ok := a.histograms[i]; ok {
		h.WithLabelValues(a.values(i, a.renamed(l))...).Observe(d.Seconds())
	}
}

// Describe implements prometheus.Collector.
func (a *adapter) Describe(to chan<- *prometheus.Desc) {
	for _, c := range a.collectors() {
		c.Describe(to)
	}
	for _, desc := range a.gauges {
		to <- desc
	}
}

// Collect implements prometheus.Collector.
func (a *adapter) Collect(to chan<- prometheus.Metric) {
	for _, c := range a.collectors() {
		c.Collect(to)
	}
	for _, r := range a.Read(a.renamed) {
		if desc, ok := a.gauges[r.Instrument]; ok {
			values := a.values(r.Instrument, r.Labels)
			to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, r.Value, values...)
		}
	}
}

func (a *adapter) collectors() (all []prometheus.Collector) {
	for _, c := range a.counters {
		all = append(all, c)
	}
	for _, c := range a.levels {
		all = append(all, c)
	}
	for _, c := range a.histograms {
		all = append(all, c)
	}
	return all
}
