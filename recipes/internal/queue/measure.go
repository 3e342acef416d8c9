package queue

import (
	"errors"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
)

func (l *Line) labels() framework.Labels {
	return framework.Labels{Recipe: l.rules.Recipe, Path: l.path}
}

// count counts one who waits, until the returned function is called.
func (l *Line) count() (done func()) {
	m := l.client.Metrics()
	m.Add(framework.LockWaiters, 1, l.labels())
	return func() { m.Add(framework.LockWaiters, -1, l.labels()) }
}

// measure tells how long it took to acquire the lock, or to fail.
func (l *Line) measure(begun time.Time, err *error) {
	labels := l.labels()
	switch {
	case *err == nil:
		labels.Outcome = framework.OutcomeAcquired
	case errors.Is(*err, recipes.ErrNotAcquired):
		labels.Outcome = framework.OutcomeNotAcquired
	default:
		labels.Outcome = framework.OutcomeFailed
	}
	l.client.Metrics().Record(framework.LockWait, time.Since(begun), labels)
}
