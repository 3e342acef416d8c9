package chaos

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// totals are the numbers of a siege.
type totals struct {
	mu        sync.Mutex
	ensembles map[string]int // by the number of servers
	givenUp   int            // because the servers had lost transactions
	repairs   int            // of servers that were killed while they wrote a file
	rounds    int
	grants    map[string]int // of valid holds, by kind
	kept      int            // sticky ones of them, of a node that the worker had kept
	lost      map[string]int // of holds, by kind
	writes    int            // with the token of a hold, that were accepted
	read      int            // of those and of unknown ones
	faults    map[string]int // that had an effect, by name
	tried     map[string]int
	elections int           // of servers that were cut
	recovery  time.Duration // the longest
	added     int           // to counters
	unknown   int           // additions of unknown outcome
	limits    int           // changes of the limit
	events    int           // of caches
	versions  int           // of nodes that caches have shown
	marks     int           // created or deleted
	told      int           // events of marks
	gaps      int           // that persistent watches told
	history   string        // of an ensemble that failed
}

func newTotals() *totals {
	return &totals{
		ensembles: map[string]int{}, grants: map[string]int{}, lost: map[string]int{}, faults: map[string]int{},
		tried: map[string]int{},
	}
}

func (s *totals) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *totals) fault(name string) { s.set(func() { s.faults[name]++ }) }

// faultCountLocked returns the number of faults that had an effect.
func (s *totals) faultCountLocked() int { return sum(s.faults) }

func sum(of map[string]int) (n int) {
	for _, count := range of {
		n += count
	}
	return n
}

// allLost reports whether no ensemble has kept all transactions.
func (s *totals) allLost() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.allLostLocked()
}

func (s *totals) allLostLocked() bool { return s.givenUp >= sum(s.ensembles) }

// manyTries is how often a fault may be tried without an effect.
const manyTries = 20

// isEmpty returns an error if the siege has shown little: there was no round, no ensemble has kept all
// transactions, or a kind of fault has never had an effect. Each round has grants of all kinds, and a
// fault.
func (s *totals) isEmpty() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := errors.Join(errorUnless(s.rounds > 0, "there was no round"),
		errorUnless(!s.allLostLocked(), "all ensembles have lost transactions"))
	for _, name := range slices.Sorted(maps.Keys(s.tried)) {
		err = errors.Join(err, errorUnless(s.faults[name] > 0 || s.tried[name] < manyTries,
			"%q was tried %d times and never had an effect", name, s.tried[name]))
	}
	return err
}

func (s *totals) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("ensembles: %s, %d given up because they lost transactions; "+
		"%d servers repaired that could not start; %d rounds; "+
		"%d grants: %s, %d sticky ones of a kept node; lost: %s; %d guarded writes, %d of them read; "+
		"%d additions and %d unknown; %d changes of the limit; caches: %d events, %d versions of nodes; "+
		"persistent watches: %d events of %d changes, %d gaps; %d faults of %d tried: %s; "+
		"%d elections of servers cut; longest recovery %v",
		counts(s.ensembles), s.givenUp, s.repairs, s.rounds, sum(s.grants), counts(s.grants), s.kept, counts(s.lost),
		s.writes, s.read, s.added, s.unknown, s.limits, s.events, s.versions, s.told, s.marks, s.gaps,
		s.faultCountLocked(), sum(s.tried), counts(s.faults), s.elections, s.recovery.Round(time.Millisecond))
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
	s.set(func() { s.ensembles["of 3"], s.repairs, s.rounds, s.recovery = 2, 3, 7, 1500*time.Millisecond })
	s.fault("leader killed")
	passed := s.verdict(42, false)
	for _, part := range []string{
		"passed", "seed 42", "2 of 3", "3 servers repaired", "7 rounds", "1 leader killed", "longest recovery 1.5s",
	} {
		require.Contains(t, passed, part)
	}
	require.NoError(t, s.isEmpty())
	s.tried["leader killed"], s.tried["leader frozen"] = 100, manyTries-1
	require.NoError(t, s.isEmpty())
	s.tried["leader frozen"]++
	require.ErrorContains(t, s.isEmpty(), `"leader frozen" was tried 20 times and never had an effect`)
	require.ErrorContains(t, newTotals().isEmpty(), "no round")
	s.givenUp = 2
	require.ErrorContains(t, s.isEmpty(), "all ensembles have lost transactions")
	s.history = "/where/history.jsonl"
	failed := s.verdict(42, true)
	require.Contains(t, failed, "FAILED with seed 42, the history is in /where/history.jsonl")
	require.NotContains(t, passed+failed, "\n")
}

func TestSiegeUsesMoreEnsemblesIfAllHaveLostTransactions(t *testing.T) {
	for name, row := range map[string]struct{ lost, fails, used int }{
		"none has lost any": {used: 3, fails: -1},
		"some have":         {lost: 2, used: 3, fails: -1},
		"all have":          {lost: 4, used: 5, fails: -1},
		"all, and more":     {lost: 100, used: 3 + moreEnsembles, fails: -1},
		"one fails":         {used: 2, fails: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				total, used, begun := newTotals(), 0, time.Now()
				siegeAll(25*time.Second, 10*time.Second, total, func(n int, until time.Time) bool {
					require.Equal(t, used, n)
					total.ensembles["of 3"]++
					if used++; used <= row.lost {
						total.givenUp++
					}
					require.Positive(t, time.Until(until))
					time.Sleep(time.Until(until))
					return n != row.fails
				})
				require.Equal(t, row.used, used)
				if row.lost == 0 && row.fails < 0 {
					require.Equal(t, 25*time.Second, time.Since(begun))
				}
			})
		})
	}
}
