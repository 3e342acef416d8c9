package testzk

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/docent-zk/docent/framework/metrics"
)

// Metrics records the values that it gets, and reads gauges. The zero value is ready to use.
type Metrics struct {
	metrics.Gauges

	mu        sync.Mutex
	sums      map[series]int64
	durations map[series][]time.Duration
	wrong     []string
}

type series struct {
	instrument metrics.Instrument
	labels     metrics.Labels
}

// Add adds n. It records an error if n is not valid for the instrument, or if a level becomes
// negative.
func (m *Metrics) Add(i metrics.Instrument, n int64, l metrics.Labels) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sums == nil {
		m.sums = map[series]int64{}
	}
	s := series{i, l}
	m.sums[s] += n
	if i.Kind() == metrics.Histogram || i.Kind() == metrics.Counter && n < 0 || m.sums[s] < 0 {
		m.wrong = append(m.wrong, fmt.Sprintf("%v %v: %+d is %d", i, l, n, m.sums[s]))
	}
}

// Record adds a duration. It records an error if d is negative or i is not a histogram.
func (m *Metrics) Record(i metrics.Instrument, d time.Duration, l metrics.Labels) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.durations == nil {
		m.durations = map[series][]time.Duration{}
	}
	s := series{i, l}
	m.durations[s] = append(m.durations[s], d)
	if i.Kind() != metrics.Histogram || d < 0 {
		m.wrong = append(m.wrong, fmt.Sprintf("%v %v: %v", i, l, d))
	}
}

// Lines returns the values, sorted, as "name{label value ...} n" and "name{label value ...}
// duration duration ...", with rounded durations. Recorded errors come first.
func (m *Metrics) Lines(round time.Duration) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var lines []string
	for s, n := range m.sums {
		lines = append(lines, fmt.Sprintf("%v %d", s, n))
	}
	for s, all := range m.durations {
		texts := []string{s.String()}
		for _, d := range all {
			texts = append(texts, d.Round(round).String())
		}
		lines = append(lines, strings.Join(texts, " "))
	}
	slices.Sort(lines)
	return append(slices.Clone(m.wrong), lines...)
}

// Levels returns the recorded errors, the up-down counters that are not 0, and the locks that are
// held. A test calls it when all operations have ended.
func (m *Metrics) Levels() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	levels := slices.Clone(m.wrong)
	for s, n := range m.sums {
		if s.instrument.Kind() == metrics.UpDownCounter && n != 0 {
			levels = append(levels, fmt.Sprintf("%v %d", s, n))
		}
	}
	return append(levels, m.Held()...)
}

// Held returns the locks that are held, as Lines does.
func (m *Metrics) Held() (lines []string) {
	for _, r := range m.Read(nil) {
		if r.Instrument == metrics.LocksHeld {
			lines = append(lines, fmt.Sprintf("%v %v", series{r.Instrument, r.Labels}, r.Value))
		}
	}
	return lines
}

func (s series) String() string {
	var parts []string
	for _, l := range []string{s.labels.Recipe, s.labels.Path, s.labels.Outcome, s.labels.Cause, s.labels.State} {
		if l != "" {
			parts = append(parts, l)
		}
	}
	return s.instrument.Name() + "{" + strings.Join(parts, " ") + "}"
}

// Calling are Metrics that call a function, as code of a program that blocks or ends its goroutine.
type Calling struct {
	Metrics
	instrument metrics.Instrument
	n          int64
	fn         func()
}

// NewCalling returns Calling that call fn whenever n is added to the instrument, or at each duration of it.
func NewCalling(i metrics.Instrument, n int64, fn func()) *Calling {
	return &Calling{instrument: i, n: n, fn: fn}
}

// Add adds n as Metrics do, and then calls the function.
func (m *Calling) Add(i metrics.Instrument, n int64, l metrics.Labels) {
	m.Metrics.Add(i, n, l)
	if i == m.instrument && n == m.n {
		m.fn()
	}
}

// Record adds a duration as Metrics do, and then calls the function.
func (m *Calling) Record(i metrics.Instrument, d time.Duration, l metrics.Labels) {
	m.Metrics.Record(i, d, l)
	if i == m.instrument {
		m.fn()
	}
}
