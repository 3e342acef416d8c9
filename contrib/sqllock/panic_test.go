package sqllock_test

import (
	"testing"

	"github.com/docent-zk/docent/contrib/sqllock"
	"github.com/docent-zk/docent/framework/metrics"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
)

// Metrics of the program end acquires. That leaves no row to a holder, and no waiter in a queue.
func TestLockIsFreeAfterMetricsEndedAnAcquire(t *testing.T) {
	t.Parallel()
	s := serverOf(t, sqllock.PostgreSQL).site(t)
	c, _ := s.client(t)
	other := lockOf(t, c, "lock")
	testzk.EndAcquires(t,
		func() (*recipes.Hold, error) { return other.Acquire(testzk.Context(t)) },
		func(m metrics.Metrics) func() (*recipes.Hold, error) {
			c, _ := s.client(t, sqllock.WithMetrics(m))
			lock := lockOf(t, c, "lock")
			return func() (*recipes.Hold, error) { return lock.Acquire(testzk.Context(t)) }
		})
}
