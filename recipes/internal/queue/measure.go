package queue

import (
	"errors"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
)

// count counts one who waits, until the returned function is called.
func (l *Lock) count() (done func()) {
	add := func(n int64) {
		for _, labels := range l.labels {
			l.Client.Metrics().Add(framework.LockWaiters, n, labels)
		}
	}
	add(1)
	return func() { add(-1) }
}

// measure tells how long it took to acquire the lock, or to fail.
func (l *Lock) measure(begun time.Time, err *error) {
	took := time.Since(begun)
	for _, labels := range l.labels {
		switch {
		case *err == nil:
			labels.Outcome = framework.OutcomeAcquired
		case errors.Is(*err, recipes.ErrNotAcquired):
			labels.Outcome = framework.OutcomeNotAcquired
		default:
			labels.Outcome = framework.OutcomeFailed
		}
		l.Client.Metrics().Record(framework.LockWait, took, labels)
	}
}
