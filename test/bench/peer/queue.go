package peer

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/docent-zk/docent/test/bench/hist"
)

// queue lets many threads of one client wait for one lock, and then acquire and release it one
// after the other. It measures the time of these hand-overs. Only the latencies of the first
// twentieth count, because the queue is then about as long as the job requires.
type queue struct {
	job    Job
	client client
	locks  []lock
}

// counted returns the number of hand-overs in a queue that is about as long as at the beginning.
func (q *queue) counted() int { return max(len(q.locks)/20, 10) }

func newQueue(ctx context.Context, s system, job Job) (running, error) {
	c, err := s.connect(ctx, job.Servers)
	if err != nil {
		return nil, err
	}
	q := &queue{job: job, client: c}
	for range job.Threads + 1 {
		one, err := c.lock(job.Kind, job.Path)
		if err != nil {
			c.close()
			return nil, err
		}
		q.locks = append(q.locks, one)
	}
	return q, nil
}

func (q *queue) close() { q.client.close() }

// run fills and empties the queue, repeatedly while there is time.
func (q *queue) run(ctx context.Context, long time.Duration) (Result, error) {
	r := Result{Latencies: &hist.Histogram{}, Figures: map[string]float64{}}
	for began := time.Now(); r.Ops == 0 || time.Since(began) < long; {
		if err := q.once(ctx, &r); err != nil {
			return r, err
		}
	}
	return r, nil
}

func (q *queue) once(ctx context.Context, r *Result) error {
	if err := q.locks[0].acquire(ctx); err != nil {
		return err
	}
	empty := steady()
	var left, turn atomic.Int64 // time of the last call of release, and number of hand-overs
	began := time.Now()
	errs := make([]error, len(q.locks))
	var waiting sync.WaitGroup
	for i, one := range q.locks[1:] {
		waiting.Go(func() {
			if errs[i] = one.acquire(ctx); errs[i] != nil {
				return
			}
			now := time.Since(began)
			if turn.Add(1) <= int64(q.counted()) { // one at a time
				r.Latencies.Record(now - time.Duration(left.Load()))
			}
			left.Store(int64(time.Since(began)))
			errs[i] = one.release()
		})
	}
	if err := filled(ctx, q.client, q.job.Path, len(q.locks), roundTrips); err != nil {
		return err
	}
	r.Figures["fill"] = time.Since(began).Seconds()
	r.Figures["heap"] = float64(steady().heap-empty.heap) / float64(len(q.locks))
	start := time.Now()
	left.Store(int64(time.Since(began)))
	err := q.locks[0].release()
	waiting.Wait()
	r.Took += time.Since(start)
	r.Ops += int64(len(q.locks) - 1)
	return errors.Join(append(errs, err)...)
}

// roundTrips is more than a client with a node needs until it does nothing but wait.
const roundTrips = 20

// filled waits until n nodes are in the queue, and then for some round trips.
func filled(ctx context.Context, c client, path string, n, trips int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for behind := 0; behind < trips; {
		there, err := c.children(ctx, path)
		if err != nil {
			return err
		}
		if there < n {
			time.Sleep(time.Millisecond)
			continue
		}
		// The requests of one connection are answered in order, so each of these follows all that
		// the waiters had sent by then.
		behind++
	}
	return nil
}

// footprint is the memory and the goroutines of a process.
type footprint struct {
	heap       uint64 // bytes
	stack      uint64 // bytes
	goroutines int
}

func weigh() footprint {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // frees what the first run left in pools
	runtime.ReadMemStats(&m)
	return footprint{m.HeapAlloc, m.StackInuse, runtime.NumGoroutine()}
}

// steady returns the footprint once it no longer changes.
func steady() footprint {
	before := weigh()
	for range 50 {
		time.Sleep(50 * time.Millisecond)
		now := weigh()
		change := max(before.heap, now.heap) - min(before.heap, now.heap)
		if before.goroutines == now.goroutines && change < now.heap/200 {
			return now
		}
		before = now
	}
	return before
}
