package peer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/test/bench/hist"
	"github.com/docent-zk/docent/zktest"
)

const shortly = 30 * time.Millisecond

func TestGoPeersDoTheirJobs(t *testing.T) {
	kinds := []string{"mutex", "read", "write", "semaphore", "semaphore-mutex", "multi", "handoff"}
	jobs := map[string][]Job{
		"floor": {{Name: "watch", Clients: 3, Hold: 100}, {Name: "loop", Kind: "mutex", Clients: 1, Threads: 4},
			{Name: "loop", Kind: "multi", Clients: 1, Threads: 1}},
		"zk.Lock": {{Name: "loop", Kind: "mutex", Clients: 3, Threads: 1, Shared: true},
			{Name: "queue", Kind: "mutex", Threads: 20},
			{Name: "waiting", Kind: "mutex", Threads: 5}, {Name: "storm", Kind: "mutex", Clients: 3}},
		"docent": {{Name: "loop", Kind: "mutex", Clients: 3, Threads: 1, Shared: true, Hold: 100},
			{Name: "queue", Kind: "mutex", Threads: 20},
			{Name: "loop", Kind: "mixed", Clients: 12, Threads: 1, Shared: true},
			{Name: "loop", Kind: "handoff", Clients: 1, Threads: 4, Shared: true},
			{Name: "held", Kind: "mutex", Threads: 5}, {Name: "waiting", Kind: "mutex", Threads: 5},
			{Name: "loop", Kind: "mutex", Clients: 1, Threads: 2, Fresh: FreshPath},
			{Name: "loop", Kind: "mutex", Clients: 1, Threads: 2, Fresh: FreshValue},
			{Name: "paths", Kind: "mutex", Threads: 20}, {Name: "idle", Clients: 3},
			{Name: "storm", Kind: "mutex", Clients: 3}},
	}
	for _, kind := range kinds {
		jobs["docent"] = append(jobs["docent"], Job{Name: "loop", Kind: kind, Clients: 1, Threads: 2})
	}
	srv := zktest.Start(t)
	for name, all := range jobs {
		for i, job := range all {
			t.Run(name+" "+job.Name+" "+job.Kind, func(t *testing.T) {
				job.Servers, job.Path = srv.Addr(), "/"+name+string(rune('a'+i))
				r := done(t, systems[name], job)
				require.Positive(t, r.Ops)
				require.Positive(t, r.Took)
				require.Zero(t, r.Overlaps)
				if job.Name == "loop" && !job.Shared {
					require.Equal(t, r.Ops, r.Latencies.Count(), "all operations are measured")
				}
			})
		}
	}
}

// Each turn of such a loop creates a directory, also in later runs.
func TestFreshPathsAreNeverUsedBefore(t *testing.T) {
	srv := zktest.Start(t)
	open, err := start(t.Context(), docent{}, Job{Name: "loop", Kind: "mutex", Servers: srv.Addr(), Path: "/paths",
		Clients: 1, Threads: 2, Fresh: FreshPath}.String())
	require.NoError(t, err)
	defer open.close()
	var ops int64
	for range 2 {
		r, err := open.run(t.Context(), shortly)
		require.NoError(t, err)
		require.Positive(t, r.Ops)
		ops += r.Ops
	}
	made := 0
	for i := range 2 {
		children, err := srv.Children(fmt.Sprint("/paths/", i))
		require.NoError(t, err)
		made += len(children)
	}
	require.EqualValues(t, ops, made)
}

func TestFloorOfHandingOverIsMeasuredAcrossServersThatLag(t *testing.T) {
	srv := zktest.Start(t)
	follower := srv.Follower(shortly)
	near, err := driver{}.connect(t.Context(), srv.Addr())
	require.NoError(t, err)
	defer near.close()
	far, err := driver{}.connect(t.Context(), follower.Addr())
	require.NoError(t, err)
	defer far.close()
	var latencies hist.Histogram
	w := &watch{job: Job{Path: "/bench"}}
	require.NoError(t, w.once(near.(watcher), far.(watcher), &latencies))
	require.GreaterOrEqual(t, latencies.Quantile(1), shortly/2, "the event is delayed, too")
}

// done runs a job and returns its result.
func done(t *testing.T, s system, job Job) Result {
	t.Helper()
	open, err := start(t.Context(), s, job.String())
	require.NoError(t, err)
	defer open.close()
	r, err := open.run(t.Context(), shortly)
	require.NoError(t, err)
	return r
}

// careless is a system with locks that do not exclude, or that fail.
type careless struct{ err error }

func (c careless) version() string                                 { return "careless" }
func (c careless) connect(context.Context, string) (client, error) { return c, nil }
func (c careless) lock(string, string) (lock, error)               { return c, nil }
func (c careless) children(context.Context, string) (int, error)   { return 0, nil }
func (c careless) close()                                          {}
func (c careless) acquire(context.Context) error                   { return c.err }
func (c careless) release() error                                  { return nil }

func TestTwoInOneLockAreNoticed(t *testing.T) {
	require.Positive(t, done(t, careless{}, Job{Name: "loop", Kind: "mutex", Clients: 2, Threads: 1, Shared: true,
		Hold: 1000}).Overlaps)
}

func TestOwnLocksAreNoOverlaps(t *testing.T) {
	require.Zero(t, done(t, careless{}, Job{Name: "loop", Kind: "mutex", Clients: 1, Threads: 2, Hold: 1000}).Overlaps)
}

func TestHandOversOfThoseOnlyWhoWaitedAreMeasured(t *testing.T) {
	r := done(t, careless{}, Job{Name: "loop", Kind: "mutex", Clients: 1, Threads: 1, Shared: true})
	require.Positive(t, r.Ops)
	require.Zero(t, r.Latencies.Count(), "a free lock has no waiters")
}

func TestFailureIsTheResult(t *testing.T) {
	broken := errors.New("broken")
	open, err := start(t.Context(), careless{broken}, Job{Name: "loop", Kind: "mutex", Clients: 1, Threads: 1}.String())
	require.NoError(t, err)
	_, err = open.run(t.Context(), shortly)
	require.ErrorIs(t, err, broken)
}

func TestServeAnswersEachLine(t *testing.T) {
	srv := zktest.Start(t)
	in := strings.Join([]string{
		"open 1 job=loop kind=mutex clients=1 threads=1 path=/a servers=" + srv.Addr(), "run 1 1", "close 1", "run 1 1",
		"open 2 job=loop kind=other clients=1 threads=1 path=/a servers=" + srv.Addr(), "open 3 job=loop clients=x",
		"nonsense",
	}, "\n")
	var out bytes.Buffer
	require.NoError(t, Serve(t.Context(), "floor", strings.NewReader(in), &out))
	var heads []string
	for line := range strings.Lines(out.String()) {
		heads = append(heads, strings.Fields(line)[0])
	}
	require.Equal(t, []string{"ready", "opened", "ran", "closed", "failed", "unsupported", "failed", "failed"}, heads)
	require.Error(t, Serve(t.Context(), "nobody", strings.NewReader(""), &out))
}

func TestWhatIsToldIsRead(t *testing.T) {
	job := Job{"loop", "a:1,b:2", "/bench/x", "mutex", 2, 3, true, 4, FreshPath}
	read, err := ParseJob(job.String())
	require.NoError(t, err)
	require.Equal(t, job, read)
	result := Result{12, 34, 56, &hist.Histogram{}, map[string]float64{"heap": 1.5}}
	result.Latencies.Record(time.Second)
	again, err := ParseResult(result.String())
	require.NoError(t, err)
	require.Equal(t, result, again)
	for _, bad := range []string{"", "ops=1", "ops=x hist=", "hist=x"} {
		_, err := ParseResult(bad)
		require.Error(t, err, bad)
	}
}
