package peer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/docent-zk/docent/test/bench/hist"
)

// held measures the memory of locks that one client holds.
type held struct {
	job     Job
	clients clients
}

func newHeld(ctx context.Context, s system, job Job) (running, error) {
	all, err := connect(ctx, s, job, 1)
	return &held{job, all}, err
}

func (h *held) close() { h.clients.close() }

func (h *held) run(ctx context.Context, _ time.Duration) (Result, error) {
	locks, err := several(h.clients[0], h.job, 1+h.job.Threads)
	if err != nil {
		return Result{}, err
	}
	if err := errors.Join(locks[0].acquire(ctx), locks[0].release()); err != nil { // allocates what all locks share
		return Result{}, err
	}
	locks = locks[1:]
	empty := steady()
	began := time.Now()
	if err := inParallel(locks, func(l lock) error { return l.acquire(ctx) }); err != nil {
		return Result{}, err
	}
	took := time.Since(began)
	time.Sleep(settling)
	r := compare(empty, steady(), len(locks))
	r.Took = took
	return r, inParallel(locks, lock.release)
}

// settling is the time after which a hold allocates nothing more.
const settling = time.Second

// several returns n locks at different paths.
func several(c client, job Job, n int) (all []lock, err error) {
	for i := range n {
		one, err := c.lock(job.Kind, fmt.Sprint(job.Path, "/", i))
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// compare returns the memory of each of n things.
func compare(before, after footprint, n int) Result {
	each := func(before, after float64) float64 { return (after - before) / float64(n) }
	return Result{Ops: int64(n), Latencies: &hist.Histogram{}, Figures: map[string]float64{
		"heap":       each(float64(before.heap), float64(after.heap)),
		"stack":      each(float64(before.stack), float64(after.stack)),
		"goroutines": each(float64(before.goroutines), float64(after.goroutines)),
	}}
}

// inParallel calls do for all locks, for some at a time.
func inParallel(locks []lock, do func(lock) error) error {
	return times(32, len(locks), func(i int) error { return do(locks[i]) })
}

// times calls do with the numbers below n, in so many goroutines, each of which ends with an error.
func times(workers, n int, do func(i int) error) error {
	errs := make([]error, workers)
	var running sync.WaitGroup
	for w := range workers {
		running.Go(func() {
			for i := w; i < n && errs[w] == nil; i += workers {
				errs[w] = do(i)
			}
		})
	}
	running.Wait()
	return errors.Join(errs...)
}
