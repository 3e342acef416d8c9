package queue

import (
	"errors"
	"time"

	"github.com/docent-zk/docent/framework/metrics"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/internal/ownership"
)

// addWaiters adds n to the number of acquires that wait.
func (l *Lock) addWaiters(n int64) {
	for _, labels := range l.labels {
		bridge.Of(l.Client).Metrics().Add(metrics.LockWaiters, n, labels)
	}
}

// recordEnd records the end of an acquire, and adds n waiters. Metrics are code of the program.
// If they panic or end the goroutine, recordEnd releases the hold, which no caller receives.
func (l *Lock) recordEnd(begun time.Time, n int64, hold **ownership.Hold, err *error) {
	recorded := false
	defer func() {
		if !recorded {
			_ = (*hold).Release()
		}
	}()
	if n != 0 {
		l.addWaiters(n)
	}
	l.recordWait(time.Since(begun), err)
	recorded = true
}

// recordWait records how long it took to acquire the lock, or to fail.
func (l *Lock) recordWait(took time.Duration, err *error) {
	for _, labels := range l.labels {
		switch {
		case *err == nil:
			labels.Outcome = metrics.OutcomeAcquired
		case errors.Is(*err, recipes.ErrNotAcquired):
			labels.Outcome = metrics.OutcomeNotAcquired
		default:
			labels.Outcome = metrics.OutcomeFailed
		}
		bridge.Of(l.Client).Metrics().Record(metrics.LockWait, took, labels)
	}
}
