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
