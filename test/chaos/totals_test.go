package chaos

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// totals are the numbers of a siege.
type totals struct {
	mu        sync.Mutex
	ensembles map[string]int // by the number of servers
	rounds    int
	grants    map[string]int // by kind
	lost      int            // of those
	writes    int            // with the token of a hold
	faults    map[string]int // by name
	recovery  time.Duration  // the longest
	added     int            // to counters
	unknown   int            // additions of unknown outcome
	limits    int            // changes of the limit
	events    int            // of caches
	versions  int            // of nodes that caches have shown
	marks     int            // created or deleted
	told      int            // events of marks
	gaps      int            // that persistent watches told
	history   string         // of an ensemble that failed
}

func newTotals() *totals {
	return &totals{ensembles: map[string]int{}, grants: map[string]int{}, faults: map[string]int{}}
}

func (s *totals) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *totals) fault(name string) { s.set(func() { s.faults[name]++ }) }

func (s *totals) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("ensembles: %s; %d rounds; grants: %s, %d of them lost; %d guarded writes; "+
		"%d additions and %d unknown; %d changes of the limit; caches: %d events, %d versions of nodes; "+
		"persistent watches: %d events of %d changes, %d gaps; faults: %s; longest recovery %v",
		counts(s.ensembles), s.rounds, counts(s.grants), s.lost, s.writes, s.added, s.unknown, s.limits, s.events,
		s.versions, s.told, s.marks, s.gaps, counts(s.faults), s.recovery.Round(time.Millisecond))
}

func counts(of map[string]int) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		all = append(all, fmt.Sprintf("%d %s", of[name], name))
	}
	return cmp.Or(strings.Join(all, ", "), "none")
}

// verdict returns the line that ends a siege.
func (s *totals) verdict(seed uint64, failed bool) string {
	if failed {
		return fmt.Sprintf("siege FAILED with seed %d, the history is in %s; %v", seed, cmp.Or(s.history, "no file"), s)
	}
	return fmt.Sprintf("siege passed with seed %d; %v", seed, s)
}

func TestVerdictIsOneLineWithTheSeedAndTheCounts(t *testing.T) {
	s := newTotals()
	s.set(func() { s.ensembles["of 3"], s.rounds, s.recovery = 2, 7, 1500*time.Millisecond })
	s.fault("leader killed")
	passed := s.verdict(42, false)
	for _, part := range []string{
		"passed", "seed 42", "2 of 3", "7 rounds", "1 leader killed", "longest recovery 1.5s",
	} {
		require.Contains(t, passed, part)
	}
	s.history = "/where/history.jsonl"
	failed := s.verdict(42, true)
	require.Contains(t, failed, "FAILED with seed 42, the history is in /where/history.jsonl")
	require.NotContains(t, passed+failed, "\n")
}
