// Package report makes tables, plots and a page of what the benchmark has measured.
package report

import (
	"fmt"
	"slices"
	"time"

	"github.com/docent-zk/docent/test/bench/hist"
	"github.com/docent-zk/docent/test/bench/peer"
)

// Report is all that there is to say.
type Report struct {
	Facts    []Fact
	Settings []Setting
	Series   []*Series
	Counts   []Count
	Requests Requests
}

// Fact says where the numbers come from.
type Fact struct{ Name, Value string }

// Setting is how servers were set up.
type Setting struct {
	Name    string
	Servers int
	Fsync   bool
	Dir     string
	Absent  []string // what is not there, and why
}

// Title describes the setting.
func (s Setting) Title() string {
	title := "one server"
	if s.Servers > 1 {
		title = fmt.Sprint(s.Servers, " servers")
	}
	if s.Fsync {
		return title + ", with fsync"
	}
	return title + ", `forceSync=no`, in memory"
}

// Series is what one peer has done in one workload, round by round.
type Series struct {
	Setting, Workload, Label string
	Rounds                   []peer.Result
	Trouble                  string // why there are none, or no more
}

// Count is how many requests of each type there were, for each operation.
type Count struct {
	Workload, Label string
	Each            map[string]float64
}

// Requests are those of docent, exactly.
type Requests struct {
	Acquire, Release int // of an uncontended lock
	HandOver         int // of the next holder, after the call of release and before it holds the lock
}

// The names of workloads. Those of a single uncontended lock are the kinds of locks.
const (
	Distinct = "distinct-32"
	Readers  = "readers-90"
	Local    = "local-hand-off"
	Queue    = "queue"
	Held     = "held"
	Waiting  = "waiting"
	Storm    = "storm"
)

// Contended is one lock that so many clients want all the time.
func Contended(clients int) string { return fmt.Sprint("contended-", clients) }

// Handover is one lock that goes from client to client, when the next one only waits.
func Handover(clients int) string { return fmt.Sprint(handover, clients) }

const handover = "hand-over-"

// QueueOf is the label of a peer with so many waiters.
func QueueOf(peer string, waiters int) string { return fmt.Sprint(peer, "-", waiters) }

// find is the series of a peer; nil if there is nothing in it.
func (r *Report) find(setting, workload, label string) *Series {
	for _, s := range r.Series {
		if s.Setting == setting && s.Workload == workload && s.Label == label && len(s.Rounds) > 0 {
			return s
		}
	}
	return nil
}

// latencies are those of all rounds.
func (s *Series) latencies() *hist.Histogram {
	sum := &hist.Histogram{}
	for _, r := range s.Rounds {
		sum.Merge(r.Latencies)
	}
	return sum
}

// P50 is the median latency: of the rounds' medians, the one in the middle.
func (s *Series) P50() time.Duration { return time.Duration(s.middle(median) * float64(time.Second)) }

// p99 is of all rounds together, in seconds: one has too few.
func (s *Series) p99() float64 { return s.latencies().Quantile(0.99).Seconds() }

// measure is a number of one round.
type measure func(peer.Result) float64

func throughput(r peer.Result) float64 { return float64(r.Ops) / r.Took.Seconds() }
func median(r peer.Result) float64     { return r.Latencies.Quantile(0.5).Seconds() }
func figure(name string) measure       { return func(r peer.Result) float64 { return r.Figures[name] } }

// each is the number of each round.
func (s *Series) each(m measure) (all []float64) {
	for _, r := range s.Rounds {
		all = append(all, m(r))
	}
	return all
}

// middle is the median of all rounds.
func (s *Series) middle(m measure) float64 { return hist.Median(s.each(m)) }

// ratios are those of a and b, round by round: so both were measured at nearly the same time.
func ratios(a, b *Series, m measure) (all []float64) {
	if a == nil || b == nil {
		return nil
	}
	ours, theirs := a.each(m), b.each(m)
	for i := range min(len(ours), len(theirs)) {
		if theirs[i] > 0 {
			all = append(all, ours[i]/theirs[i])
		}
	}
	return all
}

// workloads are those that were measured in a setting, in their order.
func (r *Report) workloads(setting string) (all []string) {
	for _, s := range r.Series {
		if s.Setting == setting && !slices.Contains(all, s.Workload) {
			all = append(all, s.Workload)
		}
	}
	return all
}

// in are the series of a workload in a setting.
func (r *Report) in(setting, workload string) (all []*Series) {
	for _, s := range r.Series {
		if s.Setting == setting && s.Workload == workload {
			all = append(all, s)
		}
	}
	return all
}

// duration is for people: three digits.
func duration(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d >= time.Second:
		return fmt.Sprintf("%.2f s", seconds)
	case d >= 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", seconds*1e3)
	case d >= time.Millisecond:
		return fmt.Sprintf("%.2f ms", seconds*1e3)
	case d >= 10*time.Microsecond:
		return fmt.Sprintf("%.0f µs", seconds*1e6)
	}
	return fmt.Sprintf("%.2f µs", seconds*1e6)
}
