// Package measure has measurements that the modules of this repository make alike.
package measure

import (
	"errors"
	"time"

	"github.com/docent-zk/docent/framework/metrics"
	"github.com/docent-zk/docent/recipes"
)

// Foreign is the recipe of locks of other services in measurements: see recipes.ForeignHold.
const Foreign = "foreign"

// Acquire calls acquire, which acquires a lock of another service, and records how long it takes. The
// Waiter is for its goroutine. m may be nil. Metrics are code of the program. If they panic or end the
// goroutine, Acquire releases the hold, which no caller receives.
func Acquire(
	m metrics.Metrics, lock string, acquire func(*Waiter) (*recipes.Hold, error),
) (hold *recipes.Hold, err error) {
	begun, w, recorded := time.Now(), Waiter{metrics: m, lock: lock}, false
	defer func() {
		if !recorded && hold != nil {
			_ = hold.Release()
		}
	}()
	defer w.end()
	hold, err = acquire(&w)
	w.end()
	wait(m, lock, begun, err)
	recorded = true
	return hold, err
}

// wait records how long an acquire took, which ends now with err.
func wait(m metrics.Metrics, lock string, begun time.Time, err error) {
	if m == nil {
		return
	}
	labels := metrics.Labels{Recipe: Foreign, Path: lock, Outcome: metrics.OutcomeAcquired}
	switch {
	case errors.Is(err, recipes.ErrNotAcquired):
		labels.Outcome = metrics.OutcomeNotAcquired
	case err != nil:
		labels.Outcome = metrics.OutcomeFailed
	}
	m.Record(metrics.LockWait, time.Since(begun), labels)
}

// Waiter counts an acquire that waits for other holders. It is for one goroutine.
type Waiter struct {
	metrics metrics.Metrics
	lock    string
	counted bool
}

// Begin counts the acquire from now on until it ends, unless it is counted.
func (w *Waiter) Begin() {
	if !w.counted {
		w.counted = true
		w.add(1)
	}
}

// end counts the acquire no longer.
func (w *Waiter) end() {
	if w.counted {
		w.counted = false
		w.add(-1)
	}
}

func (w *Waiter) add(n int64) {
	if w.metrics != nil {
		w.metrics.Add(metrics.LockWaiters, n, metrics.Labels{Recipe: Foreign, Path: w.lock})
	}
}
