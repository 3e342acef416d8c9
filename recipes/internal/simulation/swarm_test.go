package simulation_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// The environment variables of a campaign, beside those of package sim.
const (
	fromVariable = "DOCENT_FROM"  // the first seed
	goOnVariable = "DOCENT_GO_ON" // not empty: seeds that fail do not end the campaign
	partVariable = "DOCENT_PART"  // the file for the counts of a process that runs a part of a campaign
)

const (
	ordinary = 60     // seeds of a test that is no campaign
	enough   = 20_000 // seeds from which on the table must be full
)

// All recipes run on one server, some in each run, with some kinds of faults in each.
func TestSimulatedSwarm(t *testing.T) {
	s := newSeeds(t)
	switch file := os.Getenv(partVariable); {
	case file != "":
		s.runPart(t, file)
	case s.campaign:
		newCampaign(s).run(t)
	default:
		s.run(t)
	}
}

// seeds is a range of seeds, and what has happened in those that were run.
type seeds struct {
	first, last int64
	goOn        bool // after a failure
	campaign    bool

	mu    sync.Mutex
	next  int64
	tally tally
}

func newSeeds(t *testing.T) *seeds {
	s := &seeds{
		tally: tally{Hits: hits{}}, goOn: os.Getenv(goOnVariable) != "",
		campaign: os.Getenv(fromVariable) != "",
	}
	s.first = variable(t, fromVariable, 1)
	number := variable(t, sim.Seeds, ordinary)
	if !s.campaign {
		number = max(number, ordinary)
	}
	s.last = s.first - 1 + number
	if one := variable(t, sim.Seed, 0); one > 0 {
		s.first, s.last, s.campaign = one, one, false
	}
	s.next = s.first
	return s
}

func variable(t *testing.T, name string, otherwise int64) int64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		t.Fatalf("%s=%s: want a number from 1", name, text)
	}
	return n
}

// take returns the next seeds, at most n, and false at the end.
func (s *seeds) take(n int64) (first, last int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next > s.last || len(s.tally.Failed) > 0 && !s.goOn {
		return 0, 0, false
	}
	first, last = s.next, min(s.next+n-1, s.last)
	s.next = last + 1
	return first, last, true
}

func (s *seeds) add(t tally) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tally.add(t)
}

// run runs the seeds in this process, as many at a time as there are processors.
func (s *seeds) run(t *testing.T) {
	var running sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		running.Go(func() {
			for seed, _, ok := s.take(1); ok; seed, _, ok = s.take(1) {
				s.add(runSeed(t, seed))
			}
		})
	}
	running.Wait()
}

// runSeed runs one seed.
func runSeed(t *testing.T, seed int64) tally {
	var all tally
	passed := t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
		p := newPlan(rand.New(rand.NewPCG(uint64(seed), 1)))
		sim.Once(t, seed, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
			t.Cleanup(func() {
				if t.Failed() {
					t.Log(p)
				}
			})
			all = run(t, srv, random, p)
		}, p.options()...)
	})
	if all.Seeds = 1; !passed {
		all.Failed = []int64{seed}
	}
	return all
}
