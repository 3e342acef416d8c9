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

// Wait records how long an acquire of a lock of another service took, which ends now with err. m may
// be nil.
func Wait(m metrics.Metrics, lock string, begun time.Time, err error) {
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

// Waiter counts an acquire of a lock of another service that waits for other holders. Metrics may be
// nil. It is for one goroutine.
type Waiter struct {
	Metrics metrics.Metrics
	Lock    string

	counted bool
}

// Begin counts the acquire from now on, unless it is counted.
func (w *Waiter) Begin() {
	if !w.counted {
		w.counted = true
		w.add(1)
	}
}

// End counts the acquire no longer.
func (w *Waiter) End() {
	if w.counted {
		w.counted = false
		w.add(-1)
	}
}

func (w *Waiter) add(n int64) {
	if w.Metrics != nil {
		w.Metrics.Add(metrics.LockWaiters, n, metrics.Labels{Recipe: Foreign, Path: w.Lock})
	}
}
