package peer

import (
	"context"
	"errors"
	"fmt"
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
	locks   [][]lock // of each thread, which uses them in turn
	began   time.Time
	left    atomic.Int64 // time of the last call of release, since began
	inside  atomic.Int32 // number of holders of the shared lock
	overlap atomic.Int64
}

// mix is for the threads of kind mixed: one operation in ten is a write.
const mix = 10

func newLoop(ctx context.Context, s system, job Job) (running, error) {
	all, err := connect(ctx, s, job, job.Clients)
	if err != nil {
		return nil, err
	}
	l := &loop{job: job, clients: all, began: time.Now()}
	for i := range job.Clients * job.Threads {
		path := job.Path
		if !job.Shared {
			path += fmt.Sprint("/", i)
		}
		locks, err := newLocks(all[i/job.Threads], job.Kind, path, i)
		if err != nil {
			all.close()
			return nil, err
		}
		l.locks = append(l.locks, locks)
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

func (l *loop) close() { l.clients.close() }

// run ends when the time is over and all threads have released what they acquired or waited for.
func (l *loop) run(ctx context.Context, long time.Duration) (Result, error) {
	l.overlap.Store(0)
	l.left.Store(0)
	results := make([]Result, len(l.locks))
	errs := make([]error, len(l.locks))
	var running, ready sync.WaitGroup
	gate := make(chan struct{})
	for i := range l.locks {
		results[i].Latencies = &hist.Histogram{}
		ready.Add(1)
		running.Go(func() {
			ready.Done()
			<-gate
			errs[i] = l.turns(ctx, l.locks[i], time.Now().Add(long), &results[i])
		})
	}
	ready.Wait()
	began := time.Now()
	close(gate)
	running.Wait()
	sum := Result{Took: time.Since(began), Latencies: &hist.Histogram{}, Overlaps: l.overlap.Load()}
	for _, r := range results {
		sum.Ops += r.Ops
		sum.Latencies.Merge(r.Latencies)
	}
	return sum, errors.Join(errs...)
}

func (l *loop) turns(ctx context.Context, locks []lock, end time.Time, r *Result) error {
	for i := 0; time.Now().Before(end); i++ {
		if err := l.turn(ctx, locks[i%len(locks)], r); err != nil {
			return err
		}
		r.Ops++
	}
	return nil
}

func (l *loop) turn(ctx context.Context, one lock, r *Result) error {
	exclusive := l.job.Shared && l.job.Kind != "mixed" && l.job.Kind != Counter
	began := time.Since(l.began)
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
	err := one.release()
	if !exclusive {
		r.Latencies.Record(time.Since(l.began) - began)
	}
	return err
}
