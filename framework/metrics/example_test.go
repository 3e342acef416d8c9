package metrics_test

import (
	"context"
	"fmt"
	"log"
	"sync/atomic"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/framework/metrics"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/zktest"
)

// acquires counts the acquires of locks. The modules contrib/prometheus and contrib/otel pass on all
// measurements.
type acquires struct{ count atomic.Int64 }

// Add is called for counters.
func (a *acquires) Add(metrics.Instrument, int64, metrics.Labels) {}

// Record is called for durations.
func (a *acquires) Record(i metrics.Instrument, _ time.Duration, l metrics.Labels) {
	if i == metrics.LockWait && l.Outcome == metrics.OutcomeAcquired {
		a.count.Add(1)
	}
}

func Example() {
	server, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	var measured acquires
	client, err := framework.New(server.Addr(), framework.WithMetrics(&measured))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	orders, err := mutex.New(client, "/locks/orders")
	if err != nil {
		log.Fatal(err)
	}
	for range 3 {
		err := orders.Do(context.Background(), func(context.Context, *recipes.Hold) error { return nil })
		if err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(metrics.LockWait.Name(), measured.count.Load())
	// Output: docent.lock.wait 3
}
