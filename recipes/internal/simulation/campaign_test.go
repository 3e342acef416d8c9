package simulation_test

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	part     = 200 // seeds of one process
	progress = 30 * time.Second
)

// tally counts what has happened in runs.
type tally struct {
	Seeds, Requests, Holds, Faults int
	Failed                         []int64 // seeds
	Hits                           hits
}

func (t *tally) add(other tally) {
	t.Seeds += other.Seeds
	t.Requests += other.Requests
	t.Holds += other.Holds
	t.Faults += other.Faults
	t.Failed = append(t.Failed, other.Failed...)
	t.Hits.add(other.Hits)
}

// runPart runs the seeds and writes the tally to a file. It leaves signals to the campaign.
func (s *seeds) runPart(t *testing.T, file string) {
	signal.Ignore(os.Interrupt, syscall.SIGTERM)
	s.run(t)
	var text bytes.Buffer
	if err := gob.NewEncoder(&text).Encode(s.tally); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// campaign runs seeds in processes with one processor each. The goroutines of a run take turns, so a
// second processor only makes them wait for each other. A signal ends the campaign when the parts that
// are running have ended. A second one ends it at once.
type campaign struct {
	*seeds
	begun time.Time
	ended chan os.Signal
}

func newCampaign(s *seeds) *campaign {
	return &campaign{seeds: s, begun: time.Now(), ended: make(chan os.Signal, 1)}
}

func (c *campaign) run(t *testing.T) {
	signal.Notify(c.ended, os.Interrupt, syscall.SIGTERM)
	stop := c.report()
	dir := t.TempDir()
	var running sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		running.Go(func() {
			for first, last, ok := c.take(part); ok; first, last, ok = c.take(part) {
				c.runPart(t, dir, first, last)
			}
		})
	}
	running.Wait()
	stop()
	if c.tally.Seeds < enough {
		return
	}
	for _, m := range c.tally.Hits.missing() {
		t.Errorf("%d seeds: %s", c.tally.Seeds, m)
	}
}

// runPart runs seeds in another process. If that ends without a tally, the first seed counts as failed.
func (c *campaign) runPart(t *testing.T, dir string, first, last int64) {
	file := filepath.Join(dir, fmt.Sprint(first))
	cmd := exec.Command(os.Args[0], "-test.run=^TestSimulatedSwarm$", "-test.timeout=0")
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1", "GOGC=400", fmt.Sprint(partVariable, "=", file),
		fmt.Sprint(fromVariable, "=", first), fmt.Sprint("ZKTEST_SEEDS=", last-first+1))
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("seeds %d to %d: %v\n%s", first, last, err, output)
	}
	all, unread := readTally(file)
	if unread != nil {
		t.Errorf("seeds %d to %d: %v\n%s", first, last, unread, output)
		all = tally{Failed: []int64{first}}
	}
	c.add(all)
}

func readTally(file string) (all tally, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return tally{}, err
	}
	if err := gob.NewDecoder(bytes.NewReader(text)).Decode(&all); err != nil {
		return tally{}, err
	}
	return all, os.Remove(file)
}

// report prints a line every so often, and the table and the counts when stop is called.
func (c *campaign) report() (stop func()) {
	over, ticker := make(chan struct{}), time.NewTicker(progress)
	var reporting sync.WaitGroup
	reporting.Go(func() {
		defer ticker.Stop()
		for {
			select {
			case <-over:
				return
			case <-c.ended:
				signal.Reset(os.Interrupt, syscall.SIGTERM)
				c.end()
				fmt.Println("the campaign ends with the parts that are running")
			case <-ticker.C:
				fmt.Println(c.counts()) // at once, unlike the log of a test
			}
		}
	})
	return func() {
		signal.Stop(c.ended)
		close(over)
		reporting.Wait()
		fmt.Println(c.tally.Hits.table())
		fmt.Println(c.counts())
	}
}

// end makes take return no more seeds.
func (c *campaign) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = c.next - 1
}

func (c *campaign) counts() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.tally
	speed := float64(all.Seeds) / time.Since(c.begun).Seconds()
	return fmt.Sprintf("%d of seeds %d to %d: %d failed %v, %d requests, %d holds, %d faults, %.1f seeds per second",
		all.Seeds, c.first, c.last, len(all.Failed), all.Failed, all.Requests, all.Holds, all.Faults, speed)
}
