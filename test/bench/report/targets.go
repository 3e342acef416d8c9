package report

import (
	"fmt"
	"math"

	"github.com/docent-zk/docent/test/bench/hist"
	"github.com/docent-zk/docent/test/bench/peer"
)

// Target is a target of docent.
type Target struct {
	Workload string
	Text     string
	limit    float64
	atLeast  bool // otherwise the limit is a maximum
	unit     string
	value    func(r *Report, setting string) (float64, bool)
}

// Met reports whether a value meets the target.
func (t Target) Met(value float64) bool {
	if t.atLeast {
		return value >= t.limit
	}
	return value <= t.limit
}

// Bound returns the target as text.
func (t Target) Bound() string {
	sign := "≤"
	if t.atLeast {
		sign = "≥"
	}
	return sign + " " + t.show(t.limit)
}

func (t Target) show(value float64) string {
	switch {
	case value >= 1e5:
		return fmt.Sprintf("%.0fk%s", value/1e3, t.unit)
	case value >= 100:
		return fmt.Sprintf("%.0f%s", value, t.unit)
	case t.unit != times && value == math.Trunc(value):
		return fmt.Sprintf("%.0f%s", value, t.unit)
	}
	return fmt.Sprintf("%.2f%s", value, t.unit)
}

// in returns the target for one setting alone.
func (t Target) in(setting string) Target {
	return t.where(func(s string) bool { return s == setting })
}

// except returns the target for all settings but one.
func (t Target) except(setting string) Target {
	return t.where(func(s string) bool { return s != setting })
}

func (t Target) where(applies func(setting string) bool) Target {
	value := t.value
	t.value = func(r *Report, setting string) (float64, bool) {
		if !applies(setting) {
			return 0, false
		}
		return value(r, setting)
	}
	return t
}

const times = " ×"

// latency returns a target for the median latency of docent, relative to that of another peer.
func latency(workload, title, docent, other string, limit float64) Target {
	return Target{title, "p50 / " + other, limit, false, times, ratio(workload, docent, other, median)}
}

// speed returns a target for operations per second, relative to those of another peer.
func speed(workload, title, docent, other string, limit float64) Target {
	return Target{title, "throughput / " + other, limit, true, times, ratio(workload, docent, other, throughput)}
}

func ratio(workload, a, b string, m measure) func(*Report, string) (float64, bool) {
	return func(r *Report, setting string) (float64, bool) {
		all := ratios(r.find(setting, workload, a), r.find(setting, workload, b), m)
		return hist.Median(all), len(all) > 0
	}
}

// number returns a number that a peer has measured by itself.
func number(workload, label string, m measure) func(*Report, string) (float64, bool) {
	return func(r *Report, setting string) (float64, bool) {
		s := r.find(setting, workload, label)
		if s == nil {
			return 0, false
		}
		return s.middle(m), true
	}
}

// exact returns a number that does not depend on servers.
func exact(of func(Requests) int) func(*Report, string) (float64, bool) {
	return func(r *Report, setting string) (float64, bool) {
		return float64(of(r.Requests)), setting == r.Settings[0].Name && r.Requests.Acquire > 0
	}
}

const (
	kib    = 1024
	bytes  = " B"
	perSec = "/s"

	seconds = " s"

	replicated = "disk-3" // the setting with three servers and fsync, where each write waits for two disks
)

// Targets are all targets.
var Targets = []Target{
	latency("mutex", "mutex, uncontended", "docent", "floor", 1.25).except(replicated),
	latency("mutex", "mutex, uncontended", "docent", "floor", 1.08).in(replicated),
	speed("mutex", "mutex, uncontended", "docent", "curator", 1),
	{"mutex, uncontended", "client's processor time / zk.Lock", 1, false, times,
		ratio("mutex", "docent", "zk.Lock", perOperation(Processor))},
	{"mutex, uncontended", "allocations", 72, false, "", number("mutex", "docent", perOperation(peer.Allocated))},
	latency("read", "read side, uncontended", "docent", "floor", 1.15),
	latency("write", "write side, uncontended", "docent", "floor", 1.15),
	speed("semaphore", "semaphore, uncontended", "docent", "curator", 3.5),
	speed("semaphore-mutex", "semaphore mutex, uncontended", "docent", "curator", 3.5),
	speed("multi", "multi-lock of 10", "docent", "curator", 12),
	speed(Distinct, "32 distinct locks, one client", "docent", "floor", 0.75).except(replicated),
	speed(Distinct, "32 distinct locks, one client", "docent", "floor", 0.95).in(replicated),
	speed(Distinct, "32 distinct locks, one client", "docent", "curator", 1),
	latency(Handover(2), "hand-over, 2 clients", "docent", "floor", 1.2),
	latency(Handover(16), "hand-over, 16 clients", "docent", "floor", 1.2),
	speed(Contended(2), "one lock, 2 clients", "docent", "curator", 1.5),
	speed(Contended(16), "one lock, 16 clients", "docent", "curator", 1.5),
	speed(Queue, "500 waiters on one client", QueueOf("docent", 500), QueueOf("curator", 500), 2),
	{"5,000 waiters on one client", "p50 of a hand-over / with 50 waiters", 1.3, false, times,
		ratio(Queue, QueueOf("docent", 5000), QueueOf("docent", 50), median)},
	{"one waiting acquire", "heap", 4 * kib, false, bytes, number(Waiting, "docent", figure("heap"))},
	{"one waiting acquire", "goroutines, the caller's included", 2, false, "",
		number(Waiting, "docent", figure("goroutines"))},
	{"requests", "to acquire, uncontended, in one round trip", 2, false, "", exact(func(r Requests) int {
		return r.Acquire
	})},
	{"requests", "to release", 1, false, "", exact(func(r Requests) int { return r.Release })},
	{"requests", "of the next holder at a hand-over", 0, false, "", exact(func(r Requests) int { return r.HandOver })},
	{"hand-off in process, 16 goroutines", "throughput", 200_000, true, perSec, number(Local, "docent", throughput)},
	speed(Local, "hand-off in process, 16 goroutines", "docent", "curator", 100),
	speed(NewPaths, "a path never used before", "docent", "curator", 2),
	speed(NewValues, "a new value of a mutex", "docent", "curator", 1.5),
	{"5,000 waiters on one client", "all in the queue after", 1.5, false, seconds,
		number(Queue, QueueOf("docent", 5000), figure("fill"))},
	{"restart of the server, 500 clients", "locks lost", 0, false, "", number(Storm, "docent", figure("lost"))},
	{"restart of the server, 500 clients", "half hold again after / zk.Lock", 1, false, times,
		ratio(Storm, "docent", "zk.Lock", since(0.5))},
	{"restart of the server, 500 clients", "all hold again after / zk.Lock", 1, false, times,
		ratio(Storm, "docent", "zk.Lock", since(1))},
	{"restart of the server, 500 clients", "dials in the busiest 100 ms / zk.Lock", 1, false, times,
		ratio(Storm, "docent", "zk.Lock", figure("busiest"))},
	{"paths locked once", "heap that stays, each", 16, false, bytes, number(Paths, "docent", figure("heap"))},
	{"idle sessions", "requests of each in a sixth of its timeout", 1.05, false, "",
		number(Idle, "docent", heartbeats)},
	{"a follower far away", "round trips to acquire", 1.2, false, "", func(r *Report, setting string) (float64, bool) {
		return r.Requests.RoundTrips, setting == r.Settings[0].Name && r.Requests.RoundTrips > 0
	}},
	latency(Far, "a follower far away", "docent", "floor", 1.1),
	{"10,000 held locks", "heap of each", 2 * kib, false, bytes, number(Held, "docent", figure("heap"))},
	{"10,000 held locks", "goroutines of each", 0, false, "", number(Held, "docent", figure("goroutines"))},
}
