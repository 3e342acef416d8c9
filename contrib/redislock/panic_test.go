package redislock_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/contrib/redislock"
	"github.com/docent-zk/docent/framework/metrics"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
)

// Metrics of the program end acquires. That leaves no key, and no waiter in a fair queue.
func TestLockIsFreeAfterMetricsEndedAnAcquire(t *testing.T) {
	for _, opts := range [][]redislock.LockOption{nil, {redislock.WithFairQueue()}} {
		synctest.Test(t, func(t *testing.T) {
			srv := newFake()
			connect := func(more ...redislock.Option) func() (*recipes.Hold, error) {
				c, err := redislock.NewClientOf(&link{fake: srv}, append(more, redislock.WithTTL(ttl))...)
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, c.Close()) })
				lock, err := redislock.New(c, "lock", opts...)
				require.NoError(t, err)
				return func() (*recipes.Hold, error) { return lock.Acquire(bounded(t)) }
			}
			testzk.EndAcquires(t, connect(), func(m metrics.Metrics) func() (*recipes.Hold, error) {
				return connect(redislock.WithMetrics(m))
			})
		})
	}
}
