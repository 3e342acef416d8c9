// Package report makes tables, plots and a page of the results of the benchmark.
package report

import (
	"fmt"
	"slices"
	"time"

	"github.com/docent-zk/docent/test/bench/hist"
	"github.com/docent-zk/docent/test/bench/peer"
)

// Report is all results of a run.
type Report struct {
	Facts    []Fact
	Settings []Setting
	Series   []*Series
	Counts   []Count
	Requests Requests
}

// Fact is a property of the machine or of the software.
type Fact struct{ Name, Value string }

// Setting is the setup of servers.
type Setting struct {
	Name    string
	Servers int
	Fsync   bool
	Dir     string
	Absent  []string // missing peers, with the reason
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

// Series is the results of one peer in one workload, round by round.
type Series struct {
	Setting, Workload, Label string
	Rounds                   []peer.Result
	Reason                   string // why there are no rounds, or no more
}

// Count is the number of requests of each type for each operation.
type Count struct {
	Workload, Label string
	Each            map[string]float64
}

// Requests are the exact numbers of requests of docent.
type Requests struct {
	Acquire, Release int // of an uncontended lock
	HandOver         int // of the next holder, between the call of release and the grant
	// RoundTrips is the time of an acquire at a follower that is far away, by that of a round trip.
	RoundTrips float64
}

// These are the names of workloads. Those of a single uncontended lock are the kinds of locks.
const (
	Distinct = "distinct-32"
	Readers  = "readers-90"
	Local    = "local-hand-off"
	Queue    = "queue"
	Held     = "held"
	Waiting  = "waiting"
	Storm    = "storm"
	Paths    = "paths"
	Idle     = "idle"
	Far      = "far"

	NewValues = "new-values"
	NewPaths  = "new-paths"
)

// Trip is the time of a round trip to a server that is far away.
const Trip = 50 * time.Millisecond

// These are figures that a peer does not measure itself.
const (
	Received  = "received"  // requests that the servers received while clients were idle
	Processor = "processor" // processor time of the peer's process, in seconds
)

// Counters returns the name of the workload with one number that so many clients increment all the
// time.
func Counters(clients int) string { return fmt.Sprint("counter-", clients) }

// Contended returns the name of the workload with one lock that so many clients acquire all the
// time.
func Contended(clients int) string { return fmt.Sprint("contended-", clients) }

// Handover returns the name of the workload with one lock that passes from client to client, when
// the next one only waits.
func Handover(clients int) string { return fmt.Sprint(handover, clients) }

const handover = "hand-over-"

// QueueOf returns the label of a peer with so many waiters.
func QueueOf(peer string, waiters int) string { return fmt.Sprint(peer, "-", waiters) }

// find returns the series of a peer, and nil if it has no rounds.
func (r *Report) find(setting, workload, label string) *Series {
	for _, s := range r.Series {
		if s.Setting == setting && s.Workload == workload && s.Label == label && len(s.Rounds) > 0 {
			return s
		}
	}
	return nil
}

// latencies returns the latencies of all rounds.
func (s *Series) latencies() *hist.Histogram {
	sum := &hist.Histogram{}
	for _, r := range s.Rounds {
		sum.Merge(r.Latencies)
	}
	return sum
}

// P50 returns the median of the rounds' median latencies.
func (s *Series) P50() time.Duration { return time.Duration(s.middle(median) * float64(time.Second)) }

// p99 is that of all rounds together, in seconds, because one round has too few operations.
func (s *Series) p99() float64 { return s.latencies().Quantile(0.99).Seconds() }

// measure returns a number of one round.
type measure func(peer.Result) float64

func throughput(r peer.Result) float64 { return float64(r.Ops) / r.Took.Seconds() }
func median(r peer.Result) float64     { return r.Latencies.Quantile(0.5).Seconds() }
func figure(name string) measure       { return func(r peer.Result) float64 { return r.Figures[name] } }

// each returns the number of each round.
func (s *Series) each(m measure) (all []float64) {
	for _, r := range s.Rounds {
		all = append(all, m(r))
	}
	return all
}

// middle returns the median of all rounds.
func (s *Series) middle(m measure) float64 { return hist.Median(s.each(m)) }

// ratios returns the ratios of a and b round by round, so that both were measured at nearly the
// same time.
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

// workloads returns the workloads that were measured in a setting, in order.
func (r *Report) workloads(setting string) (all []string) {
	for _, s := range r.Series {
		if s.Setting == setting && !slices.Contains(all, s.Workload) {
			all = append(all, s.Workload)
		}
	}
	return all
}

// in returns the series of a workload in a setting.
func (r *Report) in(setting, workload string) (all []*Series) {
	for _, s := range r.Series {
		if s.Setting == setting && s.Workload == workload {
			all = append(all, s)
		}
	}
	return all
}

// duration returns text with three digits.
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
