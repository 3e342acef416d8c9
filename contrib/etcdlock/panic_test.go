package etcdlock_test

import (
	"testing"

	"github.com/docent-zk/docent/contrib/etcdlock"
	"github.com/docent-zk/docent/framework/metrics"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
)

// Metrics of the program end acquires. That leaves no key.
func TestLockIsFreeAfterMetricsEndedAnAcquire(t *testing.T) {
	c := connect(t, etcd.addr)
	other := newLock(t, newClient(t, c), t.Name())
	testzk.EndAcquires(t,
		func() (*recipes.Hold, error) { return other.Acquire(bounded(t)) },
		func(m metrics.Metrics) func() (*recipes.Hold, error) {
			lock := newLock(t, newClient(t, c, etcdlock.WithMetrics(m)), t.Name())
			return func() (*recipes.Hold, error) { return lock.Acquire(bounded(t)) }
		})
	awaitKeys(t, c, t.Name(), 0)
}
