package oteldocent_test

import (
	"go.opentelemetry.io/otel"

	oteldocent "github.com/docent-zk/docent/contrib/otel"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
)

// These functions are on the page README.md.
var _, _ = measured, tracedLock

// fragment otel-metrics
func measured(servers string) (*framework.Client, error) {
	metrics, err := oteldocent.New(otel.Meter("github.com/docent-zk/docent"))
	if err != nil {
		return nil, err
	}
	return framework.New(servers, framework.WithMetrics(metrics))
}

// end

// fragment otel-traces
// tracedLock returns a lock that is used in place of lock: by its Acquire, or by recipes.Do.
func tracedLock(lock recipes.Locker) (recipes.Locker, error) {
	return oteldocent.NewLocker(otel.Tracer("github.com/docent-zk/docent"), "mutex", lock)
}

// end
