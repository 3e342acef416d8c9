package main

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/test/bench/hist"
	"github.com/docent-zk/docent/test/bench/peer"
	"github.com/docent-zk/docent/test/bench/report"
)

// fixture has fake peers and servers, and what has happened to them.
type fixture struct {
	happened []string
	zxid     int64
}

func (s *fixture) note(format string, args ...any) {
	s.happened = append(s.happened, fmt.Sprintf(format, args...))
}

func (s *fixture) servers(string) string                          { return "somewhere" }
func (s *fixture) commits(context.Context, string) (int64, error) { return s.zxid, nil }
func (s *fixture) received(context.Context) (int64, error)        { return s.zxid, nil }
func (s *fixture) kill() error                                    { s.note("kill"); return nil }
func (s *fixture) revive(context.Context) error                   { return nil }

// fakePeer is a fake peer.
type fakePeer struct {
	*fixture
	perOp   int64 // number of transactions
	result  peer.Result
	refusal error // the error of open
	runErr  error // the error of run
}

func (a *fakePeer) open(job string, _ peer.Job) error {
	a.note("open %s", job)
	return a.refusal
}

func (a *fakePeer) close(job string) error {
	a.note("close %s", job)
	return nil
}

func (a *fakePeer) run(job string, long time.Duration) (peer.Result, error) {
	a.note("%s %v", job, long)
	a.zxid += a.perOp * a.result.Ops
	return a.result, a.runErr
}

func did(ops int64) peer.Result {
	r := peer.Result{Ops: ops, Took: time.Second, Latencies: &hist.Histogram{}}
	for range ops {
		r.Latencies.Record(time.Millisecond)
	}
	return r
}

// perform measures the peers, in the order of their names.
func perform(t *testing.T, s *fixture, w workload, peers map[string]*fakePeer,
	order ...string) map[string]*report.Series {
	t.Helper()
	m := &measurer{setting: "fixture", peers: map[string]contender{}, place: s,
		effort: effort{rounds: 2, few: 1, long: time.Second}}
	for _, name := range order {
		if a := peers[name]; a != nil {
			a.fixture = s
			m.peers[name] = a
		}
		w.entries = append(w.entries, alone(name, peer.Job{}))
	}
	all, err := m.measure(t.Context(), w)
	require.NoError(t, err)
	found := map[string]*report.Series{}
	for _, one := range all {
		found[one.Label] = one
	}
	return found
}

func TestPeersTakeTurnsAndTheFirstRoundDoesNotCount(t *testing.T) {
	s := &fixture{zxid: 1}
	found := perform(t, s, workload{commits: 2}, map[string]*fakePeer{
		"a": {perOp: 2, result: did(1)}, "b": {perOp: 2, result: did(2)}, "c": {perOp: 2, result: did(3)},
	}, "a", "b", "c")
	require.Equal(t, []string{
		"open a", "open b", "open c",
		"a 3s", "b 3s", "c 3s",
		"c 1s", "b 1s", "a 1s",
		"b 1s", "c 1s", "a 1s",
		"close a", "close b", "close c",
	}, s.happened)
	for _, one := range found {
		require.Len(t, one.Rounds, 2)
		require.Empty(t, one.Reason)
	}
}

func TestPeerThatDoesNotDoItsPartIsReported(t *testing.T) {
	overlapping := did(5)
	overlapping.Overlaps = 1
	s := &fixture{zxid: 1}
	found := perform(t, s, workload{commits: 2}, map[string]*fakePeer{
		"good":        {perOp: 2, result: did(5)},
		"idle":        {result: did(0)},
		"inflated":    {perOp: 1, result: did(5)},
		"broken":      {perOp: 2, result: overlapping},
		"failing":     {perOp: 2, result: did(5), runErr: errors.New("dead")},
		"unsupported": {refusal: errUnsupported},
	}, "idle", "inflated", "broken", "failing", "unsupported", "absent", "good")
	for name, reason := range map[string]string{
		"idle": "did nothing", "inflated": "reports 5 operations, and the servers 5 transactions",
		"broken": "1 times two threads held a lock at once", "failing": "dead", "unsupported": "not supported",
		"absent": "not there",
	} {
		require.Equal(t, reason, found[name].Reason, name)
		require.Empty(t, found[name].Rounds, name)
	}
	require.Len(t, found["good"].Rounds, 2, "errors of other peers must not affect this one")
	require.Empty(t, found["good"].Reason)
}

func TestWhatTakesLongIsDoneAFewTimesAndCounts(t *testing.T) {
	s := &fixture{}
	found := perform(t, s, workload{once: 3, alone: true, storm: true},
		map[string]*fakePeer{"a": {result: did(1)}, "b": {result: did(1)}}, "a", "b")
	require.Equal(t, []string{"open a", "kill", "a 1s", "close a", "open b", "kill", "b 1s", "close b"}, s.happened)
	require.Len(t, found["a"].Rounds, 1)
}

func TestInterruptionEndsMeasuring(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := &fixture{}
	m := &measurer{peers: map[string]contender{"a": &fakePeer{fixture: s, result: did(1)}}, place: s,
		effort: effort{rounds: 1}}
	_, err := m.measure(ctx, workload{entries: []entry{alone("a", peer.Job{})}})
	require.ErrorIs(t, err, context.Canceled)
}

// few is small sizes of workloads.
var few = many{paths: 10, sessions: 3}

func TestEverySettingMeasuresTheMutexFirst(t *testing.T) {
	for _, s := range settings {
		require.Equal(t, "mutex", plan(s, few)[0].name, "the hold time of other workloads depends on it")
		require.Equal(t, "floor", plan(s, few)[0].entries[0].label)
	}
}

func TestOnlyHandOversHoldTheirLocks(t *testing.T) {
	for _, w := range plan(settings[0], few) {
		for _, e := range w.holding(time.Second).entries {
			require.Equal(t, w.name == report.Handover(2) || w.name == report.Handover(16), e.job.Hold > 0, w.name)
		}
	}
}

func TestAcquireIsACreateAndAListAndAHandOverTakesNoRequest(t *testing.T) {
	r, err := exactRequests(t.Context())
	require.NoError(t, err)
	for end := time.Now().Add(testzk.Patience); r.RoundTrips >= 2 && time.Now().Before(end); { // on a busy machine
		r.RoundTrips, err = roundTrips(t.Context())
		require.NoError(t, err)
	}
	require.GreaterOrEqual(t, r.RoundTrips, 1.0)
	require.Less(t, r.RoundTrips, 2.0, "the list waits for the answer to the create")
	r.RoundTrips = 0
	require.Equal(t, report.Requests{Acquire: 2, Release: 1, HandOver: 0}, r)
}

func TestEachPeerComesBehindEachOther(t *testing.T) {
	for n, rounds := range map[int]int{1: 2, 2: 2, 3: 6, 4: 4, 5: 10, 6: 6} {
		behind, places := map[[2]int]int{}, map[[2]int]int{}
		for round := range rounds {
			all := order(n, round)
			require.Len(t, all, n)
			for place, peer := range all {
				places[[2]int{place, peer}]++
				if place > 0 {
					behind[[2]int{all[place-1], peer}]++
				}
			}
		}
		require.Len(t, places, n*n)
		require.Len(t, behind, n*(n-1))
		for _, times := range places {
			require.Equal(t, rounds/n, times, n)
		}
		for _, times := range behind {
			require.Equal(t, rounds/n, times, n)
		}
	}
}
