package peer

import (
	"context"
	"errors"
	"fmt"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"github.com/docent-zk/docent/test/bench/hist"
)

// loop lets threads acquire and release repeatedly. With a lock for each thread it measures acquire
// and release together. With a shared lock it measures the time from the call of release until the
// next holder has the lock, if that waited by then.
type loop struct {
	job     Job
	clients clients
	threads []*thread
	began   time.Time
	left    atomic.Int64 // time of the last call of release, since began
	inside  atomic.Int32 // number of holders of the shared lock
	overlap atomic.Int64
}

// mix is for the threads of kind mixed: one operation in ten is a write.
const mix = 10

// thread has the locks of one thread.
type thread struct {
	client client
	path   string
	locks  []lock // used in turn
	turns  int    // number of turns so far, in all runs
}

func newLoop(ctx context.Context, s system, job Job) (running, error) {
	all, err := connect(ctx, s, job, job.Clients)
	if err != nil {
		return nil, err
	}
	l := &loop{job: job, clients: all, began: time.Now()}
	for i := range job.Clients * job.Threads {
		t := &thread{client: all[i/job.Threads], path: job.Path}
		if !job.Shared {
			t.path += fmt.Sprint("/", i)
		}
		if t.locks, err = newLocks(t.client, job.Kind, t.path, i); err != nil {
			all.close()
			return nil, err
		}
		l.threads = append(l.threads, t)
	}
	return l, nil
}

// newLocks returns the locks that thread number i uses in turn.
func newLocks(c client, kind, path string, i int) (all []lock, err error) {
	if kind != "mixed" {
		one, err := c.lock(kind, path)
		return []lock{one}, err
	}
	for turn := range mix {
		side := "read"
		if turn == i%mix {
			side = "write"
		}
		one, err := c.lock(side, path)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// next returns the lock of the next turn.
func (t *thread) next(job Job) (lock, error) {
	t.turns++
	switch job.Fresh {
	case FreshValue:
		return t.client.lock(job.Kind, t.path)
	case FreshPath:
		return t.client.lock(job.Kind, fmt.Sprint(t.path, "/", t.turns))
	}
	return t.locks[t.turns%len(t.locks)], nil
}

func (l *loop) close() { l.clients.close() }

// run ends when the time is over and all threads have released what they acquired or waited for.
func (l *loop) run(ctx context.Context, long time.Duration) (Result, error) {
	l.overlap.Store(0)
	l.left.Store(0)
	results := make([]Result, len(l.threads))
	errs := make([]error, len(l.threads))
	var running, ready sync.WaitGroup
	gate := make(chan struct{})
	for i, t := range l.threads {
		results[i].Latencies = &hist.Histogram{}
		ready.Add(1)
		running.Go(func() {
			ready.Done()
			<-gate
			errs[i] = l.turns(ctx, t, time.Now().Add(long), &results[i])
		})
	}
	ready.Wait()
	allocated, began := allocations(), time.Now()
	close(gate)
	running.Wait()
	sum := Result{Took: time.Since(began), Latencies: &hist.Histogram{}, Overlaps: l.overlap.Load(),
		Figures: map[string]float64{Allocated: float64(allocations() - allocated)}}
	for _, r := range results {
		sum.Ops += r.Ops
		sum.Latencies.Merge(r.Latencies)
	}
	return sum, errors.Join(errs...)
}

// allocations returns the number of allocations of the process so far.
func allocations() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:objects"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

func (l *loop) turns(ctx context.Context, t *thread, end time.Time, r *Result) error {
	for time.Now().Before(end) {
		if err := l.turn(ctx, t, r); err != nil {
			return err
		}
		r.Ops++
	}
	return nil
}

func (l *loop) turn(ctx context.Context, t *thread, r *Result) error {
	exclusive := l.job.Shared && l.job.Kind != "mixed" && l.job.Kind != Counter
	began := time.Since(l.began)
	one, err := t.next(l.job)
	if err != nil {
		return err
	}
	if err := one.acquire(ctx); err != nil {
		return err
	}
	if exclusive {
		if left := time.Duration(l.left.Load()); left > began {
			r.Latencies.Record(time.Since(l.began) - left)
		}
		if l.inside.Add(1) != 1 {
			l.overlap.Add(1)
		}
	}
	if l.job.Hold > 0 {
		time.Sleep(time.Duration(l.job.Hold) * time.Microsecond)
	}
	if exclusive {
		l.inside.Add(-1)
		l.left.Store(int64(time.Since(l.began)))
	}
	err = one.release()
	if !exclusive {
		r.Latencies.Record(time.Since(l.began) - began)
	}
	return err
}
