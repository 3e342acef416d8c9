package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/docent-zk/docent/test/bench/hist"
	"github.com/docent-zk/docent/test/bench/peer"
)

// Table is rows of text.
type Table struct {
	Title string // what is measured, in a few words
	Head  []string
	Rows  [][]string
}

// Targets compares the results with the targets, in each setting that has all of the numbers.
func (r *Report) Targets() Table {
	t := Table{Head: []string{"workload", "measure", "target"}}
	for _, s := range r.Settings {
		t.Head = append(t.Head, s.Name, "met")
	}
	for _, target := range Targets {
		row := []string{target.Workload, target.Text, target.Bound()}
		for _, s := range r.Settings {
			value, known := target.value(r, s.Name)
			row = append(row, verdict(target, value, known)...)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func verdict(t Target, value float64, known bool) []string {
	switch {
	case !known:
		return []string{"", ""}
	case t.Met(value):
		return []string{t.show(value), "yes"}
	}
	return []string{t.show(value), "**no**"}
}

// Results returns a table for each workload of a setting.
func (r *Report) Results(setting string) (all []Table) {
	for _, w := range r.workloads(setting) {
		t := Table{Title: titles(w), Head: heads(w)}
		for _, s := range r.in(setting, w) {
			t.Rows = append(t.Rows, r.row(w, s))
		}
		all = append(all, t)
	}
	return all
}

func titles(workload string) string {
	if title, ok := map[string]string{
		"mutex":           "mutex: one uncontended acquire and release",
		"read":            "read side of a read-write lock: one uncontended acquire and release",
		"write":           "write side of a read-write lock: one uncontended acquire and release",
		"semaphore":       "semaphore of 10 permits: one uncontended acquire and release",
		"semaphore-mutex": "semaphore mutex: one uncontended acquire and release",
		"multi":           "multi-lock of 10: one uncontended acquire and release of all",
		Distinct:          "32 threads of one client, each with its own lock",
		Contended(2):      "one lock, 2 clients; latency: release called to next holder running, if it waited",
		Contended(16):     "one lock, 16 clients; latency as before",
		Contended(64):     "one lock, 64 clients; latency as before",
		Counters(1):       "one number, incremented by one client",
		Counters(2):       "one number, incremented by 2 clients",
		Counters(16):      "one number, incremented by 16 clients",
		Readers:           "a read-write lock, 16 clients, nine reads in ten; latency: acquire and release",
		Handover(2):       "hand-over between 2 clients; floor: delete called to watch event",
		Handover(16):      "hand-over among 16 clients",
		Local:             "one lock, 16 threads of one client; docent: `mutex.WithLocalHandoff`",
		Queue: "many waiters on one client, served in turn; latency: of a hand-over at the full " +
			"length of the queue",
		Held:    "10,000 locks held by one client",
		Waiting: "1,000 acquires that wait, each for a lock of its own",
		Storm:   "500 clients, each with a lock; the server is killed and started again",
		Paths:   "paths that one client locks once each; the memory that stays, on the in-process server",
		Idle:    "sessions that do nothing: the requests that the server receives",
		Far: "one uncontended acquire and release at a follower, with " + Trip.String() +
			" of network for each round trip",
		NewValues: "mutex: one uncontended acquire and release, with a new value each time",
		NewPaths:  "mutex: one acquire and release of a path that was never used before",
	}[workload]; ok {
		return title
	}
	return workload
}

func heads(workload string) []string {
	switch workload {
	case Held, Waiting:
		return []string{"peer", "heap each", "stacks each", "goroutines or threads each"}
	case Storm:
		return []string{"peer", "half hold again after", "all hold again after", "lost", "dials",
			"dials in the busiest 100 ms"}
	case Paths:
		return []string{"peer", "paths", "per second", "heap that stays, each"}
	case Idle:
		return []string{"peer", "sessions", "requests per second", "of each in a sixth of its timeout"}
	case Far:
		return []string{"peer", "p50", "p99", "round trips", "p50 / Curator"}
	case Queue:
		return []string{"peer and waiters", "hand-overs/s", "p50", "p99", "queue filled in", "heap of each waiter"}
	}
	if strings.HasPrefix(workload, handover) {
		return []string{"peer", "p50", "p99", "p50 / floor", "p50 / Curator"}
	}
	return []string{"peer", "per second", "p50", "p99", "throughput / floor", "p50 / floor", "throughput / Curator",
		"rounds from - to", "client's processor time"}
}

func (r *Report) row(workload string, s *Series) []string {
	if len(s.Rounds) == 0 {
		return []string{s.Label, s.Reason}
	}
	row := append([]string{s.Label}, r.numbers(workload, s)...)
	if s.Reason != "" {
		row[0] += ": " + s.Reason
	}
	return row
}

func (r *Report) numbers(workload string, s *Series) []string {
	switch workload {
	case Held, Waiting:
		return []string{fmt.Sprintf("%.0f B", s.middle(figure("heap"))),
			fmt.Sprintf("%.0f B", s.middle(figure("stack"))), fmt.Sprintf("%.2f", s.middle(figure("goroutines")))}
	case Storm:
		return []string{duration(s.middle(since(0.5))), duration(s.middle(since(1))),
			fmt.Sprint(s.middle(figure("lost"))), fmt.Sprint(s.middle(figure("dials"))),
			fmt.Sprint(s.middle(figure("busiest")))}
	case Paths:
		return []string{fmt.Sprint(s.middle(operations)), rate(s.middle(throughput)),
			fmt.Sprintf("%.1f B", s.middle(figure("heap")))}
	case Idle:
		return []string{fmt.Sprint(s.middle(operations)), rate(s.middle(received)),
			fmt.Sprintf("%.2f", s.middle(heartbeats))}
	case Far:
		return []string{duration(s.middle(median)), duration(s.p99()), fmt.Sprintf("%.2f", s.middle(roundTrips)),
			typical(ratios(s, r.find(s.Setting, workload, "curator"), median))}
	case Queue:
		return []string{rate(s.middle(throughput)), duration(s.middle(median)), duration(s.p99()),
			optional(duration, s.middle(figure("fill"))), optional(func(n float64) string {
				return fmt.Sprintf("%.0f B", n)
			}, s.middle(figure("heap")))}
	}
	floor, curator := r.find(s.Setting, workload, "floor"), r.find(s.Setting, workload, "curator")
	if strings.HasPrefix(workload, handover) {
		return []string{duration(s.middle(median)), duration(s.p99()), typical(ratios(s, floor, median)),
			typical(ratios(s, curator, median))}
	}
	each := s.each(throughput)
	latency, over := []string{"", ""}, ""
	if s.latencies().Count() > 0 {
		latency = []string{duration(s.middle(median)), duration(s.p99())}
		over = typical(ratios(s, floor, median))
	}
	return append([]string{rate(s.middle(throughput))}, append(latency, typical(ratios(s, floor, throughput)), over,
		typical(ratios(s, curator, throughput)), rate(slices.Min(each))+" - "+rate(slices.Max(each)),
		optional(duration, s.middle(perOperation(Processor))))...)
}

// since returns the time after which a part of the clients knew that they still held their locks,
// from the moment at which the server served again.
func since(part float64) measure {
	return func(r peer.Result) float64 { return r.Latencies.Quantile(part).Seconds() - r.Figures["served"] }
}

func operations(r peer.Result) float64 { return float64(r.Ops) }

// perOperation returns a figure of each operation.
func perOperation(name string) measure {
	return func(r peer.Result) float64 { return r.Figures[name] / float64(r.Ops) }
}

// received returns the requests in a second while clients were idle.
func received(r peer.Result) float64 { return r.Figures[Received] / r.Took.Seconds() }

// heartbeats returns the requests of each idle session in a sixth of the session timeout.
func heartbeats(r peer.Result) float64 {
	return received(r) / float64(r.Ops) * (peer.SessionTimeout / 6).Seconds()
}

// roundTrips returns the median latency in round trips to a server that is far away.
func roundTrips(r peer.Result) float64 { return median(r) / Trip.Seconds() }

// typical returns the median of ratios as text.
func typical(all []float64) string {
	if len(all) == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", hist.Median(all))
}

func rate(perSecond float64) string {
	if perSecond < 100 {
		return fmt.Sprintf("%.1f", perSecond)
	}
	return fmt.Sprintf("%.0f", perSecond)
}

// optional returns "" for a value that was not measured.
func optional(show func(float64) string, value float64) string {
	if value == 0 {
		return ""
	}
	return show(value)
}

// Asked returns the requests of acquire and release.
func (r *Report) Asked() Table {
	t := Table{Head: []string{"lock", "peer", "requests", "of them"}}
	for _, c := range r.Counts {
		var sum float64
		var kinds []string
		for _, kind := range slices.Sorted(maps.Keys(c.Each)) {
			sum += c.Each[kind]
			kinds = append(kinds, fmt.Sprintf("%.1f %s", c.Each[kind], kind))
		}
		t.Rows = append(t.Rows, []string{c.Workload, c.Label, fmt.Sprintf("%.1f", sum), strings.Join(kinds, ", ")})
	}
	return t
}

// Markdown returns the table in Markdown.
func (t Table) Markdown() string {
	var b strings.Builder
	line := func(cells []string) {
		cells = append(slices.Clone(cells), make([]string, len(t.Head)-len(cells))...)
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	line(t.Head)
	rule := []string{"---"}
	for range t.Head[1:] {
		rule = append(rule, "---")
	}
	line(rule)
	for _, row := range t.Rows {
		line(row)
	}
	return b.String()
}

// Text returns the table for a terminal.
func (t Table) Text() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{t.Head}, t.Rows...) {
		fmt.Fprintln(w, strings.ReplaceAll(strings.Join(row, "\t"), "**", ""))
	}
	_ = w.Flush()
	return b.String()
}
