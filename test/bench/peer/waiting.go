package peer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// waiting measures the memory of waiting acquires of one client. Each waits for another lock, and a
// second client holds all of them.
type waiting struct {
	job     Job
	clients clients
}

func newWaiting(ctx context.Context, s system, job Job) (running, error) {
	all, err := connect(ctx, s, job, 2)
	return &waiting{job, all}, err
}

func (w *waiting) close() { w.clients.close() }

func (w *waiting) run(ctx context.Context, _ time.Duration) (Result, error) {
	theirs, err := several(w.clients[0], w.job, w.job.Threads)
	if err != nil {
		return Result{}, err
	}
	ours, err := several(w.clients[1], w.job, w.job.Threads)
	if err != nil {
		return Result{}, err
	}
	if err := errors.Join(ours[0].acquire(ctx), ours[0].release()); err != nil { // allocates what all locks share
		return Result{}, err
	}
	if err := inParallel(theirs, func(l lock) error { return l.acquire(ctx) }); err != nil {
		return Result{}, err
	}
	time.Sleep(settling)
	return w.weigh(ctx, theirs, ours)
}

func (w *waiting) weigh(ctx context.Context, theirs, ours []lock) (Result, error) {
	empty := steady()
	errs := make([]error, len(ours)+2)
	var running sync.WaitGroup
	for i, one := range ours {
		running.Go(func() {
			if errs[i] = one.acquire(ctx); errs[i] == nil {
				errs[i] = one.release()
			}
		})
	}
	for i := range ours {
		trips := 1
		if i == len(ours)-1 {
			trips = roundTrips
		}
		if err := filled(ctx, w.clients[1], fmt.Sprint(w.job.Path, "/", i), 2, trips); err != nil {
			return Result{}, err
		}
	}
	r := compare(empty, steady(), len(ours))
	began := time.Now()
	errs[len(ours)] = inParallel(theirs, lock.release)
	running.Wait()
	r.Took = time.Since(began)
	return r, errors.Join(errs...)
}
