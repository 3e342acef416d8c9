package oteldocent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/docent-zk/docent/framework/metrics"
)

// Option configures the adapter.
type Option func(*adapter) error

// WithPaths adds the attribute docent.path: what name makes of a lock's path, left out where that is "". There should be few different
// ones, as each is a series of its own. name is called with each measurement of a lock, concurrently. It
// must return the same name for a path each time: docent.lock.waiters goes up under one name and down under the other if it does not, and
// both drift. Default: no such attribute.
func WithPaths(name func(path string) string) Option {
	return func(a *adapter) error {
		if name == nil {
			return errors.New("function that names paths is nil")
		}
		a.pathName = name
		return nil
	}
}

// buckets are the boundaries of the histograms, in seconds: a lock nobody wants takes a millisecond or two, one that is kept long an hour.
var buckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600}

// adapter has the meter's instruments by metrics.Instrument. It is not changed once it is made.
type adapter struct {
	pathName   func(string) string
	counters   map[metrics.Instrument]metric.Int64Counter
	levels     map[metrics.Instrument]metric.Int64UpDownCounter
	histograms map[metrics.Instrument]metric.Float64Histogram
}

// New makes all instruments with the meter, for framework.WithMetrics. It fails if the meter or an option is nil, and where the meter
// refuses an instrument.
func New(meter metric.Meter, opts ...Option) (metrics.Metrics, error) {
	if meter == nil {
		return nil, errors.New("oteldocent: meter is nil")
	}
	a := &adapter{
		pathName:   func(string) string { return "" },
		counters:   map[metrics.Instrument]metric.Int64Counter{},
		levels:     map[metrics.Instrument]metric.Int64UpDownCounter{},
		histograms: map[metrics.Instrument]metric.Float64Histogram{},
	}
	for i, opt := range opts {
		if opt == nil {
			return nil, fmt.Errorf("oteldocent: option %d is nil", i)
		}
		if err := opt(a); err != nil {
			return nil, fmt.Errorf("oteldocent: %w", err)
		}
	}
	for _, i := range metrics.Instruments() {
		if err := a.register(meter, i); err != nil {
			return nil, fmt.Errorf("oteldocent: %v: %w", i, err)
		}
	}
	return a, nil
}

// register makes the instrument, unless it is of a kind that is not known here.
func (a *adapter) register(meter metric.Meter, i metrics.Instrument) (err error) {
	unit, description := metric.WithUnit(i.Unit()), metric.WithDescription(i.Description())
	switch i.Kind() {
	case metrics.Counter:
		a.counters[i], err = meter.Int64Counter(i.Name(), unit, description)
	case metrics.UpDownCounter:
		a.levels[i], err = meter.Int64UpDownCounter(i.Name(), unit, description)
	case metrics.Histogram:
		a.histograms[i], err = meter.Float64Histogram(i.Name(), unit, description, metric.WithExplicitBucketBoundaries(buckets...))
	}
	return err
}

// Add implements metrics.Metrics.
func (a *adapter) Add(i metrics.Instrument, n int64, l metrics.Labels) {
	if c, ok := a.counters[i]; ok {
		c.Add(context.Background(), n, a.attributes(l))
	} else if c, ok := a.levels[i]; ok {
		c.Add(context.Background(), n, a.attributes(l))
	}
}

// Record implements metrics.Metrics.
func (a *adapter) Record(i metrics.Instrument, d time.Duration, l metrics.Labels) {
	if h, ok := a.histograms[i]; ok {
		h.Record(context.Background(), d.Seconds(), a.attributes(l))
	}
}

func (a *adapter) attributes(l metrics.Labels) metric.MeasurementOption {
	path := l.Path
	if path != "" {
		path = a.pathName(path)
	}
	all := make([]attribute.KeyValue, 0, 4)
	for _, label := range [...]struct{ key, value string }{
		{"docent.recipe", l.Recipe}, {"docent.path", path}, {"docent.outcome", l.Outcome}, {"docent.cause", l.Cause},
	} {
		if label.value != "" {
			all = append(all, attribute.String(label.key, label.value))
		}
	}
	return metric.WithAttributeSet(attribute.NewSet(all...))
}
