// Package report measures the acquires of locks, and warns of long waits. It is above the
// queue and the hand-off: what it does has no effect on an acquire.
package report

import (
	"context"
	"errors"
	"time"

	"github.com/docent-zk/docent/framework/metrics"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/internal/ownership"
	"github.com/docent-zk/docent/recipes/internal/queue"
)

// Acquirer acquires a lock: a queue.Lock, or a hand-off.
type Acquirer interface {
	// Acquire waits for the lock.
	Acquire(ctx context.Context, observer queue.Observer) (*ownership.Hold, error)
	// Try does not wait for other holders.
	Try(ctx context.Context) (*ownership.Hold, error)
}

// Reporter reports the acquires of one lock. It is safe for concurrent use.
type Reporter struct {
	lock         *queue.Lock
	labels       []metrics.Labels // one for each path
	warnings     bool             // a long wait logs warnings
	waitWarnings rateLimit
	first        func(ctx context.Context, own queue.OwnNodes) (recipes.Participant, error)
}

// New returns the Reporter of a lock.
func New(lock *queue.Lock) *Reporter {
	r := &Reporter{lock: lock, warnings: true}
	for _, path := range lock.Paths {
		r.labels = append(r.labels, metrics.Labels{Recipe: lock.Recipe, Path: path})
	}
	r.first = r.readFirst
	return r
}

// Standby makes a long wait normal, which logs no warning. It returns r.
func (r *Reporter) Standby() *Reporter {
	r.warnings = false
	return r
}

// NameHolders makes warnings name the participant that holder returns, instead of the first node
// of the queue. It returns r.
func (r *Reporter) NameHolders(holder func(ctx context.Context) (recipes.Participant, error)) *Reporter {
	r.first = func(ctx context.Context, _ queue.OwnNodes) (recipes.Participant, error) { return holder(ctx) }
	return r
}

// Acquire acquires the lock by lock.Acquire.
func (r *Reporter) Acquire(ctx context.Context, lock Acquirer) (hold *ownership.Hold, err error) {
	r.addWaiters(1)
	defer r.recordEnd(time.Now(), -1, &hold, &err)
	warner := r.newWaitWarner(ctx)
	defer warner.stop()
	return lock.Acquire(ctx, warner)
}

// Try acquires the lock by lock.Try.
func (r *Reporter) Try(ctx context.Context, lock Acquirer) (hold *ownership.Hold, err error) {
	return r.Do(func() (*ownership.Hold, error) { return lock.Try(ctx) })
}

// Do acquires the lock by a function that does not wait for other holders.
func (r *Reporter) Do(acquire func() (*ownership.Hold, error)) (hold *ownership.Hold, err error) {
	defer r.recordEnd(time.Now(), 0, &hold, &err)
	return acquire()
}

// addWaiters adds n to the number of acquires that wait.
func (r *Reporter) addWaiters(n int64) {
	for _, labels := range r.labels {
		bridge.Of(r.lock.Client).Metrics().Add(metrics.LockWaiters, n, labels)
	}
}

// recordEnd records the end of an acquire, and adds n waiters. Metrics are code of the program. If
// they panic or end the goroutine, recordEnd releases the hold, which no caller receives.
func (r *Reporter) recordEnd(begun time.Time, n int64, hold **ownership.Hold, err *error) {
	recorded := false
	defer func() {
		if !recorded {
			_ = (*hold).Release()
		}
	}()
	if n != 0 {
		r.addWaiters(n)
	}
	r.recordWait(time.Since(begun), *err)
	recorded = true
}

// recordWait records how long it took to acquire the lock, or to fail.
func (r *Reporter) recordWait(took time.Duration, err error) {
	for _, labels := range r.labels {
		switch {
		case err == nil:
			labels.Outcome = metrics.OutcomeAcquired
		case errors.Is(err, recipes.ErrNotAcquired):
			labels.Outcome = metrics.OutcomeNotAcquired
		default:
			labels.Outcome = metrics.OutcomeFailed
		}
		bridge.Of(r.lock.Client).Metrics().Record(metrics.LockWait, took, labels)
	}
}
