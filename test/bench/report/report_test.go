package report

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/test/bench/hist"
	"github.com/docent-zk/docent/test/bench/peer"
)

// rounds returns results with the given operations in a second, whose latencies add up to it.
func rounds(ops ...int64) (all []peer.Result) {
	for _, n := range ops {
		r := peer.Result{Ops: n, Took: time.Second, Latencies: &hist.Histogram{},
			Figures: map[string]float64{Processor: 0.1, peer.Allocated: 80 * float64(n)}}
		for range n {
			r.Latencies.Record(time.Second / time.Duration(n))
		}
		all = append(all, r)
	}
	return all
}

// sample is of a machine that was busy with something else during a part of the second and third
// round. The ratios of the rounds differ from the ratios of the medians.
func sample() *Report {
	return &Report{
		Facts: []Fact{{"date", "2001-02-03"}},
		Settings: []Setting{{Name: "memory", Servers: 1, Dir: "/dev/shm"},
			{Name: "disk", Servers: 1, Fsync: true, Absent: []string{"etcd: missing"}}},
		Series: []*Series{
			{"memory", "mutex", "floor", rounds(4000, 2000, 400), ""},
			{"memory", "mutex", "docent", rounds(3200, 400, 400), ""},
			{"memory", "mutex", "curator", rounds(1600, 100, 400), ""},
			{"memory", "mutex", "kazoo", nil, "did nothing"},
		},
		Requests: Requests{1, 2, 0, 1.01},
		Counts:   []Count{{"mutex", "docent", map[string]float64{"multi": 1, "delete": 1}}},
	}
}

func TestRatiosAreThoseOfTheRounds(t *testing.T) {
	r := sample()
	r.Series[2].Rounds = r.Series[2].Rounds[:2] // has no third round
	docent, curator := r.find("memory", "mutex", "docent"), r.find("memory", "mutex", "curator")
	require.Equal(t, []float64{2, 4}, ratios(docent, curator, throughput))
	require.Nil(t, ratios(docent, r.find("memory", "mutex", "kazoo"), throughput))
}

func TestTargetsAreMetOrNotOrUnknown(t *testing.T) {
	rows := sample().Targets().Rows
	require.Equal(t, []string{"mutex, uncontended", "p50 / floor", "≤ 1.25 ×", "1.25 ×", "**no**", "", ""}, rows[0])
	require.Equal(t, []string{"mutex, uncontended", "p50 / floor", "≤ 1.08 ×", "", "", "", ""}, rows[1], "of disk-3")
	require.Equal(t, []string{"mutex, uncontended", "throughput / curator", "≥ 1.00 ×", "2.00 ×", "yes", "", ""},
		rows[2])
	require.Equal(t, []string{"mutex, uncontended", "client's processor time / zk.Lock", "≤ 1.00 ×", "", "", "", ""},
		rows[3])
	require.Equal(t, []string{"mutex, uncontended", "allocations", "≤ 72", "80", "**no**", "", ""}, rows[4])
	found := map[string][]string{}
	for _, row := range rows {
		found[row[0]+": "+row[1]] = row[3:5]
	}
	require.Equal(t, []string{"1", "yes"}, found["requests: to acquire, uncontended, in one round trip"])
	require.Equal(t, []string{"2", "**no**"}, found["requests: to release"])
}

func TestPeerWithoutResultsHasAReason(t *testing.T) {
	tables := sample().Results("memory")
	require.Len(t, tables, 1)
	require.Equal(t, []string{"kazoo", "did nothing"}, tables[0].Rows[3])
	docent := tables[0].Rows[1]
	require.Equal(t, []string{"docent", "400", "2.50 ms", "2.50 ms", "0.80", "1.25", "2.00", "400 - 3200",
		"250 µs"}, docent)
}

func TestStormIsTimedFromWhenTheServerServes(t *testing.T) {
	r := rounds(1)[0]
	r.Figures["served"] = 0.75
	require.InDelta(t, 0.25, since(1)(r), 0.01)
}

func TestPageSaysEverything(t *testing.T) {
	folder := t.TempDir()
	stale := filepath.Join(folder, "benchmarks", "stale.svg")
	require.NoError(t, os.MkdirAll(filepath.Dir(stale), 0o755))
	require.NoError(t, os.WriteFile(stale, nil, 0o644))
	require.NoError(t, sample().Write(folder))
	page, err := os.ReadFile(filepath.Join(folder, "benchmarks.md"))
	require.NoError(t, err)
	for _, part := range []string{"- date: 2001-02-03", "| docent | 400 |", "| kazoo | did nothing |",
		"Left out: etcd: missing.",
		"one server, with fsync", "(benchmarks/memory-uncontended.svg)", "| mutex | docent | 2.0 | 1.0 delete, " +
			"1.0 multi |"} {
		require.Contains(t, string(page), part)
	}
	require.NotContains(t, string(page), "disk-uncontended.svg", "there is nothing to draw")
	drawn, err := os.ReadFile(filepath.Join(folder, "benchmarks", "memory-uncontended.svg"))
	require.NoError(t, err)
	require.Contains(t, string(drawn), "<svg")
	require.NoFileExists(t, stale)
}

func TestDurationsHaveThreeDigits(t *testing.T) {
	for seconds, want := range map[float64]string{2: "2.00 s", 0.0123: "12.3 ms", 0.00123: "1.23 ms",
		0.000123: "123 µs", 0.00000123: "1.23 µs"} {
		require.Equal(t, want, duration(seconds))
	}
}
