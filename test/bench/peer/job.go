package peer

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/docent-zk/docent/test/bench/hist"
)

// Job is a workload with its parameters. Peers in all languages do the same for it.
type Job struct {
	// Name is loop, watch, queue, held, waiting, storm, paths or idle: see the files of these names.
	Name    string `word:"job"`
	Servers string `word:"servers"` // addresses, separated by commas
	Path    string `word:"path"`    // parent of the job's nodes, for this job only
	// Kind is that of the lock: mutex, read, write, semaphore, semaphore-mutex, multi, handoff, mixed; or
	// counter.
	Kind    string `word:"kind"`
	Clients int    `word:"clients"` // sessions
	// Threads or goroutines of each client. For some jobs it is the number of locks or waiters.
	Threads int  `word:"threads"`
	Shared  bool `word:"shared"` // all threads use one lock, rather than each its own
	Hold    int  `word:"hold"`   // how long a lock is held, in microseconds
	// Fresh is what is new in each turn of a loop: nothing, the value of the lock, or its path too.
	Fresh string `word:"fresh"`
}

// These are the values of Job.Fresh.
const (
	FreshValue = "value"
	FreshPath  = "path"
)

// Counter is the kind of job in which a number is incremented instead of a lock acquired. Nothing is
// released.
const Counter = "counter"

// String returns the job as a peer reads it: such as "job=loop kind=mutex". Zero fields are left
// out. ParseJob reads it.
func (j Job) String() string {
	var words []string
	values := reflect.ValueOf(j)
	for i := range values.NumField() {
		if value := values.Field(i); !value.IsZero() {
			words = append(words, fmt.Sprintf("%s=%v", values.Type().Field(i).Tag.Get("word"), value))
		}
	}
	return strings.Join(words, " ")
}

// Allocated is the figure of the process's allocations in a loop. Only peers in Go have it.
const Allocated = "allocated"

// Result is the measurement of a peer in one run of a job.
type Result struct {
	Ops       int64           // how often a lock was acquired and released
	Took      time.Duration   // time for all operations
	Overlaps  int64           // how often two threads held an exclusive lock
	Latencies *hist.Histogram // the durations that the job measures
	Figures   map[string]float64
}

func (r Result) String() string {
	words := []string{fmt.Sprintf("ops=%d nanos=%d overlaps=%d hist=%v", r.Ops, r.Took, r.Overlaps, r.Latencies)}
	for name, value := range r.Figures {
		words = append(words, fmt.Sprintf("%s=%g", name, value))
	}
	return strings.Join(words, " ")
}

// pairs returns the words of a line, each a key and a value.
func pairs(words string) map[string]string {
	all := map[string]string{}
	for word := range strings.FieldsSeq(words) {
		key, value, _ := strings.Cut(word, "=")
		all[key] = value
	}
	return all
}

// ParseJob reads the output of Job.String.
func ParseJob(words string) (j Job, err error) {
	all := pairs(words)
	number := func(key string) (n int) {
		if err == nil && all[key] != "" {
			n, err = strconv.Atoi(all[key])
		}
		return n
	}
	j = Job{
		Name: all["job"], Servers: all["servers"], Path: all["path"], Kind: all["kind"],
		Shared: all["shared"] == "true", Fresh: all["fresh"],
		Clients: number("clients"), Threads: number("threads"), Hold: number("hold"),
	}
	return j, err
}

// ParseResult reads the output of Result.String.
func ParseResult(words string) (Result, error) {
	r := Result{Figures: map[string]float64{}}
	for key, value := range pairs(words) {
		if key == "hist" {
			var err error
			if r.Latencies, err = hist.Parse(value); err != nil {
				return Result{}, err
			}
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return Result{}, fmt.Errorf("result: %s: %w", key, err)
		}
		r.Figures[key] = n
	}
	if r.Latencies == nil {
		return Result{}, fmt.Errorf("result without latencies: %q", words)
	}
	r.Ops, r.Took, r.Overlaps = int64(r.Figures["ops"]), time.Duration(r.Figures["nanos"]), int64(r.Figures["overlaps"])
	for _, name := range []string{"ops", "nanos", "overlaps"} {
		delete(r.Figures, name)
	}
	return r, nil
}
