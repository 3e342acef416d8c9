package oteldocent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/docent-zk/docent/framework/metrics"
	"github.com/docent-zk/docent/internal/option"
)

// Option configures the adapter.
type Option func(*adapter) error

// WithPaths adds the attribute docent.path. Its value is what name returns for the path of a lock.
// If name returns "", the measurement does not have the attribute. By default no measurement has
// it.
//
// The names should be few, because each one is a series of its own. The adapter calls name for each
// measurement of a lock and for each lock that is held at a collection, concurrently. For the same
// path, name must return the same name each time. Otherwise docent.lock.waiters rises under one
// name and falls under another, and both drift.
func WithPaths(name func(path string) string) Option {
	return func(a *adapter) error {
		if name == nil {
			return errors.New("WithPaths: nil function")
		}
		a.pathName = name
		return nil
	}
}

// adapter has the instruments of the meter. Only the clients in Gauges change after New has returned.
type adapter struct {
	metrics.Gauges
	pathName   func(string) string
	counters   map[metrics.Instrument]metric.Int64Counter
	levels     map[metrics.Instrument]metric.Int64UpDownCounter
	histograms map[metrics.Instrument]metric.Float64Histogram
	sums       map[metrics.Instrument]metric.Int64ObservableUpDownCounter
	minima     map[metrics.Instrument]metric.Float64ObservableGauge
}

// New makes all instruments with the meter and returns the adapter for framework.WithMetrics. It
// returns an error if the meter or an option is nil, and if the meter returns an error for an
// instrument.
func New(meter metric.Meter, opts ...Option) (metrics.Metrics, error) {
	if meter == nil {
		return nil, errors.New("oteldocent: meter is nil")
	}
	a := &adapter{
		pathName:   func(string) string { return "" },
		counters:   map[metrics.Instrument]metric.Int64Counter{},
		levels:     map[metrics.Instrument]metric.Int64UpDownCounter{},
		histograms: map[metrics.Instrument]metric.Float64Histogram{},
		sums:       map[metrics.Instrument]metric.Int64ObservableUpDownCounter{},
		minima:     map[metrics.Instrument]metric.Float64ObservableGauge{},
	}
	if err := option.Apply(a, opts); err != nil {
		return nil, fmt.Errorf("oteldocent: %w", err)
	}
	for _, i := range metrics.Instruments() {
		if err := a.register(meter, i); err != nil {
			return nil, fmt.Errorf("oteldocent: %v: %w", i, err)
		}
	}
	if _, err := meter.RegisterCallback(a.observe, a.observed()...); err != nil {
		return nil, fmt.Errorf("oteldocent: gauges: %w", err)
	}
	return a, nil
}

// register makes the instrument. It ignores instruments of an unknown kind.
func (a *adapter) register(meter metric.Meter, i metrics.Instrument) (err error) {
	unit, description := metric.WithUnit(i.Unit()), metric.WithDescription(i.Description())
	switch i.Kind() {
	case metrics.Counter:
		a.counters[i], err = meter.Int64Counter(i.Name(), unit, description)
	case metrics.UpDownCounter:
		a.levels[i], err = meter.Int64UpDownCounter(i.Name(), unit, description)
	case metrics.Histogram:
		boundaries := metric.WithExplicitBucketBoundaries(metrics.Buckets()...)
		a.histograms[i], err = meter.Float64Histogram(i.Name(), unit, description, boundaries)
	case metrics.GaugeSum:
		a.sums[i], err = meter.Int64ObservableUpDownCounter(i.Name(), unit, description)
	case metrics.GaugeMin:
		a.minima[i], err = meter.Float64ObservableGauge(i.Name(), unit, description)
	}
	return err
}

// observed returns the instruments that observe reads.
func (a *adapter) observed() (all []metric.Observable) {
	for _, gauge := range a.sums {
		all = append(all, gauge)
	}
	for _, gauge := range a.minima {
		all = append(all, gauge)
	}
	return all
}

// observe reports the gauges of all clients. It is called at each collection.
func (a *adapter) observe(_ context.Context, observer metric.Observer) error {
	for _, r := range a.Read(a.renamed) {
		if gauge, ok := a.sums[r.Instrument]; ok {
			observer.ObserveInt64(gauge, int64(r.Value), attributes(r.Labels))
		} else if gauge, ok := a.minima[r.Instrument]; ok {
			observer.ObserveFloat64(gauge, r.Value, attributes(r.Labels))
		}
	}
	return nil
}

// Add implements metrics.Metrics.
func (a *adapter) Add(i metrics.Instrument, n int64, l metrics.Labels) {
	if c, ok := a.counters[i]; ok {
		c.Add(context.Background(), n, attributes(a.renamed(l)))
	} else if c, ok := a.levels[i]; ok {
		c.Add(context.Background(), n, attributes(a.renamed(l)))
	}
}

// Record implements metrics.Metrics.
func (a *adapter) Record(i metrics.Instrument, d time.Duration, l metrics.Labels) {
	if h, ok := a.histograms[i]; ok {
		h.Record(context.Background(), d.Seconds(), attributes(a.renamed(l)))
	}
}

// renamed returns the labels with the name of the path.
func (a *adapter) renamed(l metrics.Labels) metrics.Labels {
	if l.Path != "" {
		l.Path = a.pathName(l.Path)
	}
	return l
}

func attributes(l metrics.Labels) metric.MeasurementOption {
	all := make([]attribute.KeyValue, 0, 4)
	for _, label := range [...]struct{ key, value string }{
		{"docent.recipe", l.Recipe}, {"docent.path", l.Path}, {"docent.outcome", l.Outcome},
		{"docent.cause", l.Cause}, {"docent.state", l.State},
	} {
		if label.value != "" {
			all = append(all, attribute.String(label.key, label.value))
		}
	}
	return metric.WithAttributeSet(attribute.NewSet(all...))
}
