// Package sim runs a test over many seeds. Each seed gives another order of events: a bubble of
// testing/synctest with a server whose latencies depend only on the seed.
//
//	func TestOneHolder(t *testing.T) {
//		sim.Run(t, 1000, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
//			a := connect(t, srv.Client("a")) // a name for each client, and its Dialer or DialContext
//			...
//			time.Sleep(time.Duration(random.Int64N(int64(time.Second))))
//			srv.Client("a").Drop()
//		})
//	}
//
// A seed that fails prints its number and what happened on the server. The same seed alone fails
// again:
//
//	ZKTEST_SEED=17 go test -run 'TestOneHolder$'
//
// The environment variable ZKTEST_SEEDS replaces the number of seeds, for example for few seeds
// where time is short and many at night.
//
// [Once] is also the way to write a test that takes no time and needs one seed only. Unlike a plain
// bubble, which spins as long as a client in it pings, it ends when the test hangs.
//
// # Reproducibility
//
// No two deliveries of different clients fall on the same instant. So the server sees one order of
// requests for each seed, if each client depends only on what it receives and when. A client's own
// randomness stays: its random numbers, the choice of a select with several ready cases, and the
// order of two of its goroutines that send at the same instant. [Repeat] shows whether a scenario
// is reproducible.
//
// All goroutines of a scenario must end before it returns: close clients in t.Cleanup or in its
// body. As in any bubble, it must not use t.Run, t.Parallel and real sockets.
package sim

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-zk/docent/zktest"
)

// Scenario is a test that takes no time. srv is already running. random is a generator that depends
// on the seed.
type Scenario func(t *testing.T, srv *zktest.Server, random *rand.Rand)

// Patience is the longest virtual time of a scenario. A scenario that takes longer hangs: the
// process ends with the seed and the trace.
const Patience = time.Hour

// Run runs the scenario with the seeds 1 to n, on a server with the given options. Each seed is a
// parallel subtest with its number as its name.
func Run(t *testing.T, n int, scenario Scenario, opts ...zktest.Option) {
	t.Helper()
	each(t, n, func(t *testing.T, seed int64) { Once(t, seed, scenario, opts...) })
}

// Repeat is [Run] that runs each seed twice, and fails if the canonical traces of the two runs
// differ.
func Repeat(t *testing.T, n int, scenario Scenario, opts ...zktest.Option) {
	t.Helper()
	each(t, n, func(t *testing.T, seed int64) {
		first := Once(t, seed, scenario, opts...).Canonical()
		second := Once(t, seed, scenario, opts...).Canonical()
		if first != second {
			t.Errorf("seed %d is not reproducible:\n%s", seed, difference(first, second))
		}
	})
}

// The environment variables that replace the number of seeds of all tests, or choose a single seed.
const (
	Seeds = "ZKTEST_SEEDS"
	Seed  = "ZKTEST_SEED"
)

func each(t *testing.T, n int, do func(*testing.T, int64)) {
	t.Helper()
	first, count := choose(t, n)
	for i := range count {
		seed := first + i
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			do(t, seed)
		})
	}
}

// choose returns the first seed to run and the number of seeds.
func choose(t *testing.T, n int) (first, count int64) {
	t.Helper()
	if n < 1 {
		t.Fatalf("sim: %d seeds: want 1 or more", n)
	}
	if seed, ok := number(t, Seed); ok {
		return seed, 1
	}
	if seeds, ok := number(t, Seeds); ok {
		return 1, seeds
	}
	return 1, int64(n)
}

func number(t *testing.T, variable string) (int64, bool) {
	t.Helper()
	s := os.Getenv(variable)
	if s == "" {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 1 {
		t.Fatalf("sim: %s=%s: want a number from 1", variable, s)
	}
	return n, true
}

// Once runs the scenario with one seed and returns the server's trace.
func Once(t *testing.T, seed int64, scenario Scenario, opts ...zktest.Option) (trace zktest.Trace) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv, err := zktest.New(append(slices.Clone(opts), zktest.WithSeed(seed))...)
		if err != nil {
			t.Fatal(err)
		}
		watchdog := time.AfterFunc(Patience, func() { panic("hangs: " + report(t, seed, srv.Trace())) })
		t.Cleanup(func() {
			watchdog.Stop()
			srv.Close()
			trace = srv.Trace()
			if t.Failed() {
				t.Log(report(t, seed, trace))
			}
		})
		defer func() {
			if p := recover(); p != nil {
				panic(fmt.Sprintf("%v\n%s", p, report(t, seed, srv.Trace())))
			}
		}()
		scenario(t, srv, rand.New(rand.NewPCG(uint64(seed), 0)))
	})
	return trace
}

// report describes a failed seed and how to run it again.
func report(t *testing.T, seed int64, trace zktest.Trace) string {
	test, _, _ := strings.Cut(t.Name(), "/")
	return fmt.Sprintf("seed %d failed; to run it again: %s=%d go test -run '^%s$'\n"+
		"This is what happened on the server:\n%v",
		seed, Seed, seed, test, trace)
}

// difference returns the first line in which two texts differ, with the lines before it.
func difference(a, b string) string {
	one, other := strings.Split(a, "\n"), strings.Split(b, "\n")
	i := 0
	for i < len(one) && i < len(other) && one[i] == other[i] {
		i++
	}
	return strings.Join(one[max(0, i-20):i], "\n") + "\nfirst:  " + line(one, i) + "\nsecond: " + line(other, i)
}

func line(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(the end)"
}
