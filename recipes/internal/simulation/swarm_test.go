package simulation_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// The environment variables of a campaign, beside those of package sim.
const (
	fromVariable = "DOCENT_FROM"  // the first seed
	goOnVariable = "DOCENT_GO_ON" // not empty: seeds that fail do not end the campaign
)

const (
	ordinary = 60     // seeds of a test that is no campaign
	enough   = 20_000 // seeds from which on the table must be full
	progress = 30 * time.Second
)

// All recipes run on one server, some in each run, with some kinds of faults in each.
func TestSimulatedSwarm(t *testing.T) {
	c := newCampaign(t)
	stop := c.report()
	var running sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		running.Go(func() {
			for seed, ok := c.next(); ok; seed, ok = c.next() {
				c.run(t, seed)
			}
		})
	}
	running.Wait()
	stop()
	if c.done < enough {
		return
	}
	for _, m := range c.hits.missing() {
		t.Errorf("%d seeds: %s", c.done, m)
	}
}

// campaign is the runs of a range of seeds.
type campaign struct {
	first, last int64
	goOn        bool
	begun       time.Time

	mu     sync.Mutex
	seed   int64 // of the next run
	done   int64
	failed []int64
	hits   hits
}

func newCampaign(t *testing.T) *campaign {
	c := &campaign{begun: time.Now(), hits: hits{}, goOn: os.Getenv(goOnVariable) != ""}
	c.first = variable(t, fromVariable, 1)
	seeds := variable(t, sim.Seeds, ordinary)
	if os.Getenv(fromVariable) == "" {
		seeds = max(seeds, ordinary)
	}
	c.last = c.first - 1 + seeds
	if one := variable(t, sim.Seed, 0); one > 0 {
		c.first, c.last = one, one
	}
	c.seed = c.first
	return c
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

// next returns the next seed, and false at the end.
func (c *campaign) next() (seed int64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seed > c.last || len(c.failed) > 0 && !c.goOn {
		return 0, false
	}
	seed = c.seed
	c.seed++
	return seed, true
}

// run runs one seed.
func (c *campaign) run(t *testing.T, seed int64) {
	var found hits
	passed := t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
		p := newPlan(rand.New(rand.NewPCG(uint64(seed), 1)))
		sim.Once(t, seed, func(t *testing.T, srv *zktest.Server, random *rand.Rand) {
			t.Cleanup(func() {
				if t.Failed() {
					t.Log(p)
				}
			})
			found = run(t, srv, random, p)
		}, p.options()...)
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done++
	c.hits.add(found)
	if !passed {
		c.failed = append(c.failed, seed)
	}
}

// report prints a line every so often, and the table and the verdict when stop is called. A test that is
// no campaign prints nothing.
func (c *campaign) report() (stop func()) {
	if os.Getenv(fromVariable) == "" {
		return func() {}
	}
	ended, ticker := make(chan struct{}), time.NewTicker(progress)
	var reporting sync.WaitGroup
	reporting.Go(func() {
		defer ticker.Stop()
		for {
			select {
			case <-ended:
				return
			case <-ticker.C:
				fmt.Println(c.verdict()) // at once, unlike the log of a test
			}
		}
	})
	return func() {
		close(ended)
		reporting.Wait()
		fmt.Println(c.hits.table())
		fmt.Println(c.verdict())
	}
}

func (c *campaign) verdict() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	spent, faults := time.Since(c.begun), 0
	for _, n := range c.hits {
		faults += n
	}
	return fmt.Sprintf("%d of %d seeds from %d, %d failed %v, %d faults, %.1f seeds per second",
		c.done, c.last-c.first+1, c.first, len(c.failed), c.failed, faults, float64(c.done)/spent.Seconds())
}
