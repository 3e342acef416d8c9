package queue

import (
	"errors"
	"time"

	"github.com/docent-zk/docent/framework/metrics"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/internal/ownership"
)

// count adds n to the number of acquires that wait.
func (l *Lock) addWaiters(n int64) {
	for _, labels := range l.labels {
		bridge.Of(l.Client).Metrics().Add(metrics.LockWaiters, n, labels)
	}
}

// tell measures an acquire that is over, and n waiters with it. Metrics are code of the program's:
// if they panic, or end the goroutine, the hold is released, because nothing will.
func (l *Lock) recordEnd(begun time.Time, n int64, hold **ownership.Hold, err *error) {
	told := false
	defer func() {
		if !told {
			_ = (*hold).Release()
		}
	}()
	if n != 0 {
		l.addWaiters(n)
	}
	l.recordWait(time.Since(begun), err)
	told = true
}

// measure tells how long it took to acquire the lock, or to fail.
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
